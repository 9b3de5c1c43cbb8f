"""This module asks what rounding alone does to a small update of one size at every depth.

The published figure shows the share of stored values that differ between two related checkpoints, falling with depth.
Values are stored on a grid whose step grows with the value, and γ grows with depth. So the same update, drawn from a
normal distribution and rounded to BF16, must change fewer values the deeper the layer. Here γ is a normal sample, in
closed form its quantiles, with the mean and the standard deviation that were published for the layer.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtri

from lnsim.errors import StudyError
from lnsim.measure.grid import expected_change, spacing
from studies.claims.bounds import best
from studies.claims.cells import Cell, cells_of
from studies.claims.closed_form import HIDDEN_SIZE
from studies.claims.corpus import Corpus

__all__ = ["by_rounding_alone"]

_MEASURES = ("changed_percent", "mean_abs_diff")


def by_rounding_alone(corpus: Corpus) -> pd.DataFrame:
    """The share of changed values that was read off the figure, beside what an update of one size gives.

    The size is fitted in the first layer alone, once to its mean absolute difference and once to its share of changed
    values; no other layer is fitted.

    Returns:
        One row a layer that was read off: ``layer``, ``mean`` and ``std`` of γ as published, ``step`` (median, of the
        BF16 grid), ``read_off`` (per cent), ``from_mean_change`` and ``from_share`` (per cent expected, by the two
        sizes). ``attrs`` holds both sizes, ``size_from_mean_change`` and ``size_from_share``.

    Raises:
        StudyError: when the data lacks what this needs.
    """
    cells = _read_off(corpus, "changed_percent")
    stored = np.stack([_sample(corpus, cell) for cell in cells])
    shares = [_known(corpus, "changed_percent", cell) for cell in cells]
    # E|x| of a normal update is sd sqrt(2/pi); rounding to the grid leaves it as it is where steps are finer.
    by_mean = _known(corpus, "mean_abs_diff", cells[0]) * math.sqrt(math.pi / 2)
    by_share = float(brentq(lambda sd: 100 * float(expected_change(stored[:1], sd)[0]) - shares[0], 1e-7, 1e-1))
    frame = pd.DataFrame(
        {
            "layer": [cell.a.layer for cell in cells],
            "mean": [_moment(corpus, "mean", cell) for cell in cells],
            "std": [_moment(corpus, "std", cell) for cell in cells],
            "step": np.median(spacing(stored), axis=1),
            "read_off": shares,
            "from_mean_change": 100 * expected_change(stored, by_mean),
            "from_share": 100 * expected_change(stored, by_share),
        }
    )
    frame.attrs |= {"size_from_mean_change": by_mean, "size_from_share": by_share}
    return frame


def _read_off(corpus: Corpus, metric: str) -> list[Cell]:
    """The single layers of which a value was read off the figure, by depth."""
    facts = [fact for fact in corpus.published.printed.facts if (fact.metric, fact.statistic) == (metric, "")]
    cells = [cell for fact in facts for cell in cells_of(fact.members, fact.roles, corpus.n_layers)]
    if not cells:
        raise StudyError(f"What rounding does: no '{metric}' of any layer was published.")
    return sorted(cells, key=lambda cell: cell.a.layer)


def _known(corpus: Corpus, metric: str, cell: Cell) -> float:
    found = best([bound for bound in corpus.published.printed.of(metric, cell) if bound.firm])
    if found is None:
        raise StudyError(f"What rounding does: no '{metric}' was published for {cell.layers} of {cell.a.model}.")
    return found.known.middle


def _moment(corpus: Corpus, name: str, cell: Cell) -> float:
    return _known(corpus, name, Cell(cell.role, cell.a))


def _sample(corpus: Corpus, cell: Cell) -> npt.NDArray[ml_dtypes.bfloat16]:
    """γ of a layer as quantiles of a normal distribution, on the grid that it is stored on."""
    at = (np.arange(HIDDEN_SIZE) + 0.5) / HIDDEN_SIZE
    values = _moment(corpus, "mean", cell) + _moment(corpus, "std", cell) * ndtri(at)
    return np.asarray(values, dtype=ml_dtypes.bfloat16)
