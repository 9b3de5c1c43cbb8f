"""This module reads a finished model back through lnsim's own reader, and keeps its norm vectors in the project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.reading import read_norms
from lnsim.checkpoint.store import write_extract

__all__ = ["keep_norms"]


def keep_norms(checkpoint: Path, name: str, record: Mapping[str, str], out: Path) -> Path:
    """Write the norm vectors of a checkpoint as an extract, with the record of how it was made beside its provenance.

    Args:
        checkpoint: folder written by ``save_pretrained``.
        name: the model's name, also of the file.
        record: what goes into the extract's metadata, text to text.
        out: folder of the extracts.

    Raises:
        LnsimError: a sentence on what could not be read or written.
    """
    tensors, provenance = read_norms(open_local(checkpoint, source=f"zoo/{name}")).prepared()
    return write_extract(
        out / f"{name}.safetensors", tensors, replace(provenance, extra={**provenance.extra, **record})
    )
