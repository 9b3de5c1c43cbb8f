"""This module names every failure that lnsim reports, one class a kind.

Each message is a sentence or two: what was being done, to which ``repo@commit/file`` or key, what was expected,
what was found, what to do next. The command line prints it as it is and exits with 1. It is one line of plain text:
names from a repo that stand in it are made harmless here, once for all places that show or log one.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lnsim.text import printable

_LONGEST = 4000


class LnsimError(Exception):
    """Any failure that lnsim foresees; everything else is a bug.

    Control characters in its message are written out as escapes; one of more than 4,000 characters loses its middle.
    """

    def __init__(self, message: str = "") -> None:
        text = printable(str(message))
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} [...] {text[-_LONGEST // 2 :]}"
        super().__init__(text)


@contextmanager
def named(kind: type[LnsimError], lead: str) -> Iterator[None]:
    """Put before errors of a kind, and of those below it, what was being done and to what."""
    try:
        yield
    except kind as error:
        raise type(error)(f"{lead}: {error}") from None


class HeaderError(LnsimError):
    """The start of a file is not a valid safetensors header."""


class RangeError(LnsimError):
    """A byte range is impossible, or came back short, long or from another place."""


class DecodeError(LnsimError):
    """Bytes do not fill the dtype and shape that they should."""


class UnsupportedDtypeError(LnsimError):
    """A tensor has a dtype that lnsim does not read."""


class SourceError(LnsimError):
    """A source names nothing that can be read."""


class FormatError(SourceError):
    """A checkpoint is there but holds no safetensors weights, or holds them in a way that cannot be read."""


class TensorNotFoundError(LnsimError):
    """A tensor that the index or the caller names is not in the checkpoint."""


class RoleError(LnsimError):
    """The norms of a checkpoint could not be given roles."""


class StoreError(LnsimError):
    """An extract could not be written, or what was written does not read back the same."""


class HubError(LnsimError):
    """The Hub answered, but not with what was asked for."""


class RepoNotFoundError(HubError):
    """The Hub has no such repo, or hides it from this user."""


class GatedError(HubError):
    """The repo exists, and its owner has not given this user access."""


class RevisionError(HubError):
    """The repo has no such branch, tag or commit, or it moved while it was read."""


class NetworkError(HubError):
    """No answer within the tries and the time allowed."""


class OfflineError(HubError):
    """The network is switched off (``HF_HUB_OFFLINE``) and the cache does not have what is needed."""


class StudyError(LnsimError):
    """A study file is missing, malformed or contradicts itself."""


class ComparisonError(LnsimError):
    """Two sets of vectors cannot be compared."""


class NotebookError(LnsimError):
    """A notebook has no such parameter, did not run, or could not be turned into a report."""
