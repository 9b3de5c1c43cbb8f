"""This module pins repos on the Hub to a commit, and fetches their small files at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from huggingface_hub import constants

from lnsim.checkpoint.format.layout import CONFIG_NAME, INDEX_NAME, parse_index
from lnsim.checkpoint.hub.answers import NotThereError
from lnsim.checkpoint.hub.cache import MAIN, is_commit
from lnsim.checkpoint.hub.names import check_endpoint
from lnsim.checkpoint.hub.session import Settings, client_for
from lnsim.checkpoint.hub.transport import Transport
from lnsim.checkpoint.source import MAX_JSON_BYTES, Traffic, parse_config
from lnsim.errors import FormatError, HubError, RepoNotFoundError, RevisionError, SourceError

__all__ = ["Repo", "endpoint", "pin"]


@dataclass(frozen=True, slots=True)
class Repo:
    """A repo at a commit, or the files of one of its folders.

    Args:
        repo_id: its name on the Hub.
        revision: what was asked for, None for the head of ``main``.
        commit: what that was when it was asked.
        sizes: bytes of each file by its name below the folder, None where the Hub does not tell.
        transport: how to ask for more.
        folder: where the files lie, below the repo's root.
        file: the only one that is wanted; empty for whatever holds the weights.
        notes: sentences for whoever reads the numbers.
    """

    repo_id: str
    revision: str | None
    commit: str
    sizes: Mapping[str, int | None]
    transport: Transport = field(repr=False)
    folder: str = ""
    file: str = ""
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its files."""
        return tuple(self.sizes)

    @property
    def where(self) -> str:
        """``repo@commit``, for messages; with the folder or file where it is a part."""
        return self.where_of(self.file).rstrip("/")

    @property
    def part(self) -> str:
        """The folder or file that was asked for; empty for the whole repo."""
        return f"{self.folder}/{self.file}".strip("/")

    @property
    def typed(self) -> str:
        """What to type for this, as a SOURCE."""
        revision = self.revision or MAIN
        revision = revision if revision.startswith("refs/") else quote(revision, safe="")
        return f"{self.repo_id}@{revision}/{self.part}".rstrip("/")

    def where_of(self, name: str) -> str:
        """``repo@commit/folder/name`` of a file, for messages."""
        return f"{self.repo_id}@{self.commit[:12]}/{self._path(name)}"

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name

    def url(self, name: str) -> str:
        """Address of a file at the pinned commit."""
        return f"{constants.ENDPOINT}/{self.repo_id}/resolve/{self.commit}/{quote(self._path(name))}"

    def config(self) -> dict[str, Any] | None:
        """The parsed ``config.json``, None where the repo has none."""
        if CONFIG_NAME not in self.sizes:
            return None
        where = self.where_of(CONFIG_NAME)
        data = self.transport.get(self.url(CONFIG_NAME), where=where, max_bytes=MAX_JSON_BYTES)
        return parse_config(data, where=where)

    def weight_map(self, index: str = INDEX_NAME) -> dict[str, str]:
        """Shard of each tensor, as the index tells it."""
        data = self.transport.get(
            self.url(index), where=self.where_of(index), max_bytes=MAX_JSON_BYTES, compressed=True
        )
        return parse_index(data, where=self.where)


def pin(repo_id: str, revision: str | None, part: str, settings: Settings) -> Repo:
    """The commit behind a revision, and the files it holds with their sizes, or those of a part of it.

    Raises:
        RepoNotFoundError, GatedError, RevisionError, NetworkError, OfflineError: each a sentence on what to do.
        SourceError: when the commit has no such part.
    """
    endpoint()
    transport = Transport(client_for(settings), Traffic())
    try:
        commit, sizes = _ask(transport, repo_id, revision)
    except RevisionError as error:
        if not part or not revision or "/" in revision:
            raise
        name = quote(f"{revision}/{part}", safe="")
        raise RevisionError(
            f"{error} Behind the @ it ends at the first slash: where the slash belongs to a branch's name, write "
            f"{repo_id}@{name:.160}, or use --revision."
        ) from None
    repo = Repo(repo_id, revision, commit, sizes, transport)
    return _narrowed(repo, part) if part else repo


def endpoint() -> str:
    """The address of the Hub or its mirror; raises HubError where it is none."""
    return check_endpoint(constants.ENDPOINT)


def _narrowed(repo: Repo, part: str) -> Repo:
    """The repo as if one of its folders were all of it, or one of its files with the config beside it."""
    folder, _, file = part.rpartition("/") if part in repo.sizes else (part, "", "")
    if file and not file.endswith((".safetensors", ".safetensors.index.json")):
        raise FormatError(
            f"Opening {repo.where}/{part}: a folder or a .safetensors file was expected. Name its folder, "
            f"{repo.typed}{'/' + folder if folder else ''}, or another file."
        )
    start = f"{folder}/" if folder else ""
    below = {name.removeprefix(start): size for name, size in repo.sizes.items() if name.startswith(start)}
    if not below:
        raise SourceError(f"Opening {repo.where}/{part}: the commit has no such folder or file. {_weights_of(repo)}")
    unused = folder and CONFIG_NAME in repo.sizes and CONFIG_NAME not in below
    notes = (f"{folder} has no {CONFIG_NAME}; the one in the repo's root was not used.",) if unused else ()
    return replace(repo, sizes=below, folder=folder, file=file, notes=notes)


def _weights_of(repo: Repo) -> str:
    folders = sorted({name.rpartition("/")[0] for name in repo.names if name.endswith(".safetensors")})
    if not folders:
        return "It holds no safetensors weights at all."
    shown = ", ".join(f"{repo.typed}/{one}".rstrip("/") for one in folders[:3])
    return f"Weights are in {shown}{f' and {len(folders) - 3} more folders' if len(folders) > 3 else ''}."


def _ask(transport: Transport, repo_id: str, revision: str | None) -> tuple[str, dict[str, int | None]]:
    where = f"{repo_id}@{revision or MAIN}"
    url = f"{constants.ENDPOINT}/api/models/{quote(repo_id)}"
    if revision is not None:
        url += f"/revision/{quote(revision, safe='')}"
    try:
        data = transport.get(f"{url}?blobs=true", where=where, max_bytes=MAX_JSON_BYTES, compressed=True)
    except NotThereError:
        raise RepoNotFoundError(f"Reading {where}: the Hub has no such repo. Check the spelling.") from None
    content = parse_config(data, where=where)
    commit, siblings = content.get("sha"), content.get("siblings")
    if not isinstance(commit, str) or not is_commit(commit) or not isinstance(siblings, list):
        raise HubError(
            f"Reading {where}: a commit and a list of files were expected, found keys {sorted(content)!s:.120}."
        )
    entries = [entry for entry in siblings if isinstance(entry, dict) and isinstance(entry.get("rfilename"), str)]
    return commit, {entry["rfilename"]: _size(entry.get("size")) for entry in entries}


def _size(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
