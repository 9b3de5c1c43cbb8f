"""Towers: a comparison sets the norms of one tower against those of the tower of the same name, and of no other."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from command_line import run
from safetensors_bytes import checkpoint_files, write_files
from traced_families import TRACED, shapes_of

import lnsim
from lnsim.checkpoint.extract import Extracted, read_pair
from lnsim.checkpoint.reading import Question
from lnsim.errors import ComparisonError, RoleError
from lnsim.measure.comparable import check_offsets, common_roles, same_bits, why_not_bits
from lnsim.measure.compare import summarise_pair
from lnsim.paths import stored_models

BF16 = ml_dtypes.bfloat16
Tensors = dict[str, npt.NDArray[Any]]
SIZE = 64


def gammas(names: list[str], seed: int) -> Tensors:
    draw = np.random.default_rng(seed)
    return {name: draw.lognormal(-0.5, 0.4, SIZE).astype(BF16) for name in names}


def t5(seed: int = 0) -> tuple[Tensors, Tensors, dict[str, Any]]:
    encoder = [f"encoder.block.{i}.layer.{k}.layer_norm.weight" for i in range(4) for k in range(2)]
    decoder = [f"decoder.block.{i}.layer.{k}.layer_norm.weight" for i in range(4) for k in range(3)]
    config = {"model_type": "t5", "num_layers": 4, "num_decoder_layers": 4, "d_model": SIZE}
    first = gammas([*encoder, "encoder.final_layer_norm.weight"], seed)
    return first, gammas([*decoder, "decoder.final_layer_norm.weight"], seed + 100), config


def siglip(seed: int = 0) -> tuple[Tensors, Tensors, dict[str, Any]]:
    names = [f"encoder.layers.{layer}.layer_norm{number}" for layer in range(3) for number in (1, 2)]
    vision, text = (
        [f"{tower}_model.{name}.{kind}" for name in (*names, final) for kind in ("weight", "bias")]
        for tower, final in (("vision", "post_layernorm"), ("text", "final_layer_norm"))
    )
    parts = {f"{kind}_config": {"model_type": f"siglip_{kind}_model", "num_hidden_layers": 3, "hidden_size": SIZE}
             for kind in ("text", "vision")}  # fmt: skip
    return gammas(vision, seed), gammas(text, seed + 1), {"model_type": "siglip"} | parts


MADE = {"t5": (t5, "encoder"), "siglip": (siglip, "vision")}


def folders(where: Path, name: str) -> tuple[Path, Path]:
    """A model with both its towers, and the second of them alone."""
    alone, other, config = MADE[name][0]()
    whole = write_files(where / "whole", checkpoint_files(alone | other, config, 2))
    return whole, write_files(where / "alone", checkpoint_files(alone, config))


@pytest.mark.parametrize("name", list(MADE))
@pytest.mark.parametrize("turned", [False, True])
def test_a_model_and_its_own_tower_saved_alone_are_identical(tmp_path: Path, name: str, turned: bool) -> None:
    whole, alone = folders(tmp_path, name)
    pair = (alone, whole) if turned else (whole, alone)
    code, out, err = run("compare", *map(str, pair), "--permutations", "99", "--json")
    found = json.loads(out)
    assert (code, err, found["verdict"]["key"]) == (0, "", "identical")
    assert {one["tower"] for one in found["models"].values()} == {MADE[name][1]}
    assert {round(one["cosine_mean"], 12) for one in found["roles"].values()} == {1.0}
    assert "pre_attention" in found["roles"]
    _, told, _ = run("compare", *map(str, pair), "--permutations", "99")
    assert f"those of the {MADE[name][1]} tower, not of the" in told


def test_a_role_may_be_written_with_its_tower_though_that_is_the_main_one_of_one_of_them(tmp_path: Path) -> None:
    whole, alone = folders(tmp_path, "t5")
    for role in ("encoder/pre_attention", "encoder/input_layernorm"):
        assert lnsim.compare(whole, alone, role, n_permutations=99).summary.judgement.key == "identical"


def test_where_only_different_towers_are_there_nothing_is_compared(tmp_path: Path) -> None:
    encoder, decoder, config = t5()
    one = write_files(tmp_path / "encoder", checkpoint_files(encoder, config))
    other = write_files(tmp_path / "decoder", checkpoint_files(decoder, config))
    code, out, err = run("compare", str(one), str(other), "--permutations", "99")
    assert (code, err) == (0, "")
    told = " ".join(out.split())
    assert "Verdict: Not comparable:" in told
    assert "they are norms of two towers, of a's encoder and b's decoder (pre_attention, pre_mlp, final)" in told


def test_an_extract_of_one_role_of_a_tower_still_knows_its_tower(tmp_path: Path) -> None:
    whole, alone = folders(tmp_path, "t5")
    run("extract", str(whole), "--role", "encoder/pre_mlp", "--out", str(tmp_path / "out"))
    (path,) = (tmp_path / "out").iterdir()
    kept = lnsim.load(path)
    assert (list(kept), kept.main_tower) == (["encoder/pre_mlp"], "decoder")
    assert kept["encoder/pre_mlp"].tower == "encoder"
    _, out, _ = run("compare", str(path), str(alone), "--permutations", "99", "--json")
    assert json.loads(out)["verdict"]["key"] == "identical"


def test_a_whole_tower_is_read_by_its_name(tmp_path: Path) -> None:
    whole, _ = folders(tmp_path, "siglip")
    found = lnsim.extract(whole, "vision")
    assert list(found) == ["vision/pre_attention", "vision/pre_mlp", "vision/final"]
    assert list(lnsim.extract(whole, ["text/pre_mlp", "vision/final"])) == ["pre_mlp", "vision/final"]
    with pytest.raises(RoleError, match=r"Selecting role 'audio'.*: it has no such norms"):
        lnsim.extract(whole, "audio")


def test_roles_with_their_towers_where_two_main_towers_meet(tmp_path: Path) -> None:
    whole, alone = (lnsim.extract(path, everything=True) for path in folders(tmp_path, "t5"))
    assert all(one.tower == ("encoder" if "encoder" in role else "decoder") for role, one in whole.roles.items())
    assert (whole.main_tower, whole.towers) == ("decoder", ("encoder", "decoder"))
    assert common_roles(whole, alone) == ("encoder/pre_attention", "encoder/pre_mlp", "encoder/final")
    found = summarise_pair(whole, alone, 99)
    assert found.judgement.rows.identical
    assert found.not_compared["decoder/pre_attention"] == "only a has it"


# "Identical" and the cosine can never contradict each other


def check_agreement(a: lnsim.NormVectors, b: lnsim.NormVectors) -> None:
    for role in common_roles(a, b):
        cosines = np.diag(lnsim.pairwise(a[role].scale, b[role].scale, "cosine"))
        if same_bits(a[role], b[role]) or (not why_not_bits(a[role], b[role]) and not changed(a[role], b[role])):
            assert np.nan_to_num(cosines, nan=1.0) == pytest.approx(1, abs=1e-12), (a.source, b.source, role)


def changed(a: lnsim.RoleVectors, b: lnsim.RoleVectors) -> float:
    return float(np.diag(lnsim.pairwise(a.stored, b.stored, "changed_ratio")).sum())


def test_identical_means_a_cosine_of_one_for_all_stored_models() -> None:
    """Each against itself, and against the same bits read as gamma minus one."""
    for path in stored_models().values():
        one = lnsim.load(path)
        shifted = {role: replace(v, scale=v.scale + np.float32(1), offset=1.0) for role, v in one.roles.items()}
        check_agreement(one, one)
        check_agreement(one, replace(one, roles=shifted))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))])
def test_identical_means_a_cosine_of_one_for_every_family(tmp_path: Path, part: int) -> None:
    """Each traced model against itself and against its bare file; one without a table is none of this test's."""
    n_compared = 0
    for name in list(TRACED)[part::8]:
        shapes, config = shapes_of(TRACED[name]), TRACED[name]["config"]
        draw = np.random.default_rng(1)
        tensors = {key: draw.normal(0.5, 0.2, shape).astype(np.float32) for key, shape in shapes.items()}
        whole = write_files(tmp_path / name, checkpoint_files(tensors, config))
        bare = write_files(tmp_path / f"{name}-bare", checkpoint_files(tensors))
        for other in (whole, bare):
            found = read_pair(Question(str(whole)), Question(str(other)))
            read = [one.vectors for one in found if isinstance(one, Extracted)]
            if len(read) < 2:
                continue  # no table, or none without the config
            with contextlib.suppress(ComparisonError):  # where the bare file does not tell its tower
                check_offsets(*read)
                check_agreement(*read)
                n_compared += 1
    assert n_compared > 20
