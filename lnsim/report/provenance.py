"""This module says on a notebook's page where its vectors came from, by what the extracts themselves have on record."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import version

from lnsim.checkpoint.source import Checkpoint
from lnsim.checkpoint.vectors import NormVectors
from lnsim.version import __version__

_PACKAGES = ("numpy", "pandas", "matplotlib")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a number can depend on."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {"lnsim": __version__, "python": python, **{package: version(package) for package in _PACKAGES}}


def record(opened: NormVectors | Checkpoint) -> dict[str, str | int | None]:
    """What the index and run.json repeat about one model; one of which only matrices were read has no vectors."""
    if isinstance(opened, Checkpoint):
        published, n_vectors = opened.repo_id is not None, 0
    else:
        published = any(opened.provenance.get(name) for name in ("repo_id", "package"))
        n_vectors = opened.n_vectors
    return {"source": opened.source, "commit": opened.commit, "n_vectors": n_vectors, "published": published}


def description(models: Iterable[NormVectors | Checkpoint]) -> str:
    """One line for the metadata of a figure: ``repo@commit`` or the file of each model."""
    told = []
    for one in models:
        file = one.provenance.get("file") if isinstance(one, NormVectors) else None
        told.append(at_commit(one, f"{one.source} ({file})" if file else one.source))
    return "; ".join(told)


def model_rows(label: str, opened: NormVectors | Checkpoint) -> list[tuple[str, str]]:
    """The provenance of one model, label and value by line; of a checkpoint, that of its projection matrices."""
    rows = _vectors_said(label, opened) if isinstance(opened, NormVectors) else _matrices_said(label, opened)
    return [(name, value) for name, value in rows if value]


def _vectors_said(label: str, vectors: NormVectors) -> list[tuple[str, str]]:
    known, roles = vectors.provenance, vectors.roles.values()
    n_layers = len({int(layer) for role in roles for layer in role.layers if layer >= 0})
    n_bytes = sum(array.nbytes for array in vectors.stored.values())
    package, file = known.get("package", ""), known.get("file", "")
    if package and "wheel_sha256" in known:
        package += f", wheel sha256 `{known['wheel_sha256']}`"
    if file and known.get("file_bytes", "").isdigit():
        file += f", {int(known['file_bytes']):,} bytes"
    missing = (f"{role}: {', '.join(map(str, layers))}" for role, layers in vectors.missing_layers.items() if layers)
    return [
        ("Model", _names(label, vectors.source, known.get("repo_id"))),
        ("Commit", _commit(vectors.commit, "package" in known)),
        ("Package", package),
        ("File", file),
        ("sha256", f"`{known['file_sha256']}`" if "file_sha256" in known else ""),
        ("Licence", known.get("licence", "none recorded")),
        ("Layers, channels", f"{n_layers} layers, {vectors.hidden_size} channels; {vectors.n_vectors} norm weights, "
                             f"{n_bytes:,} bytes, {vectors.norm_type}"),
        ("dtype", _dtype({source.dtype for source in vectors.tensors.values()})),
        ("Missing layers", "; ".join(missing)),
        ("Notes", " ".join(vectors.notes)),
    ]  # fmt: skip


def _matrices_said(label: str, opened: Checkpoint) -> list[tuple[str, str]]:
    infos = [info for header in opened.headers.values() for info in header.tensors.values()]
    kinds = sorted({info.name.rsplit(".", 2)[-2] for info in infos})
    notes = (header.metadata.get("replica_note", "") for header in opened.headers.values())
    return [
        ("Model", _names(label, opened.source, opened.repo_id)),
        ("Commit", _commit(opened.commit, of_package=False)),
        ("File", ", ".join(opened.headers)),
        ("Matrices", f"{len(infos)}; {', '.join(kinds)}"),
        ("dtype", _dtype({info.dtype for info in infos})),
        ("Notes", " ".join(dict.fromkeys(filter(None, notes)))),
    ]


def _names(*names: str | None) -> str:
    return ", ".join(dict.fromkeys(name for name in names if name))


def _commit(commit: str | None, of_package: bool) -> str:
    where = "a package, not from the Hub" if of_package else "a file outside the Hub"
    return f"`{commit}`" if commit else f"none recorded: read from {where}"


def _dtype(stored: set[str]) -> str:
    return f"{', '.join(sorted(stored)) or 'not recorded'} as stored; arithmetic in float64"


def at_commit(opened: NormVectors | Checkpoint, otherwise: str) -> str:
    """``source@commit``, or something else where no commit is on record."""
    return f"{opened.source}@{opened.commit}" if opened.commit else otherwise
