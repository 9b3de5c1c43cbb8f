"""This module asks what the rules would find if a right number had been printed wrong.

Rules that contradict much could contradict anything, and rules that contradict nothing prove nothing by their silence.
So every number that firm evidence agrees with is moved by some units of its last digit, both ways, and judged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from studies.claims.checks import beside
from studies.claims.corpus import Corpus
from studies.claims.evaluate import AGREES, CONTRADICTS
from studies.claims.intervals import Interval
from studies.claims.rows import Claim

__all__ = ["moved"]


def moved(corpus: Corpus, units: Sequence[int]) -> pd.DataFrame:
    """How many of the numbers that are right, as far as can be told, are found wrong once they are moved.

    Args:
        corpus: the published numbers.
        units: by how many units of the last printed digit; 0 is the number as it was printed.

    Returns:
        One row a distance: ``units``, ``numbers`` (moved up and down), ``contradicted`` and ``share``.
    """
    firm = corpus.without([claim.name for claim in corpus.claims])
    single = [claim for claim in corpus.claims if claim.meaning == "equals" and claim.half > 0]
    right = [claim for claim in single if beside(claim, firm, (), corpus.n_layers).outcome == AGREES]
    rows = []
    for step in units:
        others = [_moved(claim, sign * step) for claim in right for sign in ((1, -1) if step else (1,))]
        found = sum(beside(one, firm, (), corpus.n_layers).outcome == CONTRADICTS for one in others)
        share = found / len(others) if others else 0.0
        rows.append({"units": step, "numbers": len(others), "contradicted": found, "share": share})
    return pd.DataFrame(rows)


def _moved(claim: Claim, units: int) -> Claim:
    by = 2 * claim.half * units
    return replace(claim, allowed=Interval(claim.allowed.low + by, claim.allowed.high + by))
