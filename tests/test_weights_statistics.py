"""The sums over pairs of real matrices: their record, their arithmetic, and what they say of known relations."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "data" / "build"
FILE = ROOT / "data" / "weights_statistics" / "small_models.csv"
FACTS = tomllib.loads((BUILD / "small_models.toml").read_text(encoding="utf-8"))["model"]


@pytest.fixture
def table() -> pd.DataFrame:
    found = pd.read_csv(FILE, comment="#")
    found["cosine"] = found.sum_ab / np.sqrt(found.sum_aa * found.sum_bb)
    return found.assign(z=(found.sum_ab - found.sum_rows_mean) / found.sum_rows_std)


def between(table: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    return table[(table.a == a) & (table.b == b) & (table.order == "kept")]


def test_the_file_names_the_weight_files_on_record_by_their_hashes() -> None:
    told = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    known = {fact["file_sha256"]: fact["package"] for fact in FACTS}
    assert len(told) == 4
    assert all(known[line.rpartition(" ")[2]] in line for line in told)


def test_the_sums_belong_together_and_each_pair_stands_once(table: pd.DataFrame) -> None:
    expected = table.sum_aa + table.sum_bb - 2 * table.sum_ab
    assert table.sum_dd.to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9)
    assert not table.duplicated(["kind", "a", "layer_a", "b", "layer_b", "order"]).any()
    assert np.isfinite(table.select_dtypes("number")).all(axis=None)


def test_a_fine_tune_keeps_every_matrix_and_other_pairs_lie_near_zero(table: pd.DataFrame) -> None:
    tuned = between(table, "minilm", "sre")
    same = tuned[tuned.layer_a == tuned.layer_b]
    assert len(same) == 36
    assert (same.cosine > 0.999).all()
    assert (same.z > 80).all()
    for other in ("l3", "e5"):
        assert (between(table, "minilm", other).z.abs() < 5).all()


def test_four_bit_blocks_are_multiplied_out_and_a_matrix_gives_itself_out_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [str(BUILD), *sys.path])
    from matrices import InMemory, multiplied_out

    block = np.float16(0.5).tobytes() + bytes([0x1F] * 16)  # low halves 15, high halves 1
    assert multiplied_out(block).tolist() == [3.5] * 16 + [-3.5] * 16
    whole = InMemory(np.arange(10.0).reshape(5, 2))
    assert (whole.shape, [len(part) for part in whole.blocks(2)]) == ((5, 2), [2, 2, 1])
