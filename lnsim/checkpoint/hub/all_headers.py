"""This module reads the headers of all shards from the one call that the Hub offers for them.

The call answers for the head of ``main`` only and names no commit, so its headers count only if the head, asked for
again afterwards, is still the pinned commit, and only if they fit the files' sizes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from huggingface_hub import constants

from lnsim.checkpoint.header import LENGTH_BYTES, Header, parse_header
from lnsim.checkpoint.hub.answers import NotThereError
from lnsim.checkpoint.hub.repo import Repo
from lnsim.checkpoint.layout import INDEX_NAME, Layout
from lnsim.checkpoint.source import parse_config
from lnsim.errors import HubError

__all__ = ["AllHeaders", "headers_in_one_call"]

FEW = 2
"""With so few shards, one call for all headers saves no request."""

_MAX_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class AllHeaders:
    """What the call brought.

    Args:
        headers: by shard; their byte buffers start where the shortest spelling of their JSON ends.
        config: the repo's, read at the same commit.
    """

    headers: Mapping[str, Header]
    config: Mapping[str, Any] | None


def headers_in_one_call(repo: Repo, layout: Layout) -> AllHeaders | None:
    """Every shard's header; None where the endpoint has no such call, ``main`` has moved, or a shard is not in it.

    Raises:
        HubError: when the answer is nothing that can be understood.
        HeaderError: when one of the headers is not valid.
    """
    if layout.index is None or not repo.at_head or len(layout.shards) <= FEW:
        return None
    text = _fetch(repo)
    if text is None:
        return None
    with ThreadPoolExecutor(1, thread_name_prefix="lnsim") as side:
        # What the head is now, asked for while the headers are parsed.
        to_come = side.submit(repo.config_at_head)
        headers = _parse(text, f"all headers of {repo.where}")
        config, still_head = to_come.result()
    if not still_head or set(headers) != set(layout.shards):
        return None  # the pinned commit's own files still say what it holds
    return AllHeaders(headers, config)


def _fetch(repo: Repo) -> bytes | None:
    url = f"{constants.ENDPOINT}/api/models/{quote(repo.repo_id)}/safetensors-metadata/{INDEX_NAME}"
    where = f"all headers of {repo.where}"
    try:
        return repo.transport.get(url, where=where, max_bytes=_MAX_BYTES, compressed=True).data
    except NotThereError:
        return None


def _parse(text: bytes, where: str) -> dict[str, Header]:
    content = parse_config(text, where=where)
    headers = content.get("headers")
    if not isinstance(headers, dict) or not headers or not all(isinstance(entry, dict) for entry in headers.values()):
        raise HubError(f"Reading {where}: an object 'headers' was expected, found keys {sorted(content)!s:.120}.")
    return {name: _header(entries, f"{where}, {name!r:.120}") for name, entries in headers.items()}


def _header(entries: Mapping[str, Any], where: str) -> Header:
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return parse_header(len(text).to_bytes(LENGTH_BYTES, "little") + text, where=where)
