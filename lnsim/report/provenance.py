"""This module says where vectors came from: on the page of a notebook, and on the provenance page of a study.

A study's page lists every model and every stored vector with where its bytes lie; its two tables stand beside it as
``provenance_models.csv`` and ``provenance_vectors.csv``. What is known is what the extracts themselves have on record;
nothing is looked up elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lnsim.checkpoint.source import Checkpoint
from lnsim.checkpoint.vectors import NormVectors
from lnsim.report import markup
from lnsim.report.saving import save_csv, write_text
from lnsim.report.table import table
from lnsim.study.catalog import Study
from lnsim.study.vectors import StudyVectors
from lnsim.version import __version__
from lnsim.words import count, header_text

if TYPE_CHECKING:
    import pandas as pd

PAGE = "provenance.html"
"""Name of the page, in the folder of a study's reports."""

_PACKAGES = ("numpy", "pandas", "matplotlib")
_SHORT_COMMIT = 12
_OF_THE_FILE = ("package", "wheel_sha256", "file", "file_bytes", "file_sha256", "licence")
"""What of an extract's record has a column of its own."""

_SAID = {*_OF_THE_FILE, "repo_id", "names_in_file"}
"""That, and what the rows of its vectors say."""

_LABELS = {"from": "repo@commit, else origin", "bytes": "byte range [start, stop)", "file_sha256": "sha256 of the file"}


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
        told.append(_at_commit(one, f"{one.source} ({file})" if file else one.source))
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


def _at_commit(opened: NormVectors | Checkpoint, otherwise: str) -> str:
    return f"{opened.source}@{opened.commit}" if opened.commit else otherwise


def write_provenance(study: Study, found: StudyVectors, folder: Path) -> Path:
    """Write a study's provenance page and its two CSVs into the folder of its reports.

    All its vectors are told; a model that has none is named with its reason.
    """
    import pandas as pd

    models = pd.DataFrame([_model_row(study, key, vectors) for key, vectors in found.vectors.items()])
    vectors = pd.DataFrame([row for key, one in found.vectors.items() for row in _vector_rows(study, key, one)])
    vectors = vectors.astype({"layer": "Int64"})
    replica = found.kind == "replica"
    for name, frame in (("provenance_models", models), ("provenance_vectors", vectors)):
        save_csv(frame.assign(source="REPLICA, synthetic") if replica else frame, folder / f"{name}.csv")
    page = markup.filled(
        "provenance.html.j2",
        study=study,
        badge=markup.badge(found.kind),
        banner=markup.REPLICA_BANNER if replica else "",
        says=_says(found, len(vectors)),
        models=_models_table(models, "REPLICA. " * replica),
        vectors=_vectors_table(vectors, "REPLICA. " * replica),
        missing=[(study.model(key).label, reason) for key, reason in found.missing.items()],
    )
    return write_text(folder / PAGE, f"{page}\n")


def _model_row(study: Study, key: str, vectors: NormVectors) -> dict[str, Any]:
    """One row of the CSV, an empty text where nothing is on record."""
    known, model = vectors.provenance, study.model(key)
    return {
        "model": model.label, "key": key, "from": vectors.source, "repo_id": model.repo_id or known.get("repo_id", ""),
        "commit": vectors.commit or "", **{name: known.get(name, "") for name in _OF_THE_FILE},
        "norm": vectors.norm_type, "channels": vectors.hidden_size, "tensors": len(vectors.stored),
        "note": " ".join(filter(None, [model.note, *vectors.notes])),
        "record": "; ".join(f"{name}={value}" for name, value in known.items() if name not in _SAID and value),
    }  # fmt: skip


def _vector_rows(study: Study, key: str, vectors: NormVectors) -> Iterator[dict[str, Any]]:
    """A row a stored tensor, weight or bias; where no commit is on record, it comes from a package or what was read."""
    origin = _at_commit(vectors, vectors.provenance.get("package") or vectors.source)
    for role, found in vectors.roles.items():
        for kind, names in (("weight", found.names), ("bias", found.bias_names)):
            for layer, name in zip(found.layers.tolist(), names, strict=False):
                source = vectors.tensors[name]
                yield {
                    "model": study.model(key).label, "key": key, "from": origin,
                    "role": role, "layer": layer if layer >= 0 else None, "kind": kind, "tensor": name,
                    "dtype": source.dtype, "shape": "×".join(map(str, vectors.stored[name].shape)),
                    "shard": source.shard, "start": source.start, "stop": source.stop, "sha256": source.sha256,
                }  # fmt: skip


def _says(found: StudyVectors, n_tensors: int) -> str:
    n_models = count(len(found.vectors), "model")
    commits = sum(one.commit is not None for one in found.vectors.values())
    holds = f"{n_models}, {count(n_tensors, 'stored vector')}: weights γ and, where a family has them, biases."
    rows = [
        ("Holds", [holds]),
        ("Commit", [f"On record for {commits} of {n_models}; one that was not read from the Hub has none."]),
        ("Check", ["The hash of a row is that of exactly the bytes [start, stop) of its shard, as stored there."]),
    ]
    return markup.says(rows, "Holds")


def _models_table(models: pd.DataFrame, mark: str) -> str:
    shown = models.drop(columns=["key", "wheel_sha256", "file_bytes", "record"]).replace("", "none recorded")
    # A column in which nothing is on record for any model is one sentence in the caption, not a column.
    empty = [name for name in shown.columns if (shown[name] == "none recorded").all()]
    shown = shown.drop(columns=empty).set_index("model")
    says = f"Nothing on record for any: {', '.join(map(header_text, empty))}." if empty else ""
    return table(
        shown, "models", f"{mark}Table 1.", "The models.", says, {}, _LABELS, whole=len(shown) < 2,
        csv="provenance_models.csv",
    )  # fmt: skip


def _vectors_table(vectors: pd.DataFrame, mark: str) -> str:
    layers = zip(vectors["layer"], vectors["layer"].isna(), strict=True)
    shown = vectors.assign(
        layer=["" if missing else int(layer) for layer, missing in layers],
        bytes=[f"[{start}, {stop})" for start, stop in zip(vectors["start"], vectors["stop"], strict=True)],
        **{"from": vectors["from"].str.replace(rf"(@\w{{{_SHORT_COMMIT}}})\w{{28}}$", r"\1", regex=True)},
    )
    columns = ["model", "role", "layer", "kind", "tensor", "dtype", "shape", "from", "shard", "bytes", "sha256"]
    says = "A norm outside the blocks has no layer. Commits are shortened here, not in the CSV."
    return table(
        shown[columns].set_index("model"), "vectors", f"{mark}Table 2.", "The vectors, one a row.", says, {}, _LABELS,
        kinds="role", csv="provenance_vectors.csv",
    )  # fmt: skip
