"""This module tells what a file is whose first bytes are not what its name promises."""

from __future__ import annotations

import re

__all__ = ["DISGUISE_BYTES", "disguise", "text_disguise"]

DISGUISE_BYTES = 64
"""First bytes of a file that are enough to tell."""

_INSTEAD = "a {} pointer, not the file: run `{}`, or name the repo id to read it from the Hub"
_KINDS = {
    rb"version https?://(git-lfs|hawser|git-media)": _INSTEAD.format("git-lfs", "git lfs pull"),
    rb"# xet version": _INSTEAD.format("git-xet", "git xet checkout"),
    rb"(?i)\s*<(!doctype html|html|head)": "a web page (HTML), such as one to log in or of an error: download it again",
    rb"\s*<\?xml": "an XML text, such as a server's error: download it again",
    rb"PK(\x03\x04|\x05\x06)": "a zip archive, as torch.save writes it; lnsim never unpickles, name a safetensors file",
    rb"\x80[\x02-\x05]": "a Python pickle; lnsim never unpickles, since that runs code, name a safetensors file",
    rb"GGUF": "a GGUF file; name the safetensors files that it was made of",
    rb"\x1f\x8b|\x28\xb5\x2f\xfd|BZh|\xfd7zXZ|7z\xbc\xaf": "a compressed file: unpack it first",
    rb"\x89HDF": "an HDF5 file, as Keras writes it; name a safetensors file",
}
_PATTERNS = {re.compile(pattern): text for pattern, text in _KINDS.items()}


def disguise(start: bytes) -> str | None:
    """What a file that begins so really is, and what to do; None where its first bytes do not tell.

    >>> disguise(b"GGUF\\x03\\x00\\x00\\x00")
    'a GGUF file; name the safetensors files that it was made of'
    """
    return next((text for pattern, text in _PATTERNS.items() if pattern.match(start)), None)


def text_disguise(start: bytes) -> str | None:
    """The same for a file that should begin with the length of a header, which is never plain text."""
    shown = start.removeprefix(b"\xef\xbb\xbf")[:40].decode("ascii", "replace").strip()
    if len(start) >= 8 and re.match(rb"(\xef\xbb\xbf)?[\t\n\r -~]{5}", start):
        return disguise(start) or f"a text that begins with {shown!r}, not weights"
    if len(start) >= 8 and not start.strip(b"\0"):
        return "nothing but zeros where it begins, as a download has that is not finished"
    return disguise(start)
