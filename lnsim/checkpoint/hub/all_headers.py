"""This module reads the headers of all shards from the one call that the Hub offers for them.

The call is a short cut. It answers for the root of a repo at the head of ``main`` only and names no commit, so its
headers count only if the head, asked for again afterwards, is still the pinned commit; if they name the shards of the
commit and fill their files' sizes; and if their tensors add up to the size that the index tells. Anything else is read
from the files.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from huggingface_hub import constants

from lnsim.checkpoint.header import LENGTH_BYTES, Header, read_entries
from lnsim.checkpoint.header_json import HeaderText, JsonObject
from lnsim.checkpoint.hub.answers import NotThereError, TooLongError
from lnsim.checkpoint.hub.repo import Repo
from lnsim.checkpoint.layout import INDEX_NAME, Layout
from lnsim.errors import HeaderError

__all__ = ["AllHeaders", "headers_in_one_call"]

logger = logging.getLogger(__name__)

FEW = 2
"""With so few shards, one call for all headers saves no request."""

_MAX_BYTES = 40_000_000
_MAX_HELD = 112 << 20  # over 200,000 tensors; the largest models known have 140,000

_LONG = 500_000
_one_at_a_time = threading.Lock()
"""Parsing keeps one processor busy whatever the threads; long answers side by side would only take more memory. Short
ones need not wait for them: their reads can begin."""


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
    """Every shard's header; None where the endpoint has no such call, or its answer is not to be relied on.

    Raises:
        LnsimError: when the Hub cannot be asked, or the repo's config is wrong.
    """
    if layout.index != INDEX_NAME or repo.part or not repo.at_head or len(layout.shards) <= FEW:
        return None
    text = _fetch(repo)
    if text is None:
        return None
    # What the head is now is asked for while the headers are parsed.
    to_come = repo.transport.client.aside(repo.config_at_head)
    try:
        with _one_at_a_time if len(text) > _LONG else nullcontext():
            headers = _parse(text, repo.sizes, layout)
    except HeaderError as error:
        logger.debug("The headers of %s in one call are of no use, reading them one by one: %s", repo.where, error)
        to_come.cancel()
        return None
    config, still_head = to_come.result()
    return AllHeaders(headers, config) if still_head else None


def _fetch(repo: Repo) -> bytes | None:
    url = f"{constants.ENDPOINT}/api/models/{quote(repo.repo_id)}/safetensors-metadata/{INDEX_NAME}"
    where = f"all headers of {repo.where}"
    try:
        return repo.transport.get(url, where=where, max_bytes=_MAX_BYTES, compressed=True).data
    except (NotThereError, TooLongError):
        return None


def _parse(text: bytes, sizes: Mapping[str, int | None], layout: Layout) -> dict[str, Header]:
    """The headers, each read where it stands in the answer, by the same reader that reads files."""
    reader = HeaderText(text, 0, len(text), max_held=_MAX_HELD)
    headers: dict[str, Header] = {}
    index: Any = None
    for key in reader.members():
        if key == "headers" and reader.starts(b"{"):
            for shard in reader.members():
                if isinstance(shard, list) or shard in headers:
                    raise HeaderError(f"one header a shard was expected, found {shard!r:.120}.")
                headers[shard] = _header(reader, text, sizes.get(shard))
        elif isinstance(key, str):
            value = reader.value(limit=_MAX_BYTES)
            index = value if key == "index" else index
    reader.end()
    if set(headers) != set(layout.shards):
        raise HeaderError(f"headers of {len(layout.shards)} shards were expected, found {len(headers)}.")
    _check_total(headers, index, is_short=len(text) < _LONG)
    return headers


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


def _check_total(headers: Mapping[str, Header], index: Any, *, is_short: bool) -> None:
    """Compare with ``index.metadata.total_size``: a tensor that no shard holds, or no index lists, shows here.

    Where it is not told, a short answer is not worth the doubt.
    """
    metadata = dict(index).get("metadata") if isinstance(index, JsonObject) else None
    total = dict(metadata).get("total_size") if isinstance(metadata, JsonObject) else None
    found = sum(header.buffer_size for header in headers.values())
    if total != found and (type(total) is int or is_short):
        raise HeaderError(f"tensors of {total} bytes were expected, found {found}.")
