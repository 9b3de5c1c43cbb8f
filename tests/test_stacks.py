"""Tests of stacks of models against each other: layers by number, the MTP block apart, tables from the arrays."""

from __future__ import annotations

import numpy as np
import pytest

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure import stack_tables
from lnsim.measure.metrics import pairwise
from lnsim.measure.stacks import MTP, StackPair, mtp_table, overview, stack_pairs, with_mtp
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

LABELS = {"a": "A", "b": "B"}
GROUPS = {("a", "b"): "related"}


def role(name: str, layers: list[int], seed: int) -> RoleVectors:
    scale = np.random.default_rng(seed).normal(1, 0.1, size=(len(layers), 64)).astype(np.float32)
    names = tuple(f"layers.{layer}.{name}" for layer in layers)
    return RoleVectors(name, np.array(layers), scale, None, scale, None, names, "rmsnorm")


def model(layers: list[int], seed: int = 0, mtp: bool = False) -> NormVectors:
    roles = {"pre_mlp": role("pre_mlp", layers, seed)}
    roles |= {"mtp/pre_mlp": role("mtp/pre_mlp", [max(layers) + 1], seed + 50)} if mtp else {}
    return NormVectors("source", None, "llama", "rmsnorm", 64, roles)


def one(a: NormVectors, b: NormVectors) -> StackPair:
    (stack,) = stack_pairs([["a", "b"]], {"a": a, "b": b}, ["pre_mlp"], LABELS, GROUPS)
    return stack


@pytest.fixture(scope="module")
def small() -> tuple[list[StackPair], dict[str, NormVectors]]:
    study = load_study("small_models")
    pairs = [["minilm", "sre"], ["minilm", "l3"], ["minilm", "e5"]]
    models = dict(study_vectors(study, "auto", ["minilm", "sre", "l3", "e5"]).vectors)
    groups = {(pair.a, pair.b): pair.group for pair in study.pairs()}
    return stack_pairs(pairs, models, ["post_attention", "post_mlp"], study.labels, groups), models


def test_the_mtp_block_is_no_layer_of_the_stack() -> None:
    stack = one(model([0, 1, 2]), model([0, 1], mtp=True))
    assert stack.matrices["r"].shape == (3, 2)
    assert overview([stack]).loc[0, ["matched", "unmatched", "mtp_blocks"]].tolist() == [2, 1, 1]
    assert stack_tables.diagonal_table([stack])["layer"].tolist() == [0, 1]


def test_the_mtp_block_stands_beside_the_matrix_behind_a_gap() -> None:
    a, b = model([0, 1, 2], mtp=True), model([0, 1], 1, mtp=True)
    framed = with_mtp(one(a, b), "cosine")
    assert list(framed.columns) == ["0", "1", "", MTP]
    assert list(framed.index) == ["0", "1", "2", "", MTP]
    assert framed.loc["", :].isna().all()
    assert framed[""].isna().all()
    expected = pairwise(a["pre_mlp"].scale, b["mtp/pre_mlp"].scale, "cosine")[:, 0]
    assert framed.loc[["0", "1", "2"], MTP].tolist() == pytest.approx(expected.tolist())
    row = pairwise(a["mtp/pre_mlp"].scale, b["pre_mlp"].scale, "cosine")[0]
    assert framed.loc[MTP, ["0", "1"]].tolist() == pytest.approx(row.tolist())


def test_a_block_is_measured_against_every_stack_and_models_without_say_so() -> None:
    models = {"a": model([0, 1, 2], mtp=True), "b": model([0, 1], 1)}
    found = mtp_table(models, ["pre_mlp"], LABELS)
    assert found["against"].tolist() == ["A", "B", "no MTP block"]
    assert found["n"].tolist() == [3, 2, 0]
    assert found.loc[2, ["cosine_min", "r_mean"]].isna().all()
    r = pairwise(models["a"]["mtp/pre_mlp"].scale, models["a"]["pre_mlp"].scale, "pearson")[0]
    assert found.loc[0, "r_largest"] == pytest.approx(r[np.abs(r).argmax()])
    assert found.loc[0, "at_layer"] == np.abs(r).argmax()


