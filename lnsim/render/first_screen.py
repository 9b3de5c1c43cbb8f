"""This module answers the three questions of whoever opens the index, in so few words that they fit on a first screen.

Every sentence is a notebook's own: which of them stand here, and how much of each is folded, is decided by fixed rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lnsim.render.html import Report
from lnsim.render.words import count

__all__ = ["Statement", "first_screen"]

Statement = str | tuple[str, str, str]
"""A sentence, or what of a text is in sight, what is folded, and the words to unfold it."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ\d])")
_MOST_HEADLINES = 3


def first_screen(reports: Sequence[Report]) -> list[tuple[str, list[Statement]]]:
    """Label and statements of what was compared, what was found and how far to trust it.

    Args:
        reports: all of them, in the order of the index.
    """
    # A replica's numbers say nothing about real models, so they have no place in the answer.
    real = [report for report in reports if report.page["source"] != "replica"]
    led = _leading(real)[:_MOST_HEADLINES]
    # A headline may have two lines; the first of all is set in large type.
    found: list[Statement] = [line for report in led for line in _headline(report).split("\n")]
    trust: list[Statement] = [_trust(report) for report in led]
    return [
        ("Compared", [_compared(real)]),
        ("Found", found or ["No report on real weights was made yet, so there is nothing to say."]),
        ("Trust", trust or ["Each report names its control and its weakest point."]),
    ]


def _leading(reports: Sequence[Report]) -> list[Report]:
    """The reports whose headlines make the top, in their order.

    The first headline of all stands beside the first figure. Then every other study says its last one, since later
    notebooks build on earlier ones; the rest follow. Where there is no headline, the latest reports stand in.
    """
    offered = [report for report in reports if report.page.get("headline")]
    if not offered:
        return list(reports[::-1])
    first, *others = offered
    last = {str(one.page["study"]): one for one in others if one.page["study"] != first.page["study"]}
    ahead = [first, *last.values()]
    return ahead + [one for one in others if all(one is not other for other in ahead)]


def _trust(report: Report) -> Statement:
    """The first sentence in sight, the others folded: they belong to the claim, and a first screen is small."""
    first, *rest = _SENTENCE_END.split(str(report.page["trust"]), maxsplit=1)
    return first, "".join(rest), f"More, {report.page['study']} {report.page['number']}"


def _headline(report: Report) -> str:
    return str(report.page.get("headline") or f"{report.title} {report.page['finding']}")


def _compared(reports: Sequence[Report]) -> str:
    models: dict[str, int] = {}
    for report in reports:
        for record in report.page["models"].values():
            models[record["source"]] = max(models.get(record["source"], 0), int(record["n_vectors"]))
    start = "γ, the weights of the normalisation layers, a few kilobytes of a checkpoint"
    if not models:
        return f"{start}."
    return f"{start}: {count(sum(models.values()), 'vector')} of {count(len(models), 'checkpoint')} with real weights."
