"""A small zoo for tests: made models of known lineage, with what is known of every two of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.benchmark.truth import pair_truth
from lnsim.study.catalog import Model, Relation, Study

__all__ = ["DERIVATIONS", "DESIGNS", "MadeLineage", "made_models", "made_truth"]

ROLES = ("pre_attention", "pre_mlp")

_PARENTS = {
    "root": (),
    "child": ("root",),
    "grandchild": ("child",),
    "hidden": ("root",),
    "flat": ("root",),
    "deep": ("root",),
    "other": (),
    "third": (),
    "odd": (),
}

DERIVATIONS = {key: ("" if not parents else f"made {key}") for key, parents in _PARENTS.items()}

DESIGNS = {key: "B" if key == "odd" else "A" for key in _PARENTS}


class MadeLineage:
    """What a study would say of the made models."""

    def __init__(self) -> None:
        made = [
            Model(key=key, label=key, colour="#000000", family="made", kind="dense", parents=parents,
                  derivation=DERIVATIONS[key])
            for key, parents in _PARENTS.items()
        ]  # fmt: skip
        self.models = {model.key: model for model in made}
        self._study = Study("Made", "Made models.", ("stored",), tuple(made))

    def relation(self, a: str, b: str) -> Relation:
        return self._study.relation(a, b)


def made_truth() -> pd.DataFrame:
    return pair_truth(MadeLineage(), DERIVATIONS, DESIGNS, ["made hidden", "made flat"])


def made_models(seed: int = 0, size: int = 48) -> dict[str, NormVectors]:
    """Two roles of three layers: a root, models made from it in several ways, and strangers."""
    rng = np.random.default_rng(seed)
    root = rng.normal(1.0, 0.1, (2, 3, size))
    rows = {
        "root": root,
        "child": root + rng.normal(0, 0.01, root.shape),
        "grandchild": root + rng.normal(0, 0.02, root.shape),
        "hidden": root[:, :, rng.permutation(size)],
        "flat": np.ones_like(root),
        "deep": np.repeat(root, 2, axis=1) + rng.normal(0, 0.01, (2, 6, size)),
        **{key: rng.normal(1.0, 0.1, root.shape) for key in ("other", "third")},
        "odd": rng.normal(0.0, 1.0, root.shape),
    }
    found = {key: _model(values) for key, values in rows.items()}
    biased = {
        role: replace(one, bias=one.scale - 1, stored_bias=one.scale - 1) for role, one in found["odd"].roles.items()
    }
    return found | {"odd": replace(found["odd"], roles=biased)}


def _model(values: np.ndarray) -> NormVectors:
    roles = {}
    for role, block in zip(ROLES, values.astype(np.float32), strict=True):
        names = tuple(f"model.layers.{layer}.{role}.weight" for layer in range(len(block)))
        roles[role] = RoleVectors(role, np.arange(len(block)), block, None, block, None, names, "rmsnorm")
    return NormVectors("made", None, "llama", "rmsnorm", values.shape[2], roles)
