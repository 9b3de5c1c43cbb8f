"""This module compares two models: the words of ``lnsim compare``, and in a notebook its table, a figure, a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lnsim.checkpoint.extract import read_many, read_pair
from lnsim.checkpoint.reading import Question
from lnsim.checkpoint.vectors import LLAMA_NAMES, NormVectors
from lnsim.errors import LnsimError
from lnsim.measure.compare import PairSummary, RoleSummary, summarise_pair
from lnsim.measure.verdict import sentence
from lnsim.near_names import with_near_names
from lnsim.render.markup import typographic
from lnsim.tables import card, table
from lnsim.text import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["LLAMA_SPELLING", "ROWS", "Comparison", "compare", "pair_sentence", "reading", "remarks", "shown"]


_INDENT = "\u00a0\u00a0"

_MOST_FOR_BANDS = 999
"""Permutations behind the bands of a figure: enough for 2.5 % at either end, and a tenth of the time of 9,999."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two models compared, as a notebook shows them.

    Args:
        names: what the two are called, by ``a`` and ``b``.
        a: vectors of one.
        b: vectors of the other.
        summary: what was measured, by role, and the verdict.
    """

    names: tuple[str, str]
    a: NormVectors
    b: NormVectors
    summary: PairSummary

    @property
    def sentence(self) -> str:
        """The verdict: one sentence out of a fixed set."""
        return pair_sentence({"a": self.a, "b": self.b}, self.summary)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was not compared, and what a reader must know of the rest, a sentence each."""
        return tuple(remarks({"a": self.a, "b": self.b}, self.summary))

    def to_frame(self) -> pd.DataFrame:
        """One row a role: the measures of ``lnsim compare --json``; what is not defined is missing."""
        import pandas as pd

        roles = self.summary.roles
        rows = [
            {name: np.nan if value is None else value for name, value in asdict(one).items()} for one in roles.values()
        ]
        return pd.DataFrame(rows, index=pd.Index(roles, name="role"))

    def by_layer(self) -> pd.DataFrame:
        """One row a role and layer: ``r`` beside ``null_low`` and ``null_high``, as ``measure.cells.layer_bands`` says.

        At most 999 of the permutations are taken.

        Raises:
            ComparisonError: when no layer has a defined r.
        """
        from lnsim.measure.cells import layer_bands

        first = next(iter(self.summary.roles.values()))
        return layer_bands(self.a, self.b, self.summary.roles, min(first.n_permutations, _MOST_FOR_BANDS), first.seed)

    def plot(self) -> Figure:
        """A figure of ``by_layer``: one panel a role, r of each layer beside the range of permuted channels.

        As the last line of a cell it is drawn there; elsewhere ``display`` or ``savefig`` shows or saves it.

        Raises:
            ComparisonError: as ``by_layer``.
        """
        import matplotlib.pyplot as plt

        from lnsim import plots
        from lnsim.render.words import header_text

        rows = self.by_layer()
        rows = rows[rows["layer"] >= 0] if (rows["layer"] >= 0).any() else rows
        outside = (rows["r"] > rows["null_high"]) | (rows["r"] < rows["null_low"])
        titles = {
            role: f"{header_text(role)}: {some.sum()} of {len(some)} outside"
            for role, some in outside.groupby(rows["role"], sort=False)
        }
        names = printable(" × ".join(f"{name:.60}" for name in self.names))
        figure = plots.facets(
            plots.curves, rows, "role", x="layer", y="r", hue="role", lines=False, band=("null_low", "null_high"),
            title=f"Pearson r, {names}", titles=titles,
        )  # fmt: skip
        plt.close(figure)  # else JupyterLab would show it a second time
        return figure

    def __repr__(self) -> str:
        return printable(f"Comparison({self.names[0]!r:.120} × {self.names[1]!r:.120}: {self.sentence})")

    def _repr_html_(self) -> str:
        models = {"a": self.a, "b": self.b}
        first = next(iter(self.summary.roles.values()))
        notes = [f"Verdict: {self.sentence}", " ".join(reading(first)), *remarks(models, self.summary)]
        parts = [self._models(), self._measures()]
        return card("Comparison", " × ".join(self.names), [], parts, notes)

    def _models(self) -> str:
        rows = [
            (side, name, one.model_type, one.n_vectors, one.hidden_size, one.commit or "none recorded")
            for side, name, one in zip("ab", self.names, (self.a, self.b), strict=True)
        ]
        return table(("side", "source", "family", "vectors", "channels", "commit"), rows)

    def _measures(self) -> str:
        roles = self.summary.roles
        rows: list[list[object]] = [
            [words.replace("  ", _INDENT), *(_cell(shown(one, name, form)) for one in roles.values())]
            for words, name, form in ROWS
        ]
        spellings = [LLAMA_SPELLING.get(role, "") for role in roles]
        if any(spellings):
            rows.insert(0, ["as Llama names it", *spellings])
        return table(("measure", *roles), rows)


