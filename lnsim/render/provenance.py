"""This module writes the provenance page of a study: every model, and every stored vector with where its bytes lie.

The two tables stand beside the page as ``provenance_models.csv`` and ``provenance_vectors.csv``. What is known is what
the extracts themselves have on record; nothing is looked up elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from lnsim.checkpoint.vectors import NormVectors
from lnsim.render import markup
from lnsim.render.html import REPLICA_BANNER, TEMPLATES, asset
from lnsim.render.saving import write_whole
from lnsim.render.table import table
from lnsim.render.words import count
from lnsim.study.catalog import Study
from lnsim.study.vectors import StudyVectors
from lnsim.text import printable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PAGE", "model_frame", "vector_frame", "write_provenance"]

PAGE = "provenance.html"
"""Name of the page, in the folder of a study's reports."""

_MODELS_CSV, _VECTORS_CSV = "provenance_models.csv", "provenance_vectors.csv"
_SHORT_COMMIT = 12
_NAMED = {"repo_id", "package", "wheel_sha256", "file", "file_bytes", "file_sha256", "licence", "names_in_file"}
"""What of an extract's record has a column of its own, or is said by the rows of its vectors."""

_LABELS = {"from": "repo@commit, else origin", "bytes": "byte range [start, stop)", "file_sha256": "sha256 of the file"}


def write_provenance(study: Study, found: StudyVectors, folder: Path) -> Path:
    """Write a study's provenance page and its two CSVs.

    Args:
        study: the study.
        found: its vectors, all of them; a model that has none is named with its reason.
        folder: that of the study's reports.

    Returns:
        The page.
    """
    models, vectors = model_frame(study, found), vector_frame(study, found.vectors)
    mark = {"source": "REPLICA, synthetic"} if found.kind == "replica" else {}
    for name, frame in ((_MODELS_CSV, models), (_VECTORS_CSV, vectors)):
        text = printable(frame.assign(**mark).to_csv(lineterminator="\n", index=False), keep="\n\t")
        write_whole(folder / name, text.encode("utf-8"))
    html = _template().render(
        study=study,
        badge=markup.badge(found.kind),
        banner=REPLICA_BANNER if found.kind == "replica" else "",
        says=_says(found, len(vectors)),
        models=_models_table(models, found.kind),
        vectors=_vectors_table(vectors, found.kind),
        missing=[(study.model(key).label, reason) for key, reason in found.missing.items()],
        css=asset("report.css"),
        script=asset("theme.js") + asset("tables.js"),
    )
    return write_whole(folder / PAGE, (printable(html.strip(), keep="\n\t") + "\n").encode("utf-8"))


def model_frame(study: Study, found: StudyVectors) -> pd.DataFrame:
    """One row a model whose vectors are there; columns as in the CSV, an empty text where nothing is on record."""
    import pandas as pd

    return pd.DataFrame([_model_row(study, key, vectors) for key, vectors in found.vectors.items()])


def vector_frame(study: Study, vectors: Mapping[str, NormVectors]) -> pd.DataFrame:
    """One row a stored tensor, weight or bias: role, layer, name, dtype, shape, origin, shard, byte range, hash.

    Args:
        study: the study.
        vectors: of its models, by key.
    """
    import pandas as pd

    rows = [
        {"model": study.model(key).label, "key": key, "from": _origin(one), **row}
        for key, one in vectors.items()
        for row in _vector_rows(one)
    ]
    frame = pd.DataFrame(rows)
    return frame.assign(layer=frame["layer"].astype("Int64"))


def _model_row(study: Study, key: str, vectors: NormVectors) -> dict[str, Any]:
    known, model = vectors.provenance, study.model(key)
    return {
        "model": model.label, "key": key, "from": vectors.source, "repo_id": model.repo_id or known.get("repo_id", ""),
        "commit": vectors.commit or "", "package": known.get("package", ""),
        "wheel_sha256": known.get("wheel_sha256", ""), "file": known.get("file", ""),
        "file_bytes": known.get("file_bytes", ""), "file_sha256": known.get("file_sha256", ""),
        "licence": known.get("licence", ""), "norm": vectors.norm_type, "channels": vectors.hidden_size,
        "tensors": len(vectors.stored), "note": " ".join(filter(None, [model.note, *vectors.notes])),
        "record": "; ".join(f"{name}={value}" for name, value in known.items() if name not in _NAMED and value),
    }  # fmt: skip


def _vector_rows(vectors: NormVectors) -> Iterator[dict[str, Any]]:
    stored = vectors.stored
    for role, found in vectors.roles.items():
        for kind, names in (("weight", found.names), ("bias", found.bias_names)):
            for layer, name in zip(found.layers.tolist(), names, strict=False):
                source = vectors.tensors[name]
                yield {
                    "role": role, "layer": layer if layer >= 0 else None, "kind": kind, "tensor": name,
                    "dtype": source.dtype, "shape": "×".join(map(str, stored[name].shape)), "shard": source.shard,
                    "start": source.start, "stop": source.stop, "sha256": source.sha256,
                }  # fmt: skip


def _origin(vectors: NormVectors) -> str:
    """``repo@commit``, or where no commit is on record, the package or the name of what was read."""
    if vectors.commit:
        return f"{vectors.source}@{vectors.commit}"
    return vectors.provenance.get("package") or vectors.source


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


def _models_table(models: pd.DataFrame, kind: str) -> str:
    shown = models.drop(columns=["key", "wheel_sha256", "file_bytes", "record"]).replace("", "none recorded")
    # A column in which nothing is on record for any model is one sentence in the caption, not a column.
    empty = [name for name in shown.columns if (shown[name] == "none recorded").all()]
    shown = shown.drop(columns=empty).set_index("model")
    says = f"Nothing on record for any: {', '.join(_words(name) for name in empty)}." if empty else ""
    return table(
        shown, "models", _label(kind, 1), "The models.", says, {}, _LABELS, whole=len(shown) < 2, csv=_MODELS_CSV
    )


def _vectors_table(vectors: pd.DataFrame, kind: str) -> str:
    layers = zip(vectors["layer"], vectors["layer"].isna(), strict=True)
    shown = vectors.assign(
        layer=["" if missing else int(layer) for layer, missing in layers],
        bytes=[f"[{start}, {stop})" for start, stop in zip(vectors["start"], vectors["stop"], strict=True)],
    )
    shown["from"] = shown["from"].map(_shortened)
    columns = ["model", "role", "layer", "kind", "tensor", "dtype", "shape", "from", "shard", "bytes", "sha256"]
    says = "A norm outside the blocks has no layer. Commits are shortened here, not in the CSV."
    return table(
        shown[columns].set_index("model"), "vectors", _label(kind, 2), "The vectors, one a row.", says, {}, _LABELS,
        kinds="role", csv=_VECTORS_CSV,
    )  # fmt: skip


def _shortened(origin: str) -> str:
    name, at, commit = origin.rpartition("@")
    return f"{name}@{commit[:_SHORT_COMMIT]}" if at and len(commit) == 40 else origin


def _words(name: str) -> str:
    return name.replace("_", " ")


def _label(kind: str, number: int) -> str:
    return f"{'REPLICA. ' if kind == 'replica' else ''}Table {number}."


def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, autoescape=False, trim_blocks=True).get_template("provenance.html.j2")
