"""This module reads every form in which people write a repo on the Hub: an id, ``hf://``, the address of a page."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, unquote, urlsplit

from lnsim.errors import HubError, SourceError

# The client library's rule (`validate_repo_id`), written out here since its import is slow.
_REPO_ID = re.compile(r"(?:\b[\w.-]{1,96}\b/)?\b[\w.-]{1,96}\b", re.ASCII)
_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co", "www.hf.co"})
WEIGHTS = (".safetensors", ".bin", ".gguf")  # endings of the files of weights that are read, the preferred one first
_OTHER_KINDS = frozenset({"datasets", "spaces", "buckets", "kernels", "collections", "papers", "docs", "blog"})
_ROUTES = frozenset({"tree", "blob", "resolve", "raw", "blame", "commit", "commits", "revision"})
_BY_GIT = re.compile(r"(?:ssh://)?git@(hf\.co|huggingface\.co)[:/](.*)")
_OWN_SLASHES = re.compile(r"refs/[^/]+/[^/]+")  # in the names of revisions: ``refs/pr/3``, ``refs/convert/parquet``
_FORMS = "owner/name, owner/name@revision/folder or an address such as https://huggingface.co/owner/name/tree/main"


@dataclass(frozen=True, slots=True)
class RepoName:
    """A repo on the Hub, at the revision asked for, or a part of it."""

    repo_id: str  # that of an old repo is a bare name
    revision: str | None  # None for the head of ``main``
    part: str = ""  # a folder or file below the root; empty for all of it


def parse_repo_name(text: str, revision: str | None = None) -> RepoName:
    """Take apart what was written; the revision may also come apart, but not both ways.

    The first part behind ``@`` is the revision and the rest a path, but for ``refs/pr/3`` and its like. A branch whose
    name holds a slash is written with ``%2F``. Raises SourceError when the text can be no repo.

    >>> parse_repo_name("Qwen/Qwen3-4B@main")
    RepoName(repo_id='Qwen/Qwen3-4B', revision='main', part='')
    >>> parse_repo_name("https://huggingface.co/org/pipe/tree/refs%2Fpr%2F3/text_encoder")
    RepoName(repo_id='org/pipe', revision='refs/pr/3', part='text_encoder')
    """
    body = _BY_GIT.sub(r"https://\1/\2", text.strip())
    address = _address(body)
    found = _by_page(text, address) if address is not None else _by_id(text, body)
    if found.revision is not None and revision is not None:
        raise SourceError(f"Opening '{text}': the revision is given twice, as '{found.revision}' and as '{revision}'.")
    if found.revision == "":
        raise SourceError(f"Opening '{text}': a revision was expected behind the @.")
    if not is_repo_id(found.repo_id):
        raise SourceError(
            f"Opening {text!r:.200}: there is no such file or folder, no stored model of this name, and it cannot be "
            f"a repo id (owner/name). `lnsim list` shows the stored models."
        )
    if found.part and (set(found.part.split("/")) & {"", ".", ".."} or not found.part.isprintable()):
        raise SourceError(
            f"Opening {text!r:.200}: behind the repo a plain path was expected, found {found.part!r:.80}."
        )
    return replace(found, revision=found.revision or revision)


def is_repo_id(text: str) -> bool:
    """Whether a text can be a repo id, by the rule of the Hub's client library."""
    return bool(_REPO_ID.fullmatch(text)) and not any(odd in text for odd in ("--", "..")) and text[-4:] != ".git"


def check_endpoint(text: str | None = None) -> str:
    """The address of the Hub, by default that in ``HF_ENDPOINT``, else empty; HubError where it is none."""
    text = os.environ.get("HF_ENDPOINT") if text is None else text
    if text is None:
        return ""
    parts = _split(text)
    if parts is None or parts.scheme not in ("http", "https") or parts.username is not None or set(text) & set(" ?#"):
        shown = text.rpartition("@")[2]
        guess = f"'https://{shown}'" if re.fullmatch(r"[\w.-]+(:\d+)?(/[\w./-]*)?", shown) else "'https://host'"
        raise HubError(
            f"Looking for the Hub: the environment variable HF_ENDPOINT is {shown!r:.120}; an address such as {guess} "
            f"was expected. Set it so, or unset it for huggingface.co."
        )
    return text


