"""This module finds names near to one that the Hub does not know, for whoever mistyped a repo id or has no network."""

from __future__ import annotations

import difflib

from lnsim.checkpoint.hub.names import parse_repo_name
from lnsim.errors import LnsimError, NetworkError, OfflineError, RepoNotFoundError, SourceError
from lnsim.paths import stored_models

_AT_LEAST = 0.75  # how alike two names must be, as difflib counts: a letter more or less in a name of eight gives 0.93


def with_near_names(error: LnsimError, source: str) -> LnsimError:
    """The error; where the Hub did not give the source, with the names near to it that are known here.

    These are stored models and the repos that studies name. A repo whose vectors are stored is told by that name.
    """
    if not isinstance(error, (RepoNotFoundError, NetworkError, OfflineError)):
        return error
    try:
        wanted = parse_repo_name(source).repo_id.casefold()
    except SourceError:
        wanted = source.casefold()
    known = _known_names()
    near = dict.fromkeys(known[name] for name in difflib.get_close_matches(wanted, known, n=3, cutoff=_AT_LEAST))
    if wanted in known:
        hint = f"Its vectors are stored here as '{known[wanted]}'." if known[wanted].casefold() != wanted else ""
    else:
        hint = f"Near names known here: {', '.join(map(repr, near))}." if near else ""
    if not hint and "/" not in source:
        hint = f"There is no folder, file or stored model '{source:.80}' here either."
    if not hint:
        return error
    told = type(error)(f"{error} {hint}").with_traceback(error.__traceback__)
    told.__cause__ = error.__cause__
    return told


def _known_names() -> dict[str, str]:
    """What to type for each name, by the name in small letters."""
    from lnsim.study.catalog import list_studies, load_study

    stored = {name: name for name in stored_models()}
    models = [model for study in list_studies() for model in load_study(study).models if model.repo_id]
    repos = {str(model.repo_id): stored.get(model.stored, str(model.repo_id)) for model in models}
    return {name.casefold(): typed for name, typed in (repos | stored).items()}
