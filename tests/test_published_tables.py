"""A whole run on the replica, which is built to the 62 printed values of document 001: its tables give them back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from published_001 import BY_LAYER, BY_LAYER_ALL, GROUPS, LAYER_0, LAYER_10, METRICS, NEIGHBOURS

import lnsim

ROOT = Path(__file__).resolve().parents[1]


def table_of(folder: Path, subject: str, **wanted: object) -> pd.DataFrame:
    frame = pd.read_csv(folder / "tables" / f"{subject}.csv")
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def printed(folder: Path) -> Iterator[tuple[str, float, float]]:
    """What it is, as the tables have it, as it was printed."""
    table = partial(table_of, folder)
    labels, role = lnsim.load_study("solar_glm").labels, {"role": "pre_attention"}
    for key in LAYER_0:
        first = table("01_every_model", model=labels[key], **role).set_index("layer").cosine
        beside = table("02_at_layers", name=labels[key], **role).set_index(["layer_a", "layer_b"]).cosine
        for number, rows, values in ((1, first, LAYER_0[key]), (2, beside, NEIGHBOURS[key])):
            found = {place: rows[place] for place in values if place != "mean"}
            found["mean"] = sum(found.values()) / len(found)
            yield from ((f"{number} {key} {place}", found[place], value) for place, value in values.items())
    rows = table("03_pairs", **role).set_index("pair").cosine
    for (a, b), value in LAYER_10.items():
        yield f"3 {a} {b}", rows[f"{labels[a]} × {labels[b]}"], value
    where = {"models": "published", "related": "in", **role}
    rows = table("03_by_layer", kinds="MoE × MoE", **where).set_index("layer")
    for layer, values in BY_LAYER.items():
        for name, value in zip(("cosine_mean", "cosine_std"), values, strict=True):
            yield f"4 {name} {layer}", rows[name][layer], value
    over = table("03_over_layers", which_layers="listed", kinds="MoE × MoE", **where).iloc[0]
    for column, value in zip(("cosine_mean", "cosine_std", "layer_means_std"), BY_LAYER_ALL, strict=True):
        yield f"4 {column}", over[column], value
    for (name, values), kinds in zip(GROUPS.items(), ("MoE × dense", "dense × dense"), strict=True):
        row = table("03_kinds", kinds=kinds, **where).iloc[0]
        for column, value in zip(("cosine_mean", "cosine_std"), values, strict=True):
            yield f"5 {name} {column}", row[column], value
    rows = table("04_single").set_index("comparison")
    for ((a, i), (b, j)), values in METRICS.items():
        row = rows.loc[f"{labels[a]}[{i}] × {labels[b]}[{j}]"]
        for column, value in zip(("cosine", "pearson", "l2"), values, strict=True):
            yield f"6 {a} {i} {b} {j} {column}", row[column], value


@pytest.mark.slow
def test_a_run_on_the_replica_gives_the_printed_values_back_and_finds_nothing_about_a_model(tmp_path: Path) -> None:
    """Every experiment of the ten models: one test, as the run takes minutes and each process would make its own."""
    command = [sys.executable, "run_all.py", "--study", "solar_glm", "--source", "replica", "--reports", str(tmp_path)]
    command += ["--set", "n_permutations=99"]  # no printed value needs more
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "solar_glm"
    # All 62 printed values stand there, 58 to the digit.
    rows = list(printed(folder))
    assert len(rows) == len({name for name, _, _ in rows}) == 62
    assert sum(f"{found:.4f}" == f"{value:.4f}" for _, found, value in rows) >= 58
    assert [(name, found, value) for name, found, value in rows if abs(found - value) > 2e-4] == []
    # Projections are at the distances of 003, with no correlation at all.
    frame = table_of(folder, "08_layer_pairs")
    ends = frame.groupby("kind")["rel_l2"].agg(["min", "max"])
    assert ends.loc["k_proj"].tolist() == pytest.approx([1.160, 1.640], abs=1e-3)
    assert ends.loc["v_proj"].tolist() == pytest.approx([1.194, 2.016], abs=1e-3)
    assert frame["z"].abs().max() < 4
    # Every row says that it is a replica or made without vectors.
    others = {"10_": {"published numbers alone"}, "14_": set()}  # the second one has numbers that others measured
    for path in (folder / "tables").glob("*.csv"):
        frame = pd.read_csv(path)
        sources = set(frame.source) if "source" in frame else set()
        assert sources in ({"REPLICA, synthetic"}, others.get(path.name[:3])), path.name
    # No page finds anything about a model.
    pages = {path.stem[:2]: path.read_text("utf-8") for path in folder.glob("[0-9]*.html")}
    assert len(pages) == len(json.loads((folder / "run.json").read_text())["notebooks"]) >= 12
    for number, page in pages.items():
        assert ("Nothing about models: this page tests the code" in page) == (number not in ("10", "14")), number
    assert "disputed" not in set(table_of(folder, "13_verdicts").group)
