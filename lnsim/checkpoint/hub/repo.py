"""This module pins repos on the Hub to a commit, and fetches their small files at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from huggingface_hub import constants

from lnsim.checkpoint.hub.answers import NotThereError
from lnsim.checkpoint.hub.client import Settings, client_for
from lnsim.checkpoint.hub.transport import Page, Transport
from lnsim.checkpoint.layout import CONFIG_NAME, INDEX_NAME, parse_index
from lnsim.checkpoint.source import MAX_JSON_BYTES, Traffic, parse_config
from lnsim.errors import HubError, RepoNotFoundError

__all__ = ["Repo", "is_commit", "pin"]

MAIN = "main"


@dataclass(frozen=True, slots=True)
class Repo:
    """A repo at a commit.

    Args:
        repo_id: its name on the Hub.
        revision: what was asked for, None for the head of ``main``.
        commit: what that was when it was asked.
        sizes: bytes of each file by name, None where the Hub does not tell.
        transport: how to ask for more.
    """

    repo_id: str
    revision: str | None
    commit: str
    sizes: Mapping[str, int | None]
    transport: Transport = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Its files."""
        return tuple(self.sizes)

    @property
    def where(self) -> str:
        """``repo@commit``, for messages."""
        return f"{self.repo_id}@{self.commit[:12]}"

    @property
    def at_head(self) -> bool:
        """Whether the commit is that of ``main`` a moment ago."""
        return self.revision in (None, MAIN)

    def url(self, name: str, revision: str | None = None) -> str:
        """Address of a file, at the pinned commit unless told otherwise."""
        return f"{constants.ENDPOINT}/{self.repo_id}/resolve/{quote(revision or self.commit, safe='')}/{quote(name)}"

    def config(self) -> dict[str, Any] | None:
        """The parsed ``config.json``, None where the repo has none."""
        if CONFIG_NAME not in self.sizes:
            return None
        return self._parsed(self._config_page(self.commit))

    def config_at_head(self) -> tuple[dict[str, Any] | None, bool]:
        """The config as ``main`` has it now, and whether that is still the pinned commit."""
        if CONFIG_NAME not in self.sizes:
            return None, self._is_still_head()
        page = self._config_page(MAIN)
        # A mirror may not tell the commit of a file; then the head is asked for once more.
        return self._parsed(page), page.commit == self.commit if page.commit else self._is_still_head()

    def weight_map(self, index: str = INDEX_NAME) -> dict[str, str]:
        """Shard of each tensor, as the index tells it."""
        where = f"{self.where}/{index}"
        page = self.transport.get(self.url(index), where=where, max_bytes=MAX_JSON_BYTES, compressed=True)
        return parse_index(page.data, where=self.where)

    def _config_page(self, revision: str) -> Page:
        url = self.url(CONFIG_NAME, revision)
        return self.transport.get(url, where=f"{self.where}/{CONFIG_NAME}", max_bytes=MAX_JSON_BYTES)

    def _parsed(self, page: Page) -> dict[str, Any]:
        return parse_config(page.data, where=f"{self.where}/{CONFIG_NAME}")

    def _is_still_head(self) -> bool:
        return _ask(self.transport, self.repo_id, self.revision)[0] == self.commit


def pin(repo_id: str, revision: str | None, settings: Settings) -> Repo:
    """The commit behind a revision, and the files it holds with their sizes.

    Raises:
        RepoNotFoundError, GatedError, RevisionError, NetworkError, OfflineError: each a sentence on what to do.
    """
    transport = Transport(client_for(settings), Traffic())
    commit, sizes = _ask(transport, repo_id, revision)
    return Repo(repo_id, revision, commit, sizes, transport)


def is_commit(text: str) -> bool:
    """Whether a revision is a full commit, which never changes."""
    return len(text) == 40 and all(character in "0123456789abcdef" for character in text)


def _ask(transport: Transport, repo_id: str, revision: str | None) -> tuple[str, dict[str, int | None]]:
    where = f"{repo_id}@{revision or MAIN}"
    url = f"{constants.ENDPOINT}/api/models/{quote(repo_id)}"
    if revision is not None:
        url += f"/revision/{quote(revision, safe='')}"
    try:
        page = transport.get(f"{url}?blobs=true", where=where, max_bytes=MAX_JSON_BYTES, compressed=True)
    except NotThereError:
        raise RepoNotFoundError(f"Reading {where}: the Hub has no such repo. Check the spelling.") from None
    content = parse_config(page.data, where=where)
    commit, siblings = content.get("sha"), content.get("siblings")
    if not isinstance(commit, str) or not is_commit(commit) or not isinstance(siblings, list):
        raise HubError(
            f"Reading {where}: a commit and a list of files were expected, found keys {sorted(content)!s:.120}."
        )
    entries = [entry for entry in siblings if isinstance(entry, dict) and isinstance(entry.get("rfilename"), str)]
    return commit, {entry["rfilename"]: _size(entry.get("size")) for entry in entries}


def _size(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
