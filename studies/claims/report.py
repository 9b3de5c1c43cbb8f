"""This module puts the verdicts into tables: one row a published number, and counts of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from studies.claims.checks import NOTHING, Beside
from studies.claims.evaluate import CONTRADICTS, Finding
from studies.claims.intervals import Interval
from studies.claims.judging import UNTESTED, VERDICTS, Judged
from studies.claims.rows import Claim

__all__ = ["TOTAL", "by_document", "by_published", "number_text", "verdict_table"]

TOTAL = "all"
"""The row and the column of sums."""

_CONTRADICTED_SAYS = "contradict it"
_AGREED_SAYS = "agree with it"


def verdict_table(judged: Sequence[Judged], labels: Mapping[str, str]) -> pd.DataFrame:
    """Every published number with its verdict, in the order of the data file.

    Args:
        judged: as ``judging.judge`` gives them.
        labels: what readers see of each model, by key.

    Returns:
        Indexed by ``claim``; columns ``document``, ``section``, ``statement``, ``printed``, ``verdict``, ``others``
        (what the other published numbers say), ``other_number`` (theirs), ``measured`` (that of the vectors, or empty),
        ``because`` (how the other number is known, or why nothing can be tested) and ``sources``, in full.
    """
    rows = [
        {
            "claim": one.claim.name,
            "document": one.claim.document,
            "section": one.claim.section,
            "statement": one.claim.statement,
            "printed": one.claim.printed,
            "verdict": one.verdict,
            "others": _says(one.published),
            "other_number": _numbers(one.claim, one.published),
            "measured": _numbers(one.claim, one.measured) if one.measured else "",
            "because": _because(one, labels),
            "sources": "; ".join(_sources(one.published)),
        }
        for one in judged
    ]
    return pd.DataFrame(rows).set_index("claim")


def by_document(judged: Sequence[Judged]) -> pd.DataFrame:
    """How many rows of each document have which verdict, with sums; verdicts that no row has are left out."""
    return _crossed([one.claim.document for one in judged], [one.verdict for one in judged], VERDICTS, "document")


def by_published(judged: Sequence[Judged]) -> pd.DataFrame:
    """How many rows the other published numbers agree with, contradict, or say nothing of, by document, with sums."""
    says = [_says(one.published) for one in judged]
    order = (_AGREED_SAYS, _CONTRADICTED_SAYS, NOTHING)
    return _crossed([one.claim.document for one in judged], says, order, "document")


def number_text(known: Interval, half: float) -> str:
    """An interval as a reader needs it beside a number printed to `half`: one number where it is as sharp as that."""
    if known.low == -math.inf or known.high == math.inf:
        end = known.high if known.low == -math.inf else known.low
        return f"{'at most' if known.low == -math.inf else 'at least'} {_digits(end, half)}"
    if known.half <= max(half, 1e-9 * abs(known.middle)):
        return _digits(known.middle, half)
    return f"{_digits(known.low, half)} to {_digits(known.high, half)}"


def _crossed(rows: Sequence[str], columns: Sequence[str], order: Sequence[str], name: str) -> pd.DataFrame:
    counts = pd.crosstab(pd.Series(rows, name=name), pd.Series(columns))
    counts = counts.reindex(columns=[one for one in order if one in counts.columns])
    counts.loc[TOTAL] = counts.sum()
    counts[TOTAL] = counts.sum(axis=1)
    return counts.rename_axis(index=name, columns=None)


def _says(published: Beside) -> str:
    if published.outcome == NOTHING:
        return NOTHING
    return _CONTRADICTED_SAYS if published.outcome == CONTRADICTS else _AGREED_SAYS


def _numbers(claim: Claim, beside: Beside) -> str:
    """The number that the outcome rests on; of several, the span of all of them."""
    if not beside.findings:
        return ""
    found = [finding.bound.known for finding in beside.findings]
    closest = min(found, key=lambda one: one.half)
    half = claim.half if claim.meaning != "ordering" else closest.half
    if all(finding.where for finding in beside.findings) and len(found) > 1:
        low, high = (_digits(end, half) for end in (min(one.low for one in found), max(one.high for one in found)))
        return f"{low if low == high else f'{low} to {high}'} ({len(found)} of {beside.n_compared})"
    return number_text(closest, half)


def _because(one: Judged, labels: Mapping[str, str]) -> str:
    parts = [] if one.verdict != UNTESTED or not one.why else [one.why]
    if one.published.findings:
        worst = max(one.published.findings, key=lambda finding: _outside(finding, one.claim))
        parts.append(_evidence(worst, labels))
    if one.claim.note and one.claim.note not in parts:
        parts.append(one.claim.note)
    return " ".join(parts)


def _outside(finding: Finding, claim: Claim) -> tuple[float, float]:
    """How far evidence lies from what was printed; among equals, how sharp it is."""
    known, allowed = finding.bound.known, claim.allowed
    return max(0.0, known.low - allowed.high, allowed.low - known.high), -known.half


def _evidence(finding: Finding, labels: Mapping[str, str]) -> str:
    # Where a finding is about one model, its key is the last word.
    before, _, key = finding.where.rpartition(" ")
    where = f"{before} {labels.get(key, key)}: ".lstrip() if finding.where else ""
    named = list(dict.fromkeys(_in_short(source) for source in finding.bound.sources))
    more = f" and {len(named) - _MOST_SOURCES} more" if len(named) > _MOST_SOURCES else ""
    text = f"{where}{finding.bound.how} ({'; '.join(named[:_MOST_SOURCES])}{more})."
    return text[0].upper() + text[1:]


def _in_short(source: str) -> str:
    """Repo and file without owner and folders; anything else as it is."""
    repo, comma, rest = source.partition(",")
    if "/" not in repo:
        return source
    return f"{repo.partition('/')[2]}{comma} {rest.rpartition('/')[2].strip()}".strip()


def _sources(published: Beside) -> list[str]:
    return list(dict.fromkeys(source for finding in published.findings for source in finding.bound.sources))


_MOST_SOURCES = 3


def _digits(value: float, half: float) -> str:
    """As many decimals as the printed number has, and one more, so that a near miss is seen."""
    if value and (abs(value) >= 1e6 or abs(value) < 1e-4):
        return f"{value:.3g}".replace("e+", "e")
    if value == round(value) and abs(value) >= 1:
        return f"{value:,.0f}"
    decimals = 4 if half <= 0 or not math.isfinite(half) else max(0, math.ceil(-math.log10(2 * half) - 1e-9)) + 1
    return f"{value:.{min(decimals, 6)}f}".replace("-", "−")
