"""This module is what a notebook uses to put its answer, figures, tables and provenance on its page.

A notebook opens one Page and calls it; each call shows a piece in JupyterLab, and the same output, taken out of the
executed notebook by ``lnsim.report.html``, makes the report. Figures and tables are saved on the way.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lnsim.checkpoint.extract import load
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import NotebookError, StudyError
from lnsim.paths import measured_dir, stored
from lnsim.report import markup, provenance
from lnsim.report.markup import PAGE_MIME
from lnsim.report.saving import csv_place, page_folder, save_animation, save_figure, save_table
from lnsim.report.table import table as table_markup
from lnsim.study.vectors import fetch_command, study_vectors
from lnsim.words import count

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lnsim.checkpoint.source import Checkpoint
    from lnsim.study.catalog import Study

# What a page on a replica says in place of its findings, since these would read as if they were about models.
_REPLICA_FINDS = "Nothing about models: this page tests the code on synthetic vectors, and its numbers are theirs."
_REPLICA_TRUST = "The vectors were drawn to match published means, spreads and correlations, so these come out again."
_REPLICA_SHOWS = "That every step of this page runs on vectors of the shapes that the real checkpoints have."


@dataclass(slots=True)
class Page:
    """The page of one notebook, for one study."""

    number: str  # the notebook's number, two digits
    study: Study  # the study, as read from its file
    source: str  # what was asked for: ``auto``, ``stored``, ``hub`` or ``replica``
    # where the vectors really came from, known once they are loaded, or ``measured`` where others' numbers stand
    # in their place
    kind: str = "stored"
    command: str = ""  # what makes the page again, where it is not ``run_all.py``
    _given: dict[str, Any] = field(default_factory=dict)
    _used: dict[str, NormVectors | Checkpoint] = field(default_factory=dict)
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _missing: dict[str, str] = field(default_factory=dict)
    _published: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        number: str,
        study: str,
        source: str = "auto",
        variables: Mapping[str, Any] | None = None,
        command: str = "",
    ) -> Page:
        """Start the page of a number, such as ``"01"``, for the study of a name.

        Variables are the notebook's, as ``globals()`` gives them: the page tells which of its parameters differ from
        the study's file. A page with a command needs no parameters there. StudyError when the study does not run this
        notebook, NotebookError when papermill set a parameter that the notebook does not have.
        """
        import matplotlib as mpl

        from lnsim.plots import style
        from lnsim.study.catalog import load_study

        # What a cell adds to a figure looks like the rest of it; a figure of the reader's own keeps its layout.
        mpl.rcParams.update({name: value for name, value in style.items() if not name.startswith("figure.")})
        loaded, given = load_study(study), variables or {}
        _check_injected(number, list(given.get("In", ())))
        if command:
            return cls(number, loaded, source, command=command)
        if number not in loaded.experiments:
            reason = loaded.not_run.get(number, "its file has no parameters for it")
            raise StudyError(f"Study '{loaded.name}' does not run notebook {number}: {reason}.")
        stands = loaded.experiments[number]
        changed = {name: given[name] for name in stands if name in given and given[name] != stands[name]}
        return cls(number, loaded, source, _given=changed)

    def load(self, keys: Iterable[str], evidence: bool = False) -> dict[str, NormVectors]:
        """The vectors of these models by key, remembered for the provenance; StudyError when any is missing.

        With `evidence`, the matrix rows that were kept of them come along.
        """
        found = study_vectors(self.study, self.source, list(keys), evidence)
        self.opened(found.kind, found.vectors, found.missing, all_of_them=True)
        return dict(found.vectors)

    def load_available(self, keys: Iterable[str], or_none: bool = False) -> dict[str, NormVectors]:
        """The vectors of those models that have some, by key; the others are named on the page with their reasons.

        StudyError where none has any, unless the page has published numbers to rest on (`or_none`).
        """
        found = study_vectors(self.study, self.source, list(keys))
        if or_none and not found.vectors:
            self.kind = "measured"
            return {}
        self.opened(found.kind, found.vectors, found.missing)
        return dict(found.vectors)

    def measured(self, name: str) -> pd.DataFrame:
        """A table of numbers that others measured and published, from ``data/measured``; the provenance names it.

        NotebookError where the study has no such table.
        """
        import pandas as pd

        folder, self.kind = measured_dir(self.study.name), "measured"
        try:
            found, sources = (pd.read_csv(folder / f"{one}.csv") for one in (name, "sources"))
        except FileNotFoundError as error:
            raise NotebookError(f"Page {self.number}: reading the published table '{name}': {error}.") from error
        self._published |= {row.file: row for row in sources.itertuples() if row.file == name}
        return found

    def take(self, label: str, source: str, evidence: bool = False) -> NormVectors:
        """The vectors of a model that is none of the study's, under the name that readers see; with its matrix rows."""
        self._used[label] = vectors = load(source, evidence)
        if source not in stored() and not provenance.record(vectors)["published"]:
            self.kind = "given"
        return vectors

    def opened(
        self,
        kind: str,
        models: Mapping[str, NormVectors] | Mapping[str, Checkpoint],
        missing: Mapping[str, str],
        what: str = "vectors",
        all_of_them: bool = False,
    ) -> None:
        """Remember for the provenance what was read, and what is missing; both are by model key.

        What was opened is vectors, or a checkpoint for other tensors than norms, which are fetched for this notebook
        alone. StudyError where there are no models, or not all of them and none may be missing.
        """
        if missing and (all_of_them or not models):
            key, reason = next(iter(missing.items()))
            only = "" if what == "vectors" else f" --only {self.number}"
            raise StudyError(
                f"Notebook {self.number}, study '{self.study.name}': model '{key}' has no {what}. {reason} "
                f"To have them: {fetch_command(self.study)}{only}"
            )
        self.kind = self.kind if self.kind == "given" else kind  # stored controls do not vouch for a file
        self._used.update(models)
        self._missing.update(missing)

    @property
    def missing(self) -> Mapping[str, str]:
        """By the label that readers see, why a model that was asked for is not on this page."""
        return {self.study.model(key).label: reason for key, reason in self._missing.items()}

    def label(self, key: str) -> str:
        """A model's name as readers see it; that of a replica says so."""
        label = self.study.model(key).label
        return f"the replica of {label}" if self.kind == "replica" else label

    def answer(
        self,
        finding: str,
        compared: str,
        control: str,
        trust: str,
        headline: str | None = None,
        about: str = "general",
        of_vectors: bool = True,
        lacking: str = "",
    ) -> None:
        """The answer at the top of the report; a page on a replica says that it finds nothing about models.

        The finding is one sentence with its numbers, the notebook's own in the index too; then what was set beside
        what, the control in a line, and how far to trust it: the control's outcome and the weakest point. A headline
        stands at the top of the index; it is about the ``dispute``, what holds in ``general``, or how far to ``trust``
        it. What does not rest on the page's vectors (`of_vectors`) is no replica's, here and below. `lacking` says what
        the control lacks, in bold.
        """
        says = {"finding": finding, "compared": compared, "control": control, "trust": trust}
        if of_vectors and self.kind == "replica":
            says, headline = says | {"finding": _REPLICA_FINDS, "trust": _REPLICA_TRUST}, None
        if empty := [name for name, text in says.items() if not text.strip()]:
            raise NotebookError(
                f"Page {self.number}: the answer's '{empty[0].title()}' is empty; each of the four needs text."
            )
        absent = [f"{label}: {reason}" for label, reason in self.missing.items()]
        record = {
            "number": self.number, "study": self.study.name, "source": self.kind, "headline": headline, **says,
            "about": about, "lacking": lacking, "missing": dict(self._missing), "absent": absent,
            "models": {key: provenance.record(opened) for key, opened in self._used.items()},
            "versions": provenance.versions(),
        }  # fmt: skip
        _show({PAGE_MIME: record, "text/html": markup.badge(self.kind) + markup.answer(record)})

    def say(self, text: str, of_vectors: bool = True) -> None:
        """Prose in Markdown; put numbers in with an f-string, so that none is typed by hand."""
        text = f"Synthetic replica: {text}" if text and of_vectors and self.kind == "replica" else text
        _show({"text/markdown": markup.typographic(text), "text/plain": text})

    def figure(
        self,
        drawn: Axes | Figure,
        name: str,
        claim: str,
        caption: str = "",
        alt: str = "",
        headline: bool = False,
        of_vectors: bool = True,
        moving: FuncAnimation | None = None,
    ) -> None:
        """Save a figure as PNG and SVG, then show it with its caption; a moving one as GIF, which waits for a reader.

        It is what ``lnsim.plots`` returned, or one of your own; it is closed afterwards. The files are called
        ``NN_name``. The claim, in bold, is what the figure means, the caption what is drawn, `alt` what is seen, with
        the numbers: by default the claim, and what the axes say. One figure of all is the index's `headline`.
        """
        import matplotlib.pyplot as plt
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = drawn.get_figure(root=True)
        if not isinstance(figure, Figure):
            raise NotebookError("Saving a figure: the Axes belongs to no figure.")
        alt = self._marked(alt or f"{claim} {_described(figure)}", of_vectors)
        label = self._label("Figure", name, of_vectors)
        if self._marked("", of_vectors):
            if isinstance(engine := figure.get_layout_engine(), ConstrainedLayoutEngine):  # a strip above all titles
                engine.set(rect=(0, 0, 1, 1 - 0.24 / figure.get_size_inches()[1]))
            figure.text(0.995, 0.995, "REPLICA", ha="right", va="top", fontsize=10, weight="bold", color="#bf4a00")
        folder, file = page_folder(self.study.name) / "figures", f"{self.number}_{name}"
        if moving is not None:
            picture = save_animation(moving, figure, folder, file)
        else:
            picture = save_figure(figure, folder, file, provenance.description(self._used.values()))
        html = markup.figure(picture, alt, label, claim, caption, moving is not None)
        _show({"text/html": html}, {"lnsim": {"headline": True}} if headline else {})
        plt.close(figure)  # else JupyterLab would show it a second time

    def table(
        self,
        frame: pd.DataFrame,
        name: str,
        claim: str,
        caption: str = "",
        formats: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        shown: pd.DataFrame | None = None,
        transpose: bool = False,
        headline: bool = False,
        kinds: str = "group",
        of_vectors: bool = True,
        verdicts: bool = False,
    ) -> None:
        """Write a DataFrame as the CSV ``NN_name.csv``, with every digit, then show it as a table, as ``table`` does.

        The caption says what the columns mean, n, and the side of a p-value. `shown` is the part or shape of the frame
        that stands on the page, where the whole is too long. The `headline` table and the one of `verdicts` stand on
        the index too: all their rows are in sight; of the first a stronger line parts the groups, of the other the rows
        are cards in a narrow window. The CSV of one that is not `of_vectors`, and of a replica, says so in a column.
        """
        signed = frame
        if not of_vectors:
            signed = frame.assign(source="published numbers alone")
        elif self.kind == "replica":  # a CSV has no badge
            signed = frame.assign(source="REPLICA, synthetic")
        path = save_table(signed, page_folder(self.study.name) / "tables", f"{self.number}_{name}")
        label = self._label("Table", name, of_vectors)
        given = frame if shown is None else shown
        html = table_markup(
            given, f"cap-{self._numbers['Table', name]}", label, claim, caption, formats or {}, labels or {},
            parted=headline, transpose=transpose, whole=headline or verdicts, kinds=kinds, cards=verdicts,
            csv=csv_place(path),
        )  # fmt: skip
        marks = {name: True for name, is_so in (("headline_table", headline), ("verdicts", verdicts)) if is_so}
        _show({"text/html": html}, {"lnsim": marks} if marks else {})

    def shows(self, shows: Sequence[str], shows_not: Sequence[str], of_vectors: bool = True) -> None:
        """What the notebook shows and what it does not show, side by side."""
        shows = [_REPLICA_SHOWS] if of_vectors and self.kind == "replica" else shows
        _show({"text/html": markup.columns(shows, shows_not)})

    def provenance(
        self, seed: int | None = None, n_permutations: int | None = None, models_in: str | None = None
    ) -> None:
        """Where everything came from: every model that was loaded, the seed, the versions, the command.

        `models_in` is the name of the table that lists the models, where they are too many to be listed here.
        """
        rows: list[tuple[str, str]] = []
        if models_in is None:
            for key, opened in self._used.items():
                rows += provenance.model_rows(self.study.labels.get(key, key), opened)
        else:
            place = f"`tables/{self.number}_{models_in}.csv`"
            rows.append(("Models", f"{len(self._used)} stored extracts, one a row of {place}"))
        for one in self._published.values():
            rows.append((one.file, f"{one.rows} rows from {one.repo}, `{one.path}`, commit `{one.commit}`: {one.what}"))
        if seed is not None:
            rows.append(("Seed", f"{seed}" + (f"; {n_permutations:,} permutations" if n_permutations else "")))
        rows.append(("Versions", ", ".join(f"{name} {number}" for name, number in provenance.versions().items())))
        rows.append(("Made again by", f"`{self._made_again_by()}`"))
        _show({"text/html": markup.provenance(rows)})

    def _made_again_by(self) -> str:
        if self.command:
            return self.command
        source = f" --source {self.kind}" if self.kind in ("hub", "replica") else ""
        changed = "".join(f" --set {shlex.quote(f'{name}={value!r}')}" for name, value in self._given.items())
        return f"python run_all.py --study {self.study.name}{source} --only {self.number}{changed}"

    def _label(self, kind: str, name: str, of_vectors: bool = True) -> str:
        """A figure or table with its number; the same name keeps its number when a cell is run again."""
        number = 1 + sum(other == kind for other, _ in self._numbers)
        return self._marked(f"{kind} {self._numbers.setdefault((kind, name), number)}.", of_vectors)

    def _marked(self, text: str, of_vectors: bool = True) -> str:
        return f"REPLICA. {text}" if of_vectors and self.kind == "replica" else text