def _address(body: str) -> SplitResult | None:
    """The address that a text is, with or without its scheme; None for ids, ``hf://`` and paths."""
    if body.startswith("hf://"):
        return None
    first = body.partition("/")[0].lower()
    if "://" not in body and first not in _HOSTS and not (":" in first and first == _split_endpoint().netloc):
        return None
    parts = _split(body if "://" in body else f"https://{body}")
    # Neither a password nor a signature in the query of an address shall be shown.
    shown = "an address" if parts is None else f"'{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path:.120}'"
    if parts is None or parts.scheme not in ("http", "https") or parts.username is not None:
        without = ", without a user or password" if parts is not None and parts.username is not None else ""
        raise SourceError(f"Opening {shown}: {_FORMS} was expected{without}.")
    if parts.hostname not in _HOSTS and parts.netloc.lower() != _split_endpoint().netloc.lower():
        raise SourceError(
            f"Opening {shown}: an address of the Hub was expected, found the host '{parts.hostname}'. Where that is a "
            f"mirror of the Hub, name it by HF_ENDPOINT."
        )
    return parts


def _split(url: str) -> SplitResult | None:
    """The parts of an address; None where it is none."""
    try:
        parts = urlsplit(url)
        there = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if there else None


def _split_endpoint() -> SplitResult:
    check_endpoint()
    from huggingface_hub import constants  # not before the check: an address that is none breaks the import

    return urlsplit(check_endpoint(constants.ENDPOINT))


def _by_page(text: str, address: SplitResult) -> RepoName:
    """What a page of the Hub shows: a repo, or a folder or file of it at a revision."""
    path = address.path
    if address.hostname not in _HOSTS:
        path = path.removeprefix(_split_endpoint().path)
    words = [word for word in path.split("/") if word]
    words = _model(text, words[1:] if words[:1] == ["api"] else words)
    # Old repos have no owner: what follows their name is a route already.
    alone = len(words) > 1 and words[1] in _ROUTES and words[2:3] != [] and words[2] not in _ROUTES
    behind = words[1 if alone else 2 :]
    repo_id = unquote("/".join(words[: 1 if alone else 2])).removesuffix(".git")
    if not words or (behind and behind[0] not in _ROUTES):
        raise SourceError(
            f"Opening '{address.netloc}{address.path:.160}': this is no page of a model, its folders or files; "
            f"{_FORMS} was expected."
        )
    if not behind[1:]:
        return RepoName(repo_id, None)
    revision, part = _split_revision("/".join(behind[1:]))
    return RepoName(repo_id, revision, unquote(part))


def _by_id(text: str, body: str) -> RepoName:
    """What is named by ``owner/name@revision/part``, behind ``hf://`` or not; the revision may also come last."""
    named = body.removeprefix("hf://").rstrip("/")
    head, at, behind = named.partition("@")
    words = head.split("/")
    if body.startswith("hf://") or len(words) > 2:
        words = _model(text, words)
    repo_id, part = "/".join(words[:2]), "/".join(words[2:])
    if not at:
        return RepoName(repo_id, None, part)
    if part and behind.endswith(WEIGHTS):
        return RepoName(repo_id, None, f"{part}@{behind}")
    return RepoName(repo_id, behind, part) if part else RepoName(repo_id, *_split_revision(behind))


def _model(text: str, words: list[str]) -> list[str]:
    """The words of a path without ``models`` before them; raises SourceError where they name something else."""
    if words and words[0] in _OTHER_KINDS:
        raise SourceError(f"Opening '{text:.200}': a model was expected, found something of the Hub's '{words[0]}'.")
    return words[1:] if words[:1] == ["models"] else words


def _split_revision(text: str) -> tuple[str, str]:
    special = _OWN_SLASHES.match(text)
    revision = special[0] if special else text.partition("/")[0]
    return unquote(revision), text[len(revision) + 1 :]


def without_ending(name: str) -> str:
    """The name of a file of weights without what tells its format."""
    return next((name.removesuffix(ending) for ending in WEIGHTS if name.endswith(ending)), name)
