"""This module makes a study of two models that someone asks about, with stored models of known relation as controls.

The pair itself is ``in_question``: whatever is on record of it takes no part, and it is no control. Two others are
related or independent only where a study states that with its evidence; of all other pairs nothing is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import StudyError
from lnsim.measure.common_roles import common_roles
from lnsim.study.adhoc_experiments import Pairs, experiments
from lnsim.text import printable

__all__ = [
    "IN_QUESTION",
    "MOST_CONTROLS",
    "Member",
    "Stated",
    "adhoc_study",
    "choose_controls",
    "members",
    "study_name",
]

IN_QUESTION = "in_question"
MOST_CONTROLS = 4

_COLOURS = ("#332288", "#cc6677", "#88ccee", "#117733", "#999933", "#aa4499")
"""Paul Tol's muted palette, told apart with any kind of colour vision: the two, then the controls."""

_LONGEST_LABEL = 40

Stated = Callable[[NormVectors, NormVectors], tuple[str, str, str] | None]
"""Kind and evidence of a relation that a study states, and that study's name; None where none does."""


@dataclass(frozen=True, slots=True)
class Member:
    """A model of the study.

    Args:
        key: ``a`` and ``b`` for the two, ``c1`` and so on for the controls.
        label: what readers see.
        vectors: its norm vectors.
        family: its architecture, in a reader's words.
    """

    key: str
    label: str
    vectors: NormVectors
    family: str

    def __post_init__(self) -> None:
        if not self.label.strip():
            raise StudyError(f"Making a study: model '{self.key}' has no name for its readers.")


def members(named: Sequence[tuple[str, NormVectors]]) -> tuple[Member, ...]:
    """The two models and their controls with keys, and labels that differ.

    Args:
        named: what readers call each model, and its vectors; the two that are asked about come first.
    """
    keys = ["a", "b", *(f"c{number}" for number in range(1, len(named) - 1))]
    short = [_shortened(label) for label, _ in named]
    labels = [f"{text} ({key})" if short.count(text) > 1 else text for key, text in zip(keys, short, strict=True)]
    return tuple(
        Member(key, label, vectors, vectors.model_type or "unknown")
        for key, label, (_, vectors) in zip(keys, labels, named, strict=True)
    )


def choose_controls(a: NormVectors, b: NormVectors, others: Mapping[str, NormVectors], stated: Stated) -> list[str]:
    """The stored models that serve best as controls, at most MOST_CONTROLS.

    First those that a study states to be strangers of the two, then those it states to be related to them, then those
    of which it states anything among one another. Models that anyone can fetch come before those that were made for the
    purpose; the latter are taken only where there are no others.

    Args:
        a: one of the two.
        b: the other.
        others: by name, the stored models.
        stated: what studies state.
    """
    roles = common_roles(a, b)
    fitting = {name: one for name, one in others.items() if _fits(one, a, b, roles)}
    public = {name: one for name, one in fitting.items() if {"repo_id", "package"} & set(one.provenance)}
    pool = public or fitting
    ranks = {name: _rank(one, (a, b), pool, stated) for name, one in pool.items()}
    strangers = [name for name, rank in ranks.items() if rank == 0][: MOST_CONTROLS // 2]
    rest = sorted((name for name in ranks if name not in strangers), key=lambda name: (ranks[name] or 2, name))
    return [*strangers, *rest][:MOST_CONTROLS]


def _fits(one: NormVectors, a: NormVectors, b: NormVectors, roles: Sequence[str]) -> bool:
    """Whether a stored model can be compared with the two, and is neither of them."""
    same = any(one.path == other.path or _repo(one) == _repo(other) != "" for other in (a, b))
    return not same and any(role in one.roles and one[role].hidden_size == a[role].hidden_size for role in roles)


def _repo(one: NormVectors) -> str:
    return one.provenance.get("repo_id", "")


def _rank(one: NormVectors, two: Sequence[NormVectors], pool: Mapping[str, NormVectors], stated: Stated) -> int:
    """0 for a stated stranger of one of the two, 1 for a relative, 2 for one with another control, 3 for the rest."""
    kinds = {found[0] for other in two if (found := stated(one, other)) is not None}
    if kinds:
        return 0 if kinds == {"independent"} else 1
    return 2 if any(stated(one, other) for other in pool.values() if other is not one) else 3


def adhoc_study(
    models: Sequence[Member], stored: Mapping[str, str], stated: Stated, n_permutations: int, seed: int, command: str
) -> dict[str, Any]:
    """The content of the study's file.

    Args:
        models: as ``members`` gives them.
        stored: by key, the name of the extract in the study's own folder.
        stated: what the studies at hand state of two models.
        n_permutations: of the channels.
        seed: of the permutations.
        command: what makes the reports again.

    Raises:
        ComparisonError: when nothing of the two can be compared.
    """
    relations = [_relation(one, other, stated) for one, other in combinations(models, 2)]
    pairs = Pairs.of([(relation["a"], relation["b"], relation["kind"]) for relation in relations])
    runs, not_run = experiments({one.key: one.vectors for one in models}, pairs, n_permutations, seed)
    a, b, *controls = models
    beside = f", beside {len(controls)} stored model{'s' if len(controls) != 1 else ''}" if controls else ""
    return {
        "title": f"{a.label} × {b.label}",
        "about": f"{a.label} and {b.label}{beside}. What is known of these two takes no part.",
        "sources": ["stored"],
        "command": command,
        "models": [_model(one, stored[one.key], colour) for one, colour in zip(models, _COLOURS, strict=False)],
        "relations": relations,
        "experiments": runs,
        "not_run": not_run,
    }


def study_name(a: str, b: str) -> str:
    """A name for the study's file and folder, made of small letters, digits and ``_``.

    >>> study_name("Qwen/Qwen3-4B", "./my model")
    'qwen3_4b_x_my_model'
    """
    return f"{_slug(a)}_x_{_slug(b)}"


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", _shortened(label).lower()).strip("_") or "model"


def _shortened(label: str) -> str:
    """The last part of a path or repo id, without a revision."""
    last = label.rstrip("/\\").replace("\\", "/").rpartition("/")[2].removesuffix(".safetensors")
    text = printable(last.partition("@")[0]).strip() or "model"
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def _model(one: Member, stored: str, colour: str) -> dict[str, Any]:
    return {
        "key": one.key,
        "label": one.label,
        "stored": stored,
        "colour": colour,
        "family": one.family,
        "kind": "moe" if any("expert" in name for name in one.vectors.config) else "dense",
    }


def _relation(one: Member, other: Member, stated: Stated) -> dict[str, Any]:
    found = stated(one.vectors, other.vectors)
    if (one.key, other.key) == ("a", "b"):
        return _row(one, other, IN_QUESTION, "The pair that was asked about.")
    if found is None:
        return _row(one, other, IN_QUESTION, "Nothing is on record of these two.")
    kind, evidence, study = found
    return _row(one, other, kind, f"Study {study}: {evidence}")


def _row(one: Member, other: Member, kind: str, evidence: str) -> dict[str, Any]:
    return {"a": one.key, "b": other.key, "kind": kind, "evidence": evidence}