def compare(
    a: str | Path | NormVectors,
    b: str | Path | NormVectors,
    roles: str | Iterable[str] | None = None,
    n_permutations: int = 9999,
    seed: int = 0,
) -> Comparison:
    """Compare two models as ``lnsim compare`` does; nothing is written.

    Args:
        a: a repo id, ``repo@revision``, folder, safetensors file or stored model, or vectors that were read before.
        b: the same; two sources are read at once.
        roles: roles to compare, by lnsim's names or the Llama family's; by default all that both have.
        n_permutations: of the channels, one shared by all layers of a role.
        seed: of the permutations.

    Raises:
        LnsimError: a sentence on what could not be read, or a ComparisonError on why nothing can be compared.

    >>> compare("all-minilm-l6-v2", "sre-minilm-l6", "post_mlp", n_permutations=99).summary.verdict
    'one_by_one'
    """
    wanted = None if roles is None else (roles,) if isinstance(roles, str) else tuple(roles)
    read = _read([one for one in (a, b) if not isinstance(one, NormVectors)], wanted)
    first, second = (_narrowed(one, wanted) if isinstance(one, NormVectors) else next(read) for one in (a, b))
    names = [one.source if isinstance(one, NormVectors) else str(one) for one in (a, b)]
    return Comparison((names[0], names[1]), first, second, summarise_pair(first, second, n_permutations, seed))


def _read(sources: Sequence[str | Path], roles: tuple[str, ...] | None) -> Iterator[NormVectors]:
    """The vectors of the sources, in their order; raises the first error, with the others as notes to it."""
    asked = [Question.of(source, roles) for source in sources]
    found = read_pair(*asked) if len(asked) == 2 else list(read_many(asked))
    errors = [
        with_near_names(one, str(source))
        for one, source in zip(found, sources, strict=True)
        if isinstance(one, LnsimError)
    ]
    for other in errors[1:]:
        errors[0].add_note(str(other))
    if errors:
        raise errors[0]
    return (one.vectors for one in found if not isinstance(one, LnsimError))


def _narrowed(vectors: NormVectors, roles: tuple[str, ...] | None) -> NormVectors:
    """The vectors of these roles alone; RoleError names the roles there are."""
    if roles is None:
        return vectors
    chosen = [vectors[role] for role in roles]
    return replace(vectors, roles={one.role: one for one in chosen})


def _cell(text: str) -> str:
    """With a real minus sign; a dash by itself stands for what is not defined."""
    return text if text == "-" else typographic(text)


LLAMA_SPELLING = {role: name for name, role in LLAMA_NAMES.items()}
"""What the Llama family calls a role, where it has a name for it."""

ROWS: tuple[tuple[str, str, str], ...] = (
    ("layers compared", "n_layers_compared", "d"),
    ("mean cosine", "cosine_mean", ".4f"),
    ("mean Pearson r", "pearson_mean", ".4f"),
    ("  of permuted channels: mean", "null_mean", ".4f"),
    ("  their standard deviation", "null_std", ".4f"),
    ("p, one-sided", "pvalue", "p"),
    ("  after Holm", "p_holm", "p"),
    ("mean Spearman r", "spearman_mean", ".4f"),
    ("  p by ranks, after Holm", "p_ranks_holm", "p"),
    ("L2 of a - b over that of a", "rel_l2_mean", ".4f"),
    ("stored values changed", "changed_ratio", ".1%"),
    ("best offset of the layers", "best_offset", "+d"),
    ("alignment rate", "alignment_rate", ".2f"),
    ("margin", "margin", ".4f"),
)
"""Words, field and format of each line of the table; ``p`` has as many decimals as the permutations allow."""


def pair_sentence(models: Mapping[str, NormVectors], found: PairSummary) -> str:
    """The verdict's sentence; of a replica it begins by saying that the vectors are synthetic."""
    replica = any("replica" in vectors.provenance for vectors in models.values())
    return sentence(found.verdict, found.obstacle, replica)


def shown(one: RoleSummary, name: str, form: str) -> str:
    """One measure as text; ``-`` stands for what is not defined. Arguments as a line of ROWS."""
    value = getattr(one, name)
    if value is None:
        return "-"
    text = format(value, f".{len(str(one.n_permutations))}f" if form == "p" else form)
    return text if any(digit in "123456789" for digit in text) else text.lstrip("+-")


def reading(one: RoleSummary) -> Iterator[str]:
    """What the null is, in two lines."""
    orders = f"{one.n_permutations:,} permutation{'s' if one.n_permutations != 1 else ''}"
    yield f"p: the share of {orders} of b's channels (one for all layers of a role; seed {one.seed})"
    yield "with a mean r as high as this or higher. A cosine near 1 is the usual case, for strangers too."


def remarks(models: Mapping[str, NormVectors], found: PairSummary) -> Iterator[str]:
    """What was not compared, and what a reader must know of the rest; roles with the same remark share a line."""
    gathered: dict[str, list[str]] = {}
    for role, reason in found.not_compared.items():
        gathered.setdefault(f"Not compared: {{}}: {reason}.", []).append(role)
    for role, one in found.roles.items():
        for note in one.notes:
            gathered.setdefault(f"Note: {{}}: {note}.", []).append(role)
    for side, vectors in models.items():
        for note in vectors.notes:
            gathered.setdefault(f"Note: {{}}: {note}", []).append(side)
    for text, places in gathered.items():
        yield text.replace("{}", ", ".join(places), 1)