def _check_injected(number: str, cells: Sequence[str]) -> None:
    """Refuse a name that papermill set and the notebook's own parameters do not have: papermill only warns of it."""
    for own, injected in pairwise(cells):
        if injected.startswith("# Parameters\n"):
            names, known = ([ast.unparse(one.targets[0]) for one in ast.parse(cell).body if isinstance(one, ast.Assign)]
                            for cell in (injected, own))  # fmt: skip
            if unknown := [name for name in names if name not in known]:
                raise NotebookError(
                    f"Page {number}: papermill set '{unknown[0]}', which is no parameter of this notebook; those are "
                    f"{', '.join(known)}."
                )


def _described(figure: Figure) -> str:
    """What the panels of a figure are, for who does not see them: titles, what the axes are, and their ends."""
    panels = []
    for ax in figure.axes:
        ends = [(ax.get_xlabel(), *ax.get_xlim()), (ax.get_ylabel(), *ax.get_ylim())]
        axes = [f"{label.replace(chr(10), ' ')} from {low:.3g} to {high:.3g}" for label, low, high in ends if label]
        panels.append(", ".join(filter(None, [ax.get_title(), *axes])))
    told = [panel for panel in panels if panel]
    return f"{count(len(panels), 'panel')}: {'; '.join(told)}." if told else ""


def _show(data: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> None:
    from IPython.display import display  # type: ignore[attr-defined, unused-ignore]

    bundle = {"text/plain": "", **data}
    display(bundle, metadata=dict(metadata or {}), raw=True)  # type: ignore[no-untyped-call, unused-ignore]
