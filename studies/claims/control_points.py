"""This module names the vectors at which a replica was set from published numbers.

An agreement of a published number with the replica at these vectors was built in. It is called calibrated, and counts
for nothing.
"""

from __future__ import annotations

from pathlib import Path

from studies.claims.cells import Vector
from studies.replica.calibration import load_calibration

__all__ = ["control_points"]


def control_points(path: Path) -> frozenset[tuple[str, Vector]]:
    """Role and vector of every control point of a calibration file; a model made from another has those of that one.

    Raises:
        StudyError: when the file is not there or anything in it is wrong.
    """
    models = load_calibration(path).models
    found = {
        recipe.key: {(role, point.layer) for role, curve in recipe.curves.items() for point in curve.points}
        for recipe in models
    }
    made = {recipe.key: found[recipe.update.of] for recipe in models if recipe.update is not None}
    return frozenset((role, Vector(key, layer)) for key, points in (found | made).items() for role, layer in points)
