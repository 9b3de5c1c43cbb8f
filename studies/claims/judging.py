"""This module gives every published number its verdict, and tries the rules on right numbers moved on purpose.

Two questions are kept apart. What do the other published numbers say of it? That needs no weights, and its answer is
the same in every run. And what do the vectors at hand say? Real ones reproduce a number or differ from it. A replica
can do neither: it was built from published numbers, so at its control points an agreement is called calibrated, and
anywhere else it says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from studies.claims.bounds import AGREES, CONTRADICTS
from studies.claims.counting import ALONE
from studies.claims.evaluate import NOTHING, Beside, beside
from studies.claims.intervals import Interval
from studies.claims.measured import Measured
from studies.claims.published import PAIRWISE, SINGLE, Corpus
from studies.claims.rows import Cell, Claim, Vector, cells_of
from studies.replica.calibration import calibration_path, load_calibration

__all__ = [
    "CALIBRATED",
    "CONTRADICTED",
    "DIFFERS",
    "FROM_REPLICA",
    "REPRODUCED",
    "UNTESTED",
    "VERDICTS",
    "Judged",
    "control_points",
    "judge",
    "moved",
]

REPRODUCED, DIFFERS, CONTRADICTED = "reproduced", "differs", "contradicted"
CALIBRATED, FROM_REPLICA, UNTESTED = "calibrated", "differs from the replica", "not testable here"

VERDICTS: tuple[str, ...] = (REPRODUCED, DIFFERS, CONTRADICTED, CALIBRATED, FROM_REPLICA, UNTESTED)
"""Every verdict there is; each row has exactly one."""

_DEFINED = ("n_pairs", "distance", "n_values")
_OF_FILES = ("hidden_size", "n_layers")


@dataclass(frozen=True, slots=True)
class Judged:
    """One published number with its verdict.

    Args:
        claim: the row.
        verdict: one of VERDICTS.
        published: what the other published numbers say.
        measured: what the vectors say, or None where it needs others than these.
        why: why it is not testable, a sentence; empty otherwise.
    """

    claim: Claim
    verdict: str
    published: Beside
    measured: Beside | None
    why: str

    @property
    def by_arithmetic(self) -> bool:
        """Whether it is reproduced from a definition alone, without any vectors."""
        return self.verdict == REPRODUCED and self.measured is None

    @property
    def firmly_contradicted(self) -> bool:
        """Whether stored outputs, configs, figures or arithmetic contradict it, and not only another claim."""
        return self.published.outcome == CONTRADICTS and self.published.findings[0].bound.firm


def judge(
    corpus: Corpus,
    models: Mapping[str, NormVectors],
    calibrated: Collection[tuple[str, Vector]] | None,
    published: Mapping[str, Beside] | None = None,
) -> tuple[Judged, ...]:
    """Judge every row, in the order of the file: as many come out as went in.

    Args:
        corpus: the published numbers.
        models: vectors by model key; may be empty.
        calibrated: the ``control_points`` at which a replica was set from published numbers; None for real vectors.
        published: what ``judge_by_the_others`` gave, where it has been asked already.
    """
    if published is None:
        published = judge_by_the_others(corpus)
    vectors = Measured(models)
    found = []
    for claim in corpus.claims:
        beside_vectors, lacking = _measure(claim, vectors, corpus)
        verdict, why = _verdict(claim, published[claim.name], beside_vectors, lacking, calibrated, corpus)
        found.append(Judged(claim, verdict, published[claim.name], beside_vectors, why))
    return tuple(found)


def judge_by_the_others(corpus: Corpus) -> dict[str, Beside]:
    """Every claim beside the other published numbers, by name.

    First against stored outputs, configs, figures and arithmetic alone. A claim that these contradict is then left out
    of what is held against the others: a wrong number is no evidence.
    """
    firm = corpus.without([claim.name for claim in corpus.claims])
    first = {claim.name: beside(claim, firm, (), corpus.n_layers) for claim in corpus.claims}
    wrong = {name for name, one in first.items() if one.outcome == CONTRADICTS}
    lookup = corpus.without(wrong)
    return {
        claim.name: first[claim.name]
        if first[claim.name].outcome != NOTHING
        else beside(claim, lookup, corpus.claims, corpus.n_layers)
        for claim in corpus.claims
    }


def _measure(claim: Claim, vectors: Measured, corpus: Corpus) -> tuple[Beside | None, list[str]]:
    """The claim beside the vectors, and the models or layers that it would need and that are not there."""
    if claim.metric in _OF_FILES and claim.statistic != "compared":
        names = [name for term in claim.members.split(";") for name in term.split(":")]
        if lacking := [name for name in dict.fromkeys(names) if name not in vectors.models]:
            return None, lacking
        return beside(claim, vectors, (), corpus.n_layers), []
    if claim.metric not in (*PAIRWISE, *SINGLE, "gamma") or "@" not in claim.members or "sampled" in claim.members:
        return None, []
    lacking = vectors.missing(_cells(claim, corpus.n_layers))
    found = beside(claim, vectors, (), corpus.n_layers)
    return (None, lacking) if lacking and found.outcome != CONTRADICTS else (found, [])


def _cells(claim: Claim, n_layers: Mapping[str, int]) -> list[Cell]:
    parts = [claim.members]
    for sign in (" & ", " > ", " - "):
        parts = [side for part in parts for side in part.split(sign)]
    return [cell for part in parts for cell in cells_of(part, claim.roles, n_layers)]


def _verdict(
    claim: Claim,
    published: Beside,
    measured: Beside | None,
    lacking: Sequence[str],
    calibrated: Collection[tuple[str, Vector]] | None,
    corpus: Corpus,
) -> tuple[str, str]:
    outcome, replica = measured.outcome if measured else NOTHING, calibrated is not None
    if not replica and outcome in (AGREES, CONTRADICTS):
        return (REPRODUCED, "") if outcome == AGREES else (DIFFERS, "")
    if published.outcome == CONTRADICTS:
        return CONTRADICTED, ""
    if published.outcome == AGREES and (claim.members in ALONE or claim.metric in _DEFINED):
        return REPRODUCED, ""
    if replica and outcome == CONTRADICTS:
        return FROM_REPLICA, ""
    if calibrated is not None and outcome == AGREES and _is_calibrated(claim, calibrated, corpus):
        return CALIBRATED, ""
    return UNTESTED, _why(claim, outcome, lacking, replica)


def _is_calibrated(claim: Claim, control_points: Collection[tuple[str, Vector]], corpus: Corpus) -> bool:
    if claim.metric in _OF_FILES:
        return True  # the shapes of a replica are copied from the configs
    cells = _cells(claim, corpus.n_layers)
    return all((cell.role, side) in control_points for cell in cells for side in (cell.a, cell.b) if side is not None)


_REASONS: Mapping[str, str] = {
    "loss": "It needs the small GPT-2s to be trained again.",
    "n_models": "It counts models of a published run, not what is in their files.",
    "n_params": "It needs the headers of whole checkpoints, and extracts hold norms only.",
    "bytes": "It is about whole files, and extracts hold norms only.",
    "percent": "It is about whole files, and extracts hold norms only.",
    "n_layers": "It counts what a published run compared.",
}


def _why(claim: Claim, outcome: str, lacking: Sequence[str], replica: bool) -> str:
    if claim.meaning == "words":
        return claim.note
    if claim.metric in _REASONS:
        return _REASONS[claim.metric]
    if "sampled" in claim.members:
        return "Which channels the figure samples is not published."
    if any(name.startswith(("ones_", "normal_")) for name in lacking):
        return "It needs the small GPT-2s to be trained again."
    if lacking:
        return f"It needs vectors that are not here: {', '.join(lacking)}."
    if replica:
        return "It needs the real weights: the replica is synthetic, and free where this number is taken from."
    return "It needs the real weights." if outcome == NOTHING else "The vectors do not decide it."


def control_points(study: str, kind: str) -> frozenset[tuple[str, Vector]] | None:
    """Role and vector wherever a study's replica was set; None for real vectors, whose kind is another.

    A model made from another has the control points of that one.

    Raises:
        StudyError: when the study has no calibration, or anything in it is wrong.
    """
    if kind != "replica":
        return None
    models = load_calibration(calibration_path(study)).models
    found = {
        recipe.key: {(role, point.layer) for role, curve in recipe.curves.items() for point in curve.points}
        for recipe in models
    }
    made = {recipe.key: found[recipe.update.of] for recipe in models if recipe.update is not None}
    return frozenset((role, Vector(key, layer)) for key, points in (found | made).items() for role, layer in points)


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
