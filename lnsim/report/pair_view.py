"""This module compares two models: the words and numbers of ``lnsim compare``, and what a notebook shows of them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lnsim.checkpoint.extract import Extracted, read_many, read_pair
from lnsim.checkpoint.opening import lies_on_disk
from lnsim.checkpoint.reading import Question
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import IN_LLAMA, NormVectors
from lnsim.errors import ComparisonError, LnsimError
from lnsim.measure.compare import ONE_LAYER, PairSummary, RoleSummary, summarise_pair
from lnsim.measure.evidence import RowEvidence, weigh_rows
from lnsim.measure.pair_test import MOST
from lnsim.near_names import with_near_names
from lnsim.report.markup import typographic
from lnsim.tables import aligned, card, table
from lnsim.text import printable
from lnsim.words import TEXTS, count, header_text, p_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_WIDTH = 100  # characters of a line in a terminal
_INDENT = "\u00a0\u00a0"
# Permutations behind the bands of a figure: enough for 2.5 % at either end, and a tenth of the time of 9,999.
_MOST_FOR_BANDS = 999

_ROWS: Sequence[tuple[str, str, str]] = TEXTS["comparison"]["measures"]
_SAYS: Mapping[str, str] = TEXTS["comparison"]["says"]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two models compared, as a notebook shows them: their names and vectors, what was measured, and the verdict."""

    names: tuple[str, str]
    a: NormVectors
    b: NormVectors
    summary: PairSummary
    rows: RowEvidence | None = None

    @classmethod
    def of(
        cls, names: tuple[str, str], a: NormVectors, b: NormVectors, n_permutations: int, seed: int, evidence: bool,
        same_token_ids: bool, progress: Progress = no_progress,
    ) -> Comparison:  # fmt: skip
        """Compare vectors that were read, as ``compare`` says."""
        summary = summarise_pair(a, b, n_permutations, seed, progress)
        how = summary.judgement.rows.ordered, n_permutations, seed, same_token_ids
        return cls(names, a, b, summary, weigh_rows(a, b, *how) if evidence else None)

    @property
    def sentence(self) -> str:
        """The verdict: one sentence out of a fixed set; of a replica it begins by saying that it is synthetic."""
        replica = any("replica" in vectors.provenance for vectors in (self.a, self.b))
        return self.summary.judgement.sentence(replica)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was not compared, and what a reader must know of the rest; roles with the same remark share a line.

        That one layer has no other to be aligned with goes without saying; the record of a role says it.
        """
        told = [(f"Not compared: {{}}: {reason}.", role) for role, reason in self.summary.not_compared.items()]
        apart = self.summary.judgement.rows.apart.items()
        told += [(f"No part of the verdict: {{}}: {reason}.", role) for role, reason in apart]
        notes = [(note, role) for role, one in self.summary.roles.items() for note in one.notes if note != ONE_LAYER]
        told += [(f"Note: {{}}: {note}.", role) for note, role in notes]
        told += [(f"Note: {{}}: {note}", side) for side, _, vectors in self._sides() for note in vectors.notes]
        gathered: dict[str, list[str]] = {}
        for text, place in told:
            gathered.setdefault(text, []).append(place)
        return tuple(text.replace("{}", ", ".join(places), 1) for text, places in gathered.items())

    @property
    def rows_in_words(self) -> tuple[str, ...]:
        """What the rows of the matrices show, where they were read: the sentence, its p, and a line a test."""
        found = self.rows
        if found is None:
            return ()
        both = found.values is not None and found.tokens is not None
        of = "twice the smaller of two exact tests" if both else "of one exact test"
        together = "" if found.pvalue is None else f", p = {_exact(found.pvalue)} ({of})"
        lines = [f"Beyond norms{together}: {found.sentence(self.summary.judgement.strength)}"]
        for what, test in (("Value rows", found.values), ("Token rows", found.tokens)):
            if test is not None:
                at = f"{what} of layers {test.layers[0]} and {test.layers[1]}" if test.layers else what
                signs, most = count(test.n_signs, "sign"), math.sqrt(test.n_signs or 1)
                lines.append(_SAYS["signs"].format(at=at, z=test.z, most=most, signs=signs, p=_exact(test.pvalue)))
        if found.gamma is not None:
            lines.append(_SAYS["gamma"].format(r=found.gamma.r, p=p_value(found.gamma.pvalue)))
        return (*lines, *(f"Not tested: {reason}" for reason in found.missing))

    def record(self, report: str | None = None) -> dict[str, Any]:
        """What ``lnsim compare --json`` prints, with the place of the report where one was made."""
        return {
            "a": self.names[0],
            "b": self.names[1],
            "roles": {role: asdict(one) for role, one in self.summary.roles.items()},
            "not_compared": dict(self.summary.not_compared),
            "verdict": self._verdict(),
            **({} if self.rows is None else {"evidence": self.rows.record(self.summary.judgement.strength)}),
            "models": {side: _model(vectors) for side, _, vectors in self._sides()},
            "requests": self.a.requests + self.b.requests,
            "bytes_received": self.a.bytes_received + self.b.bytes_received,
            "report": report,
        }

    def _verdict(self) -> dict[str, Any]:
        found, test = self.summary.judgement, self.summary.judgement.test
        measured = ("pvalue", "pvalue_se", "p_ranks", "n_permutations", "pattern_kept")
        return {
            "key": found.key,
            "strength": found.strength,
            "sentence": self.sentence,
            "r": None if test is None else test.r,
            **dict(zip(("r_low", "r_high"), found.interval(), strict=True)),
            **{name: None if test is None else getattr(test, name) for name in measured},
        }

    def text(self) -> str:
        """What ``lnsim compare`` prints for a person."""
        said = [f"Verdict: {self.sentence}", *self.test_in_words, *self.rows_in_words, *self.remarks]
        models = aligned(("", "source", "family", "vectors", "channels", "commit"), self._models(12))
        measures = _columns_that_fit(self._measures()) if self.summary.roles else ()
        wrapped = (line for text in said for line in textwrap.wrap(text, _WIDTH, subsequent_indent="  "))
        return printable("\n".join([models, "", *measures, *wrapped]), keep="\n")

    def markdown(self) -> str:
        """The table of measures in Markdown, then the verdict and its test."""
        head, *rows = self._measures() if self.summary.roles else [["", "nothing compared"]]
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
        table = "\n".join(f"| {' | '.join(cell.strip().replace('|', '&#124;') for cell in line)} |" for line in lines)
        return printable("\n\n".join([table, f"**{self.sentence}**", *self.test_in_words]), keep="\n")

    def rows_as_csv(self) -> str:
        """One line a role and layer: role, layer_a, layer_b, cosine, r."""
        rows = [(role, *cell.values()) for role, one in self.summary.roles.items() for cell in one.by_layer]
        return "".join(f"{','.join(map(str, row))}\n" for row in [("role", "layer_a", "layer_b", "cosine", "r"), *rows])

    def to_frame(self) -> pd.DataFrame:
        """One row a role: the measures of ``lnsim compare --json``; what is not defined is missing."""
        import pandas as pd

        rows = pd.DataFrame.from_dict({role: asdict(one) for role, one in self.summary.roles.items()}, orient="index")
        return rows.rename_axis("role").where(rows.notna(), np.nan)

    def by_layer(self) -> pd.DataFrame:
        """One row a role and layer: ``r`` beside ``null_low`` and ``null_high``, as ``measure.cells.layer_bands`` says.

        At most 999 of the permutations are taken. ComparisonError where no layer has a defined r.
        """
        from lnsim.measure.cells import layer_bands

        some = min((one.n_permutations for one in self.summary.roles.values()), default=_MOST_FOR_BANDS)
        seed = next((one.seed for one in self.summary.roles.values()), 0)
        return layer_bands(self.a, self.b, self.summary.roles, min(some, _MOST_FOR_BANDS), seed)

    def plot(self) -> Figure:
        """A figure of ``by_layer``: one panel a role, r of each layer beside the range of permuted channels.

        As the last line of a cell it is drawn there; elsewhere ``display`` or ``savefig`` shows or saves it.
        """
        from lnsim import plots

        rows = self.by_layer()
        rows = rows[rows["layer"] >= 0] if (rows["layer"] >= 0).any() else rows
        outside = (rows["r"] > rows["null_high"]) | (rows["r"] < rows["null_low"])
        titles = {
            role: f"{header_text(role)}: {some.sum()} of {len(some)} outside"
            for role, some in outside.groupby(rows["role"], sort=False)
        }
        names = printable(" × ".join(f"{name:.60}" for name in self.names))
        return plots.facets(
            plots.curves, rows, "role", x="layer", y="r", hue="role", lines=False, band=("null_low", "null_high"),
            title=f"Pearson r, {names}", titles=titles,
        )  # fmt: skip

    def __repr__(self) -> str:
        return printable(f"Comparison({self.names[0]!r:.120} × {self.names[1]!r:.120}: {self.sentence})")

    def _repr_html_(self) -> str:
        models = table(("side", "source", "family", "vectors", "channels", "commit"), self._models())
        (_, *roles), *rows = self._measures()
        measures = [[words.replace("  ", _INDENT), *map(typographic, cells)] for words, *cells in rows]
        notes = [f"Verdict: {self.sentence}", " ".join(self.test_in_words), *self.remarks]
        return card("Comparison", " × ".join(self.names), [], [models, table(("measure", *roles), measures)], notes)

    def _sides(self) -> Iterator[tuple[str, str, NormVectors]]:
        return zip("ab", self.names, (self.a, self.b), strict=True)

    def _models(self, digits: int | None = None) -> list[tuple[object, ...]]:
        return [
            (side, name, one.model_type, one.n_vectors, one.hidden_size, (one.commit or "")[:digits] or "none recorded")
            for side, name, one in self._sides()
        ]

    def _measures(self) -> list[list[str]]:
        """The table of the measures, a column a role, with its head."""
        roles = self.summary.roles
        spellings = [IN_LLAMA.get(role, "") for role in roles]
        rows = [["", *roles], *([["  as Llama names it", *spellings]] if any(spellings) else [])]
        return rows + [[words, *(_shown(one, name, form) for one in roles.values())] for words, name, form in _ROWS]

    @property
    def test_in_words(self) -> tuple[str, ...]:
        """The test that the verdict rests on, in two lines; none where nothing was tested."""
        found, test = self.summary.judgement, self.summary.judgement.test
        if test is None:
            return ()
        (low, high), digits = found.interval(), len(str(test.n_permutations))
        pvalue, error, by_r, by_ranks = (
            f"{value:.{digits}f}" for value in (test.pvalue, test.pvalue_se, test.p_r, test.p_ranks)
        )
        told = {"norms": count(test.n_rows, "norm"), "permutations": count(test.n_permutations, "permutation")}
        told |= {"p": pvalue, "error": error, "by_r": by_r, "by_ranks": by_ranks}
        kept = 100 * test.pattern_kept
        return tuple(_SAYS[key].format(test=test, low=low, high=high, kept=kept, **told) for key in ("mean_r", "p"))


def _exact(p: float) -> str:
    """A p-value that is known in closed form, however small."""
    return p_value(p) if p >= 1e-4 else f"{p:.0e}"


def compare(
    a: str | Path | NormVectors,
    b: str | Path | NormVectors,
    roles: str | Iterable[str] | None = None,
    n_permutations: int = MOST,
    seed: int = 0,
    evidence: bool = False,
    same_token_ids: bool = False,
) -> Comparison:
    """Compare two models as ``lnsim compare`` does; nothing is written.

    Each is a SOURCE, or vectors that were read before: with ``evidence``, which tests rows of the matrices too, these
    must have been read with them. ``roles`` are lnsim's names or the Llama family's, by default all that both have. A
    test costs at most so many permutations of the channels; strangers are told after some hundred. ``same_token_ids``
    says that equal ids are equal tokens, where no tokenizer tells. LnsimError says in a sentence what could not be
    read, a ComparisonError why nothing can be compared.

    >>> compare("all-minilm-l6-v2", "sre-minilm-l6", "post_mlp", n_permutations=1999).summary.judgement.strength
    'strong'
    """
    if evidence and roles is not None:
        raise ComparisonError("Comparing rows of matrices: they need the norms of every role; leave roles out.")
    wanted = None if roles is None else (roles,) if isinstance(roles, str) else tuple(roles)
    found = read_sources([one for one in (a, b) if not isinstance(one, NormVectors)], wanted, evidence=evidence)
    errors = [one for one in found if isinstance(one, LnsimError)]
    for other in errors[1:]:
        errors[0].add_note(str(other))
    if errors:
        raise errors[0]
    read = iter([one.vectors for one in found if isinstance(one, Extracted)])

    def narrowed(one: NormVectors) -> NormVectors:
        return one if wanted is None else replace(one, roles={one[role].role: one[role] for role in wanted})

    first, second = (narrowed(one) if isinstance(one, NormVectors) else next(read) for one in (a, b))
    name_a, name_b = (one.source if isinstance(one, NormVectors) else str(one) for one in (a, b))
    return Comparison.of((name_a, name_b), first, second, n_permutations, seed, evidence, same_token_ids)


def read_sources(
    sources: Sequence[str | Path],
    roles: Iterable[str] | None,
    revision: str | None = None,
    progress: Progress = no_progress,
    **how: Any,
) -> list[Extracted | LnsimError]:
    """Read sources, asked for as of ``extract``, two of them at once; an error stands for what could not be read.

    It has near names. The revision is for those on the Hub; where none is there, each says that it has none to choose.
    """
    on_hub = [source for source in sources if not lies_on_disk(str(source))] or sources
    asked = [Question.of(source, roles, revision if source in on_hub else None, **how) for source in sources]
    found = read_pair(*asked, progress=progress) if len(asked) == 2 else list(read_many(asked))
    return [
        with_near_names(one, str(source)) if isinstance(one, LnsimError) else one
        for one, source in zip(found, sources, strict=True)
    ]


def _model(vectors: NormVectors) -> dict[str, Any]:
    return {
        "source": vectors.source,
        "repo_id": vectors.provenance.get("repo_id"),
        "commit": vectors.commit,
        "model_type": vectors.model_type,
        "norm_type": vectors.norm_type,
        "tower": vectors.main_tower,
        "hidden_size": vectors.hidden_size,
        "n_vectors": vectors.n_vectors,
        "notes": list(vectors.notes),
    }


def _shown(one: RoleSummary, name: str, form: str) -> str:
    """One measure as text, by a line of _ROWS; ``-`` stands for what is not defined."""
    value = getattr(one, name)
    if value is None:
        return "-"
    text = format(value, f".{len(str(one.n_permutations))}f" if form == "p" else form)
    return text if any(digit in "123456789" for digit in text) else text.lstrip("+-")


def _columns_that_fit(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table, numbers to the right, as many columns beside each other as fit, the others below them."""
    words, *columns = zip(*rows, strict=True)
    label = max(map(len, words))
    parts: list[list[tuple[str, ...]]] = []
    room = 0
    for column in columns:
        width = max(8, *map(len, column)) + 2
        if width > room:
            parts.append([])
            room = _WIDTH - label
        parts[-1].append(tuple(f"{cell:>{width}}" for cell in column))
        room -= width
    for part in parts:
        for line, cells in zip(words, zip(*part, strict=True), strict=True):
            if "".join(cells).strip():
                yield f"{line:<{label}}{''.join(cells)}".rstrip()
        yield ""
