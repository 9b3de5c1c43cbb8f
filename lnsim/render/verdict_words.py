"""This module holds the fixed set of sentences that a verdict may say, and sets verdicts as rows that readers see.

There are no other sentences. None says that a model was made from another one, none says that two are independent, and
what is known of a pair stands beside its sentence and never in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from lnsim.measure.layer_matrix import PARTNER_FROM
from lnsim.measure.nulls import LEVEL
from lnsim.measure.verdict import RULES, SIGNALS
from lnsim.render.words import count, listed, rounded

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SENTENCES",
    "VERDICT_LABELS",
    "closest_stranger",
    "controls_in_words",
    "counted",
    "in_question",
    "rule_rows",
    "rules_in_words",
    "sentence",
    "verdict_rows",
]

SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "not_comparable": "Not comparable: {why}.",
        "identical": "Identical, bit for bit, in every norm vector compared.",
        "undecided": "Not decided: too few permutations for this many tests.",
        "one_by_one": "Shared-origin signal, layer by layer: compatible with one trained further from the other, or "
        "both from the same base.",
        "rearranged": "Shared-origin signal, layers not one by one: compatible with a common ancestor, or with layers "
        "cut, repeated or moved.",
        "unplaced": "Shared-origin signal, no layer with a close partner: compatible with a distant common ancestor.",
        "contradictory": "Weak or contradictory: Pearson and ranks disagree.",
        "none": "No shared-origin signal in the norm vectors; this does not show independence.",
    }
)
"""Every sentence by its key; ``{why}`` is what stands in the way of a comparison."""

VERDICT_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "sentence": "Verdict",
        "relation": "On record",
        "tested": "Tested",
        "strongest": "Strongest in",
        "r": "r there",
        "pvalue": "p",
        "p_holm": "p, Holm",
        "p_ranks": "p by ranks",
        "partners": "Best partner of a layer",
        "found": "Other related found",
        "quiet": "Other strangers quiet",
    }
)
"""What heads the columns of ``verdict_rows``."""

_RELATIONS = {"fine_tune": "fine-tune", "depth_expanded": "more layers", "in_question": "in question"}

_REPLICA = "REPLICA, synthetic vectors. "


def sentence(key: str, obstacle: str = "", replica: bool = False) -> str:
    """The sentence of a verdict; of a replica it begins by saying that the vectors are synthetic."""
    return (_REPLICA if replica else "") + SENTENCES[key].format(why=obstacle)


def verdict_rows(found: pd.DataFrame, replica: bool = False) -> pd.DataFrame:
    """The verdicts as readers see them, one row a pair.

    Args:
        found: as ``measure.verdict_table.with_controls`` gives it.
        replica: True where the vectors are synthetic.
    """
    keys = zip(found["verdict"], found["obstacle"], strict=True)
    shown = found.assign(
        sentence=[sentence(key, why, replica) for key, why in keys],
        relation=[_RELATIONS.get(kind, kind.replace("_", " ")) for kind in found["relation"]],
        tested=[_tested(row) for _, row in found.iterrows()],
        partners=[_partners(row) for _, row in found.iterrows()],
        found=[f"{one} of {all_}" for one, all_ in zip(found["related_found"], found["related"], strict=True)],
        quiet=[f"{one} of {all_}" for one, all_ in zip(found["strangers_quiet"], found["strangers"], strict=True)],
    )
    for name in ("r", "pvalue", "p_holm", "p_ranks"):
        shown[name] = shown[name].astype(object).where(shown["tests"] > 0, None)
    return shown.set_index("pair")[["sentence", "relation", "group", *list(VERDICT_LABELS)[2:]]].rename_axis("Pair")


def rule_rows() -> pd.DataFrame:
    """How the sentences are chosen: one row a sentence, in the order in which the rules are tried."""
    import pandas as pd

    rows = [(SENTENCES[key].format(why="…").replace("….", "…"), when) for key, when in RULES.items()]
    return pd.DataFrame(rows, columns=["sentence", "chosen where"], index=pd.RangeIndex(1, 1 + len(rows), name="try"))


def counted(found: pd.DataFrame) -> str:
    """How many pairs got which kind of sentence, and how the controls came out, in one sentence."""
    signals = found["verdict"].isin(SIGNALS)
    parts = [
        (signals, "with a shared-origin signal"),
        (found["verdict"] == "none", "without one"),
        (found["verdict"] == "contradictory", "weak or contradictory"),
        (found["verdict"] == "undecided", "not decided"),
        (found["verdict"] == "not_comparable", "not comparable"),
    ]
    said = listed(f"{int(which.sum())} {words}" for which, words in parts if which.any())
    return f"{count(len(found), 'pair')}: {said}. {controls_in_words(found)}"


def in_question(found: pd.DataFrame, replica: bool = False) -> str:
    """The sentence of the first pair that is no control, as a line of its own; empty where every pair is one.

    Args:
        found: as ``measure.verdict_table.with_controls`` gives it.
        replica: True where the vectors are synthetic.
    """
    rows = found[found["group"] == "disputed"]
    if rows.empty:
        return ""
    first = rows.iloc[0]
    return f"{first['pair']}: {sentence(first['verdict'], first['obstacle'], replica)}\n"


def controls_in_words(found: pd.DataFrame) -> str:
    """How the pairs of known relation came out."""
    judged = found[~found["verdict"].isin(["not_comparable", "undecided"])]
    related, strangers = (judged[judged["group"] == group] for group in ("related", "independent"))
    said = []
    if len(related):
        signals = int(related["verdict"].isin(SIGNALS).sum())
        said.append(f"a signal in {signals} of {count(len(related), 'related pair')}")
    if len(strangers):
        quiet = int((strangers["verdict"] == "none").sum())
        said.append(f"none in {quiet} of {count(len(strangers), 'pair')} of presumed strangers")
    return f"Controls: {listed(said)}." if said else "Controls: none could be judged."


def closest_stranger(found: pd.DataFrame) -> str:
    """The presumed strangers with the smallest raw p, with everything that speaks for and against; or an empty text."""
    strangers = found[(found["group"] == "independent") & (found["tests"] > 0)]
    if strangers.empty:
        return ""
    row = strangers.loc[strangers["pvalue"].idxmin()]
    return (
        f"The smallest p of strangers is {rounded(row['pvalue'], '.4f')} ({row['pair']}, {row['strongest']}): "
        f"{rounded(row['p_holm'], '.3f')} after Holm, {rounded(row['p_ranks'], '.2f')} by ranks."
    )


def rules_in_words() -> str:
    """What the rules' words mean, with their numbers."""
    return (
        f"Level: {LEVEL:g}, after Holm's adjustment over all tests of the study. Signal: for at least one kind of "
        f"norm, Pearson and ranks are both below it. Partner: a layer of the other model with r "
        f"of at least {PARTNER_FROM:g}."
    )


def _tested(row: pd.Series) -> str:
    """Which norms, in how many matched layers of how many channels."""
    if not row["tests"]:
        return "none"
    low, high = int(row["layers_least"]), int(row["layers_most"])
    return f"{row['tested']}; {low if low == high else f'{low} to {high}'}\u00a0×\u00a0{int(row['channels']):,}"


def _partners(row: pd.Series) -> str:
    """Where the layers of the shorter stack have their best partner, over all norms tested."""
    if not row["tests"]:
        return "none"
    words = {"same": "same number", "elsewhere": "elsewhere", "without": "no partner"}
    total = sum(int(row[name]) for name in words)
    return ", ".join(f"{word} {int(row[name])} of {total}" for name, word in words.items() if row[name])
