"""Two models summed up: the numbers of the notebooks' own functions, and a reason for whatever is not there."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from made_vectors import drawn, made, noisy, stack

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.cells import cells
from lnsim.measure.cells import tests as tested
from lnsim.measure.compare import PairSummary, RoleSummary, summarise_pair
from lnsim.measure.permutation import permutation_test

N, SEED = 499, 3
ROWS = stack(12)


@pytest.fixture(scope="module")
def minilm() -> NormVectors:
    return lnsim.load("all-minilm-l6-v2")


@pytest.fixture(scope="module", params=["sre-minilm-l6", "multilingual-e5-small", "paraphrase-minilm-l3-v2"])
def other(request: pytest.FixtureRequest) -> NormVectors:
    return lnsim.load(request.param)


@pytest.fixture(scope="module")
def found(minilm: NormVectors, other: NormVectors) -> PairSummary:
    return summarise_pair(minilm, other, N, SEED)


def joined(*models: NormVectors) -> NormVectors:
    """One model with the roles of all of these."""
    return replace(models[0], roles={role: one for model in models for role, one in model.roles.items()})


@pytest.mark.parametrize("role", ["post_attention", "post_mlp", "embedding"])
def test_means_and_p_are_those_of_the_frames_that_notebooks_compute_with(
    minilm: NormVectors, other: NormVectors, found: PairSummary, role: str
) -> None:
    models = {"a": minilm, "b": other}
    rows = tested(models, [("a", "b")], found.roles, N, SEED).set_index("role")
    row, one = rows.loc[role], found.roles[role]
    assert one.n_layers_compared == row["layers"]
    matched = cells(models, [("a", "b")], [role], ["cosine", "changed_ratio", "rel_l2"]).query("offset == 0")
    assert one.cosine_mean == pytest.approx(matched.cosine.mean(), abs=1e-12)
    assert (one.changed_ratio, one.rel_l2_mean) == pytest.approx((matched.changed_ratio.mean(), matched.rel_l2.mean()))
    assert (one.pearson_mean, one.spearman_mean) == pytest.approx((row["r"], row["rank_r"]), abs=1e-12)
    assert one.pvalue == row["pvalue"]
    assert [layer["cosine"] for layer in one.by_layer] == pytest.approx(matched.cosine.tolist(), abs=1e-12)
    scales = [model[role].scale[[model[role].row(layer) for layer in one.layers]] for model in (minilm, other)]
    null = permutation_test(*scales, N, SEED)
    assert (one.pvalue, one.null_mean, one.null_std) == (null.pvalue, null.null_mean, null.null_std)


@pytest.mark.parametrize("role", ["post_attention", "post_mlp"])
def test_the_alignment_is_what_a_loop_over_the_matrix_of_all_layers_finds(
    minilm: NormVectors, other: NormVectors, found: PairSummary, role: str
) -> None:
    every = cells({"A": minilm, "B": other}, [("A", "B")], [role])
    matrix = every.pivot(index="layer_a", columns="layer_b", values="pearson")
    one = found.roles[role]
    offsets = every.groupby("offset").pearson.agg(["size", "mean"])
    assert one.best_offset == offsets["mean"][offsets["size"] >= min(matrix.shape) / 2].idxmax()
    common = matrix.index.intersection(matrix.columns)
    assert one.alignment_rate == np.mean([matrix.loc[layer].idxmax() == layer for layer in common])
    gaps = [matrix.loc[layer, layer] - matrix.loc[layer].drop(layer).max() for layer in common]
    assert one.margin == pytest.approx(np.mean(gaps), abs=1e-12)


def spiked() -> list[np.ndarray]:
    """Strangers with one extreme channel in common."""
    rows = np.random.default_rng(5).normal(1.0, 0.1, size=(2, 3, 256))
    rows[..., 7] = 9.0
    return list(rows)


SAME = drawn(1, role="other/x")
MADE = {
    "copy": (made(ROWS), made(ROWS.copy()), "identical"),
    "fine-tune": (made(ROWS), made(noisy(ROWS)), "one_by_one"),
    "first layers cut": (made(ROWS), made(noisy(ROWS[4:])), "rearranged"),
    "every second layer": (made(ROWS), made(noisy(ROWS[1::2])), "rearranged"),
    "expanded": (made(ROWS), made(noisy(ROWS[[*range(8), *range(4, 12)]])), "rearranged"),
    "stranger": (made(ROWS), made(stack(12, seed=1)), "none"),
    "channels permuted": (made(ROWS), made(ROWS[:, np.random.default_rng(1).permutation(ROWS.shape[1])]), "none"),
    "one extreme channel": (*map(made, spiked()), "none"),
    "the same norm without a role": (joined(drawn(2), SAME), joined(drawn(3), SAME), "none"),
    "copy but for the norms of a head": (
        joined(drawn(1), drawn(2, role="k_norm")), joined(drawn(1), drawn(3, role="k_norm")), "one_by_one"),
}  # fmt: skip


@pytest.mark.parametrize(("a", "b", "key"), MADE.values(), ids=MADE)
def test_a_made_pair_gets_its_sentence(a: NormVectors, b: NormVectors, key: str) -> None:
    assert summarise_pair(a, b, 1999).judgement.key == key


def test_equal_weights_with_other_biases_are_not_identical() -> None:
    one = made(ROWS)
    role = one["pre_mlp"]
    biases = [replace(role, bias=role.scale * k, stored_bias=role.stored * k) for k in (0, 1)]
    models = [replace(one, roles={"pre_mlp": changed}) for changed in biases]
    assert summarise_pair(models[0], models[1], 19).judgement.key != "identical"
    assert summarise_pair(one, models[0], 19).judgement.key != "identical"
    assert summarise_pair(models[1], models[1], 19).judgement.key == "identical"


def test_roles_and_layers_that_only_one_has_are_named() -> None:
    a = joined(drawn(1, [0, 1, 2, 5]), drawn(2, role="final", layers=[-1]), drawn(5, size=32, role="post_mlp"))
    b = joined(drawn(3, [1, 2, 3, 4]), drawn(4, role="pre_attention"), drawn(6, size=16, role="post_mlp"))
    told: list[tuple[int, int]] = []
    found = summarise_pair(a, b, 9, progress=lambda done, planned: told.append((done, planned)))
    assert told == [(1, 2), (2, 2)]
    assert list(found.roles) == ["pre_mlp"]
    assert found.roles["pre_mlp"].layers == (1, 2)
    assert found.judgement.key == "too_few"  # 9 permutations decide nothing
    assert dict(found.not_compared) == {
        "final": "only a has it",
        "pre_attention": "only b has it",
        "pre_mlp": "only a has layers 0, 5; only b has layers 3 to 4",
        "post_mlp": "their hidden sizes are 32 and 16, and no channel of one is a channel of the other",
    }


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (drawn(1), drawn(2, size=32), r"their hidden sizes are 64 and 32, .* \(pre_mlp\)\.$"),
        (drawn(1, [0, 1]), drawn(2, [2, 3]), r"no layer number in common \(pre_mlp\)\.$"),
        (drawn(1), drawn(2, role="post_mlp"), "Only roles of the same name are compared; 'made' has pre_mlp and"),
    ],
    ids=["size", "layers", "roles"],
)
def test_nothing_in_common_is_a_verdict_that_says_why(a: NormVectors, b: NormVectors, message: str) -> None:
    found = summarise_pair(a, b)
    assert (found.judgement.key, dict(found.roles)) == ("not_comparable", {})
    assert re.search(message, found.judgement.sentence())


def test_a_constant_layer_leaves_the_correlations_undefined_with_the_reason() -> None:
    rows = drawn(1)["pre_mlp"].scale.copy()
    rows[2] = 1.0
    found = summarise_pair(drawn(2), made(rows), 199)
    one = found.roles["pre_mlp"]
    assert one.cosine_mean is not None
    assert {one.pearson_mean, one.spearman_mean, one.pvalue, one.null_std, one.margin} == {None}
    assert one.notes[0] == "pearson_mean is not defined: layer 2 of b is constant"
    assert found.judgement.key == "none"  # by the other layers
    assert dict(found.judgement.rows.apart) == {"pre_mlp": "γ has no pattern in layer 2"}
    flat = summarise_pair(drawn(2), made(np.ones_like(rows)), 199)
    assert flat.judgement.sentence() == "Not comparable: γ has no pattern in layers 0 to 4 (pre_mlp)."


def test_values_that_are_not_finite_leave_every_mean_undefined() -> None:
    rows = drawn(1)["pre_mlp"].scale.copy()
    rows[0, 0] = np.nan
    one = summarise_pair(made(rows), drawn(2), 9).roles["pre_mlp"]
    assert {one.cosine_mean, one.pearson_mean, one.rel_l2_mean} == {None}
    assert one.notes[0].startswith("cosine_mean is not defined: layer 0 of a holds a value that is not finite")


def test_bits_of_different_dtypes_are_not_compared() -> None:
    a = drawn(1)
    half = replace(a["pre_mlp"], stored=a["pre_mlp"].scale.astype(ml_dtypes.bfloat16))
    one = summarise_pair(a, replace(a, roles={"pre_mlp": half}), 9).roles["pre_mlp"]
    assert one.changed_ratio is None
    assert "changed_ratio is not defined: a is stored as float32, b as bfloat16" in one.notes


def test_a_single_layer_has_no_alignment() -> None:
    one = summarise_pair(drawn(1, [-1], role="final"), drawn(2, [-1], role="final"), 9).roles["final"]
    assert {one.best_offset, one.alignment_rate, one.margin} == {None}
    assert one.pvalue is not None
    (note,) = one.notes
    assert note == "best_offset, alignment_rate, margin are not defined: there is one layer, and no other to choose"


def test_norms_of_a_head_are_measured_and_take_no_part_in_the_verdict() -> None:
    q = drawn(5, role="q_norm", size=32)
    found = summarise_pair(joined(drawn(1), q), joined(drawn(2), q), 199)
    assert found.judgement.key == "none"
    assert found.roles["q_norm"].pvalue == 1 / 200
    assert found.judgement.rows.roles == (("pre_mlp", "pre_mlp"),)
    apart = dict(found.judgement.rows.apart)
    assert apart == {"q_norm": "rotary positions treat a head's channels alike in all models"}
    assert summarise_pair(q, q, 9).judgement.key == "not_comparable"


def test_a_summary_holds_no_undefined_number() -> None:
    one = summarise_pair(drawn(1), drawn(2), 9).roles["pre_mlp"]
    with pytest.raises(ComparisonError, match="None for what is undefined"):
        replace(one, margin=float("nan"))
    assert isinstance(one, RoleSummary)
