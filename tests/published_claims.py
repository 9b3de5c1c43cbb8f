"""The published numbers of solar_glm and what they say of one another, judged once for all tests of a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from studies.claims.evaluate import Beside
from studies.claims.judging import judge_by_the_others
from studies.claims.published import Corpus, claims_dir, read_corpus
from studies.claims.rows import Claim

__all__ = ["FOLDER", "by_the_others", "claim", "corpus"]

FOLDER = Path(__file__).resolve().parents[1] / "data" / "claims" / "solar_glm"


@cache
def corpus() -> Corpus:
    """The corpus."""
    return read_corpus(claims_dir("solar_glm"))


@cache
def by_the_others() -> dict[str, Beside]:
    """Every claim beside the other published numbers, by name."""
    return judge_by_the_others(corpus())


def claim(name: str) -> Claim:
    """The row of a name."""
    return next(one for one in corpus().claims if one.name == name)
