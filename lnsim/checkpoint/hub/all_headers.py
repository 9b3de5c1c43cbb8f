"""This module reads the headers of all shards from the one call that the Hub offers for them.

The call answers for the head of ``main`` only and names no commit, so its headers count only if the head, asked for
again afterwards, is still the pinned commit, and only if they fit the files' sizes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from huggingface_hub import constants

from lnsim.checkpoint.header import LENGTH_BYTES, Header, read_entries
from lnsim.checkpoint.header_json import HeaderText
from lnsim.checkpoint.hub.answers import NotThereError
from lnsim.checkpoint.hub.repo import Repo
from lnsim.checkpoint.layout import INDEX_NAME, Layout
from lnsim.errors import HeaderError, HubError

__all__ = ["AllHeaders", "headers_in_one_call"]

FEW = 2
"""With so few shards, one call for all headers saves no request."""

_MAX_BYTES = 100_000_000
_MAX_HELD = 256 << 20  # over half a million tensors: several times what the largest models have


_one_at_a_time = threading.Lock()
"""Parsing keeps one processor busy whatever the threads; side by side it would only take more memory."""


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
        with _one_at_a_time:
            headers = _parse(text, repo.sizes, f"all headers of {repo.where}")
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


def _parse(text: bytes, sizes: Mapping[str, int | None], where: str) -> dict[str, Header]:
    """The headers, each read where it stands in the answer, by the same reader that reads files."""
    reader = HeaderText(text, 0, len(text), max_held=_MAX_HELD)
    found: dict[str, Header] = {}
    try:
        for key in reader.members():
            if key == "headers" and reader.starts(b"{"):
                for shard in reader.members():
                    if isinstance(shard, list) or shard in found:
                        raise HeaderError(f"one header a shard was expected, found {shard!r:.120}.")
                    found[shard] = _header(reader, text, sizes.get(shard))
            else:
                reader.value(limit=_MAX_BYTES)
        reader.end()
    except HeaderError as error:
        raise HeaderError(f"Reading {where}: {error}") from None
    if not found:
        raise HubError(f"Reading {where}: an object 'headers' was expected, found {text[:60]!r}.")
    return found


def _header(reader: HeaderText, text: bytes, file_size: int | None) -> Header:
    """One header, before a byte buffer that starts where its JSON ends in the shortest spelling."""
    reader.starts(b"{")
    start = reader.here
    tensors, metadata = read_entries(reader)
    header = Header(tensors, metadata, LENGTH_BYTES + reader.here - start)
    if file_size is not None and header.fits(file_size):
        return header
    # The answer may be spelt with spaces that the files do not have.
    compact = json.dumps(json.loads(text[start : reader.here]), separators=(",", ":"), ensure_ascii=False)
    return header.moved(LENGTH_BYTES + len(compact.encode("utf-8", "surrogatepass")))
