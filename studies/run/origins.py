"""This module writes the provenance page of a study: every model and every stored vector, with where its bytes lie.

Its two tables stand beside it as ``provenance_models.csv`` and ``provenance_vectors.csv``. What is known is what the
extracts themselves have on record; nothing is looked up elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lnsim.checkpoint.vectors import NormVectors
from lnsim.report import markup
from lnsim.report.provenance import at_commit
from lnsim.report.saving import save_csv, write_text
from lnsim.report.table import table
from lnsim.study.catalog import Study
from lnsim.study.vectors import StudyVectors
from lnsim.words import count, header_text

if TYPE_CHECKING:
    import pandas as pd

PAGE = "provenance.html"
"""Name of the page, in the folder of a study's reports."""

_SHORT_COMMIT = 12
_OF_THE_FILE = ("package", "wheel_sha256", "file", "file_bytes", "file_sha256", "licence")
"""What of an extract's record has a column of its own."""

_SAID = {*_OF_THE_FILE, "repo_id", "names_in_file"}
"""That, and what the rows of its vectors say."""

_LABELS = {"from": "repo@commit, else origin", "bytes": "byte range [start, stop)", "file_sha256": "sha256 of the file"}


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
    origin = at_commit(vectors, vectors.provenance.get("package") or vectors.source)
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
