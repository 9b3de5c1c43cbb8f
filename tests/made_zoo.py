"""A small zoo for tests: made models of known lineage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lnsim.checkpoint.vectors import NormVectors, RoleVectors

__all__ = ["ROLES", "made_models"]

ROLES = ("pre_attention", "pre_mlp")


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
