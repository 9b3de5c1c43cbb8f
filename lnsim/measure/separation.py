"""This module asks which measures tell related pairs from strangers, on comparisons of which the truth is known.

It takes the frame of ``lnsim.measure.comparison``. Rows share models and layers, so they are dependent, and their
number says nothing about certainty: no p-value is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.measure.comparison import ALIKE_IS_HIGH, MEASURES

__all__ = ["separation", "separation_by_relation"]

Floats = npt.NDArray[np.float64]


def separation(frame: pd.DataFrame, measures: Sequence[str] = tuple(MEASURES)) -> pd.DataFrame:
    """How well each measure tells related pairs from independent ones.

    Args:
        frame: as ``comparisons`` gives it; rows of other groups are ignored.
        measures: columns judged.

    Returns:
        Index ``measure``; columns ``related`` and ``independent`` (rows with a defined value), their ranges
        ``related_min``, ``related_max``, ``independent_min``, ``independent_max``, and ``in_order``: the share of all
        (related, independent) pairs of rows in which the related one is the more alike, ties counting half. It is 1
        where one threshold parts the groups and 0.5 where the measure ranks at random; NaN where a group is empty.
    """
    rows = {}
    for measure in measures:
        related, strangers = (
            frame.loc[frame["group"] == group, measure].dropna().to_numpy() for group in ("related", "independent")
        )
        sign = 1 if measure in ALIKE_IS_HIGH else -1
        rows[measure] = {
            "related": len(related),
            "independent": len(strangers),
            "related_min": _ends(related)[0],
            "related_max": _ends(related)[1],
            "independent_min": _ends(strangers)[0],
            "independent_max": _ends(strangers)[1],
            "in_order": _in_order(sign * related, sign * strangers),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("measure")


def separation_by_relation(frame: pd.DataFrame, measures: Sequence[str] = tuple(MEASURES)) -> pd.DataFrame:
    """``in_order`` of ``separation`` for each kind of relation on its own: index ``measure``, columns the kinds.

    Kinds differ in whether layers correspond by number: they do after a fine-tune, and do not once layers were cut.
    """
    kinds = dict.fromkeys(frame.loc[frame["group"] == "related", "relation"])
    strangers = frame["group"] == "independent"
    found = {kind: separation(frame[strangers | (frame["relation"] == kind)], measures)["in_order"] for kind in kinds}
    return pd.DataFrame(found, index=pd.Index(measures, name="measure"))


def _ends(values: Floats) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if values.size else (float("nan"), float("nan"))


def _in_order(alike: Floats, strangers: Floats) -> float:
    if not alike.size or not strangers.size:
        return float("nan")
    gaps = alike[:, None] - strangers[None, :]
    return float((gaps > 0).mean() + (gaps == 0).mean() / 2)
