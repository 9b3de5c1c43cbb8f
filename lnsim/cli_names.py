"""This module finds names near to one that nobody knows, for whoever mistyped a repo id."""

from __future__ import annotations

import difflib

from lnsim.errors import LnsimError, NetworkError, OfflineError, RepoNotFoundError
from lnsim.paths import stored_models

__all__ = ["with_near_names"]

_AT_LEAST = 0.75
"""How alike two names must be, as difflib counts: a letter more or less in a name of eight gives 0.93."""


def with_near_names(error: LnsimError, source: str) -> LnsimError:
    """The error, and where the Hub did not have the source, the names near to it among stored models and studies."""
    if not isinstance(error, (RepoNotFoundError, NetworkError, OfflineError)):
        return error
    wanted = source.partition("@")[0]
    known = {name.casefold(): name for name in _known_names()}
    near = difflib.get_close_matches(wanted.casefold(), known, n=3, cutoff=_AT_LEAST)
    found = ", ".join(f"'{known[name]}'" for name in near if known[name] != wanted)
    return type(error)(f"{error} Near names known here: {found}.") if found else error


def _known_names() -> list[str]:
    """Stored models, and the repos that studies name."""
    from lnsim.study.catalog import list_studies, load_study

    models = [model for name in list_studies() for model in load_study(name).models]
    return [*stored_models(), *(model.repo_id for model in models if model.repo_id)]
