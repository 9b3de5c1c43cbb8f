"""This module measures what the BF16 grid keeps of the pattern of γ.

BF16 has 8 significant bits. A value in [2^e, 2^(e+1)) lies on a grid of step 2^(e-7), and rounding to it leaves an
error of about step / sqrt(12) (root mean square). The signal is what makes one channel differ from another: the
standard deviation of γ over its channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.grid import spacing

__all__ = ["BF16", "pattern_kept", "rounding_by_layer", "rounding_summary"]

BF16 = np.dtype(ml_dtypes.bfloat16)
"""The grid that the checkpoints of the dispute are stored on."""

Floats = npt.NDArray[np.float64]


def pattern_kept(ratio: npt.ArrayLike) -> Floats:
    """Pearson r of a pattern with itself after rounding, when signal and rounding error have this ratio.

    The error is taken as uncorrelated with the pattern, so r = ratio / sqrt(1 + ratio²).
    """
    wide = np.asarray(ratio, dtype=np.float64)
    return np.asarray(wide / np.sqrt(1 + wide**2))


def rounding_by_layer(models: Mapping[str, NormVectors], roles: Sequence[str], seed: int) -> pd.DataFrame:
    """Signal and rounding error of every layer.

    Args:
        models: by label.
        roles: which norms.
        seed: of the jitter that stands in for the digits that vectors stored on the BF16 grid have lost already.

    Returns:
        Columns ``model``, ``role``, ``layer``, ``stored`` (dtype), ``signal`` (standard deviation over the channels,
        ddof 0), ``error`` (rms of step / sqrt(12) over the channels), ``ratio`` (signal over error), ``bits`` (its
        binary logarithm), ``r_kept`` (as ``pattern_kept``), ``levels`` (different BF16 values among the channels),
        ``error_measured`` (rms change by rounding to BF16: of the values where they are stored finer, else of values
        jittered within their steps) and ``r_measured`` (Pearson r of those values before and after).
    """
    frames = [
        _of_role(label, vectors[role], np.random.default_rng([seed, place]))
        for label, vectors in models.items()
        for place, role in enumerate(roles)
    ]
    return pd.concat(frames, ignore_index=True)


def rounding_summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Over the layers of each model and role: least, median and largest ratio, least r kept, and the check.

    ``measured_over_expected`` is the range of ``error_measured / error``; 1 means that step / sqrt(12) was right.
    """
    found = frame.assign(check=frame["error_measured"] / frame["error"])
    groups = found.groupby(["model", "role"], sort=False)
    return groups.agg(
        layers=("layer", "size"), stored=("stored", "first"), ratio_min=("ratio", "min"),
        ratio_median=("ratio", "median"), ratio_max=("ratio", "max"), r_kept_min=("r_kept", "min"),
        levels_min=("levels", "min"), check_min=("check", "min"), check_max=("check", "max"),
    ).reset_index("role")  # fmt: skip


def _of_role(label: str, one: RoleVectors, generator: np.random.Generator) -> pd.DataFrame:
    scale = one.scale.astype(np.float64)
    step = spacing(scale, BF16)
    signal, error = scale.std(axis=1), np.sqrt(np.mean(step**2, axis=1) / 12)
    before = scale if _is_finer(one.stored.dtype) else scale + step * (generator.random(scale.shape) - 0.5)
    after = before.astype(BF16).astype(np.float64)
    return pd.DataFrame(
        {
            "model": label,
            "role": one.role,
            "layer": one.layers,
            "stored": one.stored.dtype.name,
            "signal": signal,
            "error": error,
            "ratio": signal / error,
            "bits": np.log2(signal / error),
            "r_kept": pattern_kept(signal / error),
            "levels": [len(np.unique(row)) for row in scale.astype(BF16).view(np.uint16)],
            "error_measured": np.sqrt(np.mean((after - before) ** 2, axis=1)),
            "r_measured": [float(np.corrcoef(x, y)[0, 1]) for x, y in zip(before, after, strict=True)],
        }
    )


def _is_finer(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has more significant bits than BF16."""
    nmant = [int(ml_dtypes.finfo(kind).nmant) for kind in (dtype, BF16)]  # type: ignore[no-untyped-call]
    return nmant[0] > nmant[1]
