"""This module puts rejection rates beside the range in which they should lie, as readers see them."""

from __future__ import annotations

import pandas as pd

from lnsim.render.words import rounded

__all__ = ["REJECTION_LABELS", "rejection_rows"]

_LEVELS = ("0.05", "0.01")

REJECTION_LABELS = {
    "judged_by": "judged by",
    **{f"at_{level}": f"at {level}" for level in _LEVELS},
    **{f"range_{level}": f"95 % range{' ' * place}" for place, level in enumerate(_LEVELS)},
    **{f"kept_{level}": f"inside{' ' * place}" for place, level in enumerate(_LEVELS)},
    "ks": "KS",
}
"""What heads the columns of ``rejection_rows``; equal heads differ by a blank that readers do not see."""


def rejection_rows(judged: pd.DataFrame) -> pd.DataFrame:
    """The rates of ``measure.calibration.rejections`` with their ranges in words, and the distance KS."""
    shown = pd.DataFrame(index=judged.index)
    for level in _LEVELS:
        shown[f"at_{level}"] = judged[f"at_{level}"]
        ends = zip(judged[f"low_{level}"], judged[f"high_{level}"], strict=True)
        shown[f"range_{level}"] = [f"{rounded(low)} to {rounded(high)}" for low, high in ends]
        shown[f"kept_{level}"] = judged[f"kept_{level}"]
    return shown.assign(ks=judged["ks"])
