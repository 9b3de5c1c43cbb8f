"""This module sets a printed table of cosines beside what any weights of the published means and spreads can give.

A cosine follows from two shares and one r. With the shares known, even r from -1 to 1 leaves only an interval. A cell
outside of it was not measured on vectors with these means and standard deviations, whatever their pattern is.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from studies.claims import closed_form
from studies.claims.bounds import best
from studies.claims.cells import Cell, cells_of
from studies.claims.corpus import Corpus
from studies.claims.rows import Claim

__all__ = ["printed_table"]


def printed_table(corpus: Corpus) -> pd.DataFrame:
    """Every cell of which one section prints cosine and r together, and of which the shares are known.

    Only sections that print at least five such cells count as a table.

    Returns:
        Columns ``section``, ``layer_a``, ``layer_b``, ``printed``, ``least`` and ``most`` (of the cosine, for any r),
        ``possible``, ``with_printed_r`` (the cosine for the printed r), ``stored`` (of a stored output;
        undefined where there is none), ``printed_r`` and ``stored_r``.
    """
    by_section: dict[tuple[str, str], list[tuple[Claim, Claim]]] = {}
    for cosine, r in _together(corpus.claims):
        by_section.setdefault((cosine.document, cosine.section), []).append((cosine, r))
    tables = [pairs for pairs in by_section.values() if len(pairs) >= _LEAST_CELLS]
    rows = [row for pairs in tables for cosine, r in pairs for row in _row(corpus, cosine, r)]
    return pd.DataFrame(rows)


_LEAST_CELLS = 5


def _together(claims: Sequence[Claim]) -> list[tuple[Claim, Claim]]:
    """Cosine and r of the same single cell, from the same section."""
    single = [claim for claim in claims if not claim.statistic and claim.members.count("@") == 2]
    found = {(c.document, c.section, c.members): c for c in single if c.metric == "pearson"}
    pairs = [(c, found.get((c.document, c.section, c.members))) for c in single if c.metric == "cosine"]
    return [(cosine, r) for cosine, r in pairs if r is not None and _crosses(cosine)]


def _crosses(claim: Claim) -> bool:
    sides = [side.partition("@")[0] for side in claim.members.split(":")]
    return sides[0] != sides[-1]


def _row(corpus: Corpus, cosine: Claim, r: Claim) -> list[dict[str, object]]:
    (cell,) = cells_of(cosine.members, cosine.roles, corpus.n_layers)
    other = cell.b or cell.a
    sides = [best(corpus.published.bounds("share", Cell(cell.role, side))) for side in (cell.a, other)]
    shares = [side.known for side in sides if side]
    if len(shares) < len(sides):
        return []
    anyhow, given = closed_form.cosine(*shares), closed_form.cosine(shares[0], shares[1], r.allowed)
    stored = {name: _stored(corpus, name, cell) for name in ("cosine", "pearson")}
    return [
        {
            "section": cosine.section, "layer_a": cell.a.layer, "layer_b": other.layer,
            "printed": cosine.allowed.middle, "least": anyhow.low, "most": anyhow.high,
            "possible": cosine.allowed.meets(anyhow), "with_printed_r": given.middle, "stored": stored["cosine"],
            "printed_r": r.allowed.middle, "stored_r": stored["pearson"],
        }
    ]  # fmt: skip


def _stored(corpus: Corpus, metric: str, cell: Cell) -> float:
    firm = best([bound for bound in corpus.published.printed.of(metric, cell) if bound.firm])
    return firm.known.middle if firm else float("nan")
