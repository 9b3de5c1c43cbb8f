"""This module says where the vectors on a page came from: the rows of its provenance and one line for its files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from lnsim.checkpoint.source import Checkpoint
from lnsim.checkpoint.vectors import NormVectors
from lnsim.version import __version__

__all__ = ["description", "model_record", "model_rows", "versions", "weights_record", "weights_rows"]

_PACKAGES = ("numpy", "pandas", "matplotlib")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a number can depend on."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {"lnsim": __version__, "python": python, **{package: version(package) for package in _PACKAGES}}


def description(models: Iterable[NormVectors], weights: Iterable[Checkpoint] = ()) -> str:
    """One line for the metadata of a figure: ``repo@commit`` or the file of each model."""
    matrices = (f"{opened.source}@{opened.commit}" if opened.commit else opened.source for opened in weights)
    return "; ".join([*(_place(vectors) for vectors in models), *matrices])


def model_record(vectors: NormVectors) -> dict[str, str | int | None]:
    """What the index and run.json repeat about one model."""
    return {"source": vectors.source, "commit": vectors.commit, "n_vectors": vectors.n_vectors}


def weights_record(opened: Checkpoint) -> dict[str, str | int | None]:
    """The same for a checkpoint of which only projection matrices were read."""
    return {"source": opened.source, "commit": opened.commit, "n_vectors": 0}


def weights_rows(label: str, opened: Checkpoint) -> list[tuple[str, str]]:
    """The provenance of a model's projection matrices, label and value by line."""
    infos = [info for header in opened.headers.values() for info in header.tensors.values()]
    notes = [text for header in opened.headers.values() if (text := header.metadata.get("replica_note"))]
    rows = [
        ("Model", ", ".join(dict.fromkeys(name for name in (label, opened.source, opened.repo_id) if name))),
        ("Commit", f"`{opened.commit}`" if opened.commit else _no_commit({})),
        ("File", ", ".join(opened.headers)),
        ("Matrices", f"{len(infos)}; {', '.join(sorted({info.name.rsplit('.', 2)[-2] for info in infos}))}"),
        ("dtype", f"{', '.join(sorted({info.dtype for info in infos}))} as stored; arithmetic in float64"),
        ("Notes", " ".join(dict.fromkeys(notes))),
    ]
    return [(name, value) for name, value in rows if value]


def model_rows(label: str, vectors: NormVectors) -> list[tuple[str, str]]:
    """The provenance of one model, label and value by line."""
    known = vectors.provenance
    rows = [
        ("Model", _model(label, vectors)),
        ("Commit", f"`{vectors.commit}`" if vectors.commit else _no_commit(known)),
        ("Package", _with_hash(known.get("package"), "wheel sha256", known.get("wheel_sha256"))),
        ("File", _file(known)),
        ("sha256", f"`{known['file_sha256']}`" if "file_sha256" in known else ""),
        ("Licence", known.get("licence", "none recorded")),
        ("Layers, channels", _size(vectors)),
        ("dtype", _dtype(vectors)),
        ("Missing layers", _missing(vectors)),
        ("Notes", " ".join(vectors.notes)),
    ]
    return [(name, value) for name, value in rows if value]


def _place(vectors: NormVectors) -> str:
    if vectors.commit:
        return f"{vectors.source}@{vectors.commit}"
    file = vectors.provenance.get("file", "")
    return f"{vectors.source} ({file})" if file else vectors.source


def _model(label: str, vectors: NormVectors) -> str:
    repo = vectors.provenance.get("repo_id", "")
    names = [name for name in dict.fromkeys((label, vectors.source, repo)) if name]
    return ", ".join(names)


def _no_commit(known: Mapping[str, str]) -> str:
    why = "read from a package, not from the Hub" if "package" in known else "read from a file outside the Hub"
    return f"none recorded: {why}"


def _with_hash(text: str | None, name: str, digest: str | None) -> str:
    if not text:
        return ""
    return f"{text}, {name} `{digest}`" if digest else text


def _file(known: Mapping[str, str]) -> str:
    if "file" not in known:
        return ""
    size = known.get("file_bytes", "")
    return f"{known['file']}, {int(size):,} bytes" if size.isdigit() else known["file"]


def _size(vectors: NormVectors) -> str:
    n_layers = len({int(layer) for role in vectors.roles.values() for layer in role.layers if layer >= 0})
    n_bytes = sum(array.nbytes for array in vectors.stored.values())
    return (
        f"{n_layers} layers, {vectors.hidden_size} channels; {vectors.n_vectors} norm weights, {n_bytes:,} bytes, "
        f"{vectors.norm_type}"
    )


def _dtype(vectors: NormVectors) -> str:
    stored = sorted({source.dtype for source in vectors.tensors.values()}) or ["not recorded"]
    return f"{', '.join(stored)} as stored; arithmetic in float64"


def _missing(vectors: NormVectors) -> str:
    parts = (f"{role}: {', '.join(map(str, layers))}" for role, layers in vectors.missing_layers.items() if layers)
    return "; ".join(parts)