def test_a_missing_layer_shifts_no_other() -> None:
    whole, gap = model([0, 1, 2, 3]), model([0, 1, 3])
    gap["pre_mlp"].scale[:] = whole["pre_mlp"].scale[[0, 1, 3]]
    found = stack_tables.diagonal_table([one(whole, gap)])
    assert found["layer"].tolist() == [0, 1, 3]
    assert found["r"].tolist() == pytest.approx([1, 1, 1])


def test_a_pair_with_a_missing_model_is_left_out() -> None:
    assert stack_pairs([["a", "b"]], {"a": model([0, 1])}, ["pre_mlp"], LABELS, GROUPS) == []


def test_tables_and_matrices_hold_the_same_numbers(small: tuple[list[StackPair], dict[str, NormVectors]]) -> None:
    stacks, _ = small
    diagonal = stack_tables.diagonal_table(stacks)
    statistics = stack_tables.statistics_table(stacks)
    for stack in stacks:
        own = diagonal[(diagonal.pair == stack.label) & (diagonal.role == stack.role)]
        summed = statistics[(statistics.pair == stack.label) & (statistics.role == stack.role)].set_index(
            ["measure", "cells"]
        )
        for measure in ("cosine", "r"):
            assert own[measure].mean() == pytest.approx(summed.loc[(measure, "matched"), "mean"])
            assert own[measure].std(ddof=0) == pytest.approx(summed.loc[(measure, "matched"), "std"])
        assert len(own) == summed.loc[("r", "matched"), "n"]
    cell = stack_tables.cell_table(stacks, [[5, 2], [40, 0]])
    assert len(cell) == len(stacks)
    assert cell.loc[0, "r"] == pytest.approx(stacks[0].matrices["r"].loc[5, 2])


def test_the_values_on_record_come_out(small: tuple[list[StackPair], dict[str, NormVectors]]) -> None:
    stacks, models = small
    found = stack_tables.alignment_table(stacks, models, 1999, seed=0).set_index(["pair", "role"])
    ancestor = found.loc["MiniLM-L6 × MiniLM-L3"]
    assert ancestor.r_mean.round(3).tolist() == [0.436, 0.558]
    assert ancestor.p_channels.tolist() == [1 / 2000] * 2
    assert (ancestor.margin < 0).all()
    strangers = found.loc["MiniLM-L6 × e5"]
    assert strangers.r_mean.round(3).tolist() == [0.005, 0.024]
    assert strangers.p_channels.tolist() == pytest.approx([0.45, 0.27], abs=0.04)
    assert strangers.p_rank.tolist() == pytest.approx([0.14, 0.24], abs=0.02)
    tuned = found.loc["MiniLM-L6 × sre-MiniLM"]
    assert (tuned.rate == 1).all()
    assert (tuned.offset == 0).all()
    assert (tuned.margin > 0).all()
    assert (found.null_std / found.null_std_exact).between(0.93, 1.07).all()
    assert (found.p_holm >= found.p_channels).all()


def test_offsets_and_nearest_layers_name_pair_and_role(
    small: tuple[list[StackPair], dict[str, NormVectors]],
) -> None:
    stacks, _ = small
    offsets, nearest = stack_tables.offset_table(stacks), stack_tables.nearest_table(stacks)
    matched = offsets[(offsets.offset == 0) & (offsets.role == "post_mlp")].set_index("pair")
    assert matched.loc["MiniLM-L6 × MiniLM-L3", ["n", "r"]].tolist() == pytest.approx([3, 0.5578], abs=1e-4)
    assert len(nearest) == sum(len(stack.b.layers) for stack in stacks)
    best = stacks[1].matrices["r"]
    assert nearest[nearest.pair == stacks[1].label]["value"].max() >= best.to_numpy().max()


def test_pairs_stand_side_by_side_at_spaced_layers(small: tuple[list[StackPair], dict[str, NormVectors]]) -> None:
    stacks, _ = small
    wide = stack_tables.beside(stack_tables.diagonal_table(stacks), "post_mlp", n=3)
    assert wide.index.tolist() == [0, 2, 4]
    assert np.isnan(wide.loc[4, ("MiniLM-L6 × MiniLM-L3", "r")])
