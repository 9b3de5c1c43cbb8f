"""Names that are made to hurt: they show as text on every page, in every file, on the terminal and in logs."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from command_line import run
from report_notebooks import PICTURE, answer, code, display, markdown, write
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, llama_tensors, write_files

import lnsim
from lnsim import LnsimError
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.checkpoint.store import FORMAT
from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import NotebookError
from lnsim.paths import extract_name
from lnsim.report import markup, provenance
from lnsim.report.html import prose_html, write_report
from lnsim.report.saving import figure_bytes, save_table
from lnsim.report.table import table
from lnsim.study.catalog import load_study
from lnsim.tables import card
from lnsim.tables import table as small
from lnsim.text import printable
from studies.run.index import Section, read_entry, write_index
from studies.run.record import Recorded, StudyRun, load_run, save_run

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "broken quotes": "\"><img src=x onerror=alert(1)><a href='javascript:alert(1)'>",
    "single quotes": "' onmouseover='alert(1)' x='",
    "closing tags": "</title></style></script><svg onload=alert(1)>",
    "a comment": "<!-- x --><![CDATA[<b>]]>-->",
    "entities": "&lt;script&gt;&#60;b&#62;&amp;",
    "half a tag": "<img src=x onerror=alert(1)",
    "templates": "${HOME} {{7*7}} {% raw %} $(id)",
    "ANSI": "\x1b[31mred\x1b]0;title\x07",
    "C1 controls": "\x9b31m\x85",
    "returns": "a\rlnsim: all is well",
    "NUL": "a\x00b",
    "right to left": "\u202egnp.\u2066x\u2069",
    "invisible": "a\u200b\u00ad\ufeffb\U000e0041",
    "10 kB": "<b>" * 100 + "x" * 9_700,
}
LINE_BREAKS = {"line breaks": "a\nlnsim: all is well\n\n\nb", "a line separator": "a\u2028b\u2029c"}
# In running text these two marks are formatting; they may make a word italic or set it as code, and no more.
MARKS = {"backticks": "`id` ``x``", "asterisks": "*a* **b**"}
PLAIN = "plain"


class _Structure(HTMLParser):
    """The elements of a page with their attributes' names, and its text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.values: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.values += [value or "" for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", ()))


def parsed(html: str) -> _Structure:
    found = _Structure()
    found.feed(html)
    found.close()
    return found


def is_harmless(text: str, keep: str = "\n") -> bool:
    """Whether it has no controls, format marks, half surrogates or line separators."""
    bad = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return not any(unicodedata.category(c) in bad and c not in keep for c in text)


def frame(text: str) -> pd.DataFrame:
    index = pd.Index([text, "b", "c", "d"], name=text)
    return pd.DataFrame({text: [1.0, 2.0, 3.0, 4.0], "note": [text, "x", "y", "z"]}, index=index)


PIECES: dict[str, Callable[[str], str]] = {
    "inline": markup.inline,
    "answer": lambda text: markup.says([(text, [text, text])], text),
    "picture": lambda text: markup.image(b"<svg/>", text),
    "figure": lambda text: markup.figure(b"<svg/>", text, text, text, text),
    "animation": lambda text: markup.figure(b"GIF", text, text, text, text, moving=True),
    "columns": lambda text: markup.columns([text], [text]),
    "provenance": lambda text: markup.provenance([(text, text)]),
    "table": lambda text: table(frame(text), "cap-1", text, text, text, {}, {text: text}),
    "table on its side": lambda text: table(frame(text), "cap-1", text, text, text, {}, {}, (), True),
}


@pytest.mark.parametrize("text", (HOSTILE | LINE_BREAKS | MARKS).values(), ids=HOSTILE | LINE_BREAKS | MARKS)
@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_a_piece_of_a_page_has_the_same_elements_whatever_the_names_are(piece: Callable[[str], str], text: str) -> None:
    hostile, plain = parsed(piece(text)), parsed(piece(PLAIN))
    if text in MARKS.values():
        assert [one for one in hostile.elements if one not in {("code", ()), ("i", ())}] == plain.elements
        return
    assert hostile.elements == plain.elements
    assert markup.typographic(text) in hostile.text + " ".join(hostile.values)


def report(folder: Path, text: str) -> tuple[str, Any]:
    """A report with a text at every place where a study, a model or an error may put one."""
    page = {
        # The index folds what follows the first sentence of it, in an element more: it is one sentence here.
        "trust": re.sub(r"[.!?](?=\s)", ",", text), "headline": text.replace("\n", " "),
        "finding": text, "compared": text, "control": text, "absent": [text], "missing": {text: text},
        "models": {text: {"source": text, "commit": text, "n_vectors": 3, "published": True}},
    }  # fmt: skip
    outputs = [
        display({"text/html": PIECES["figure"](text), "text/plain": ""}, {"lnsim": {"headline": True}}),
        display({"text/html": PIECES["table"](text), "text/plain": ""}, {"lnsim": {"headline_table": True}}),
        display({"text/html": PIECES["provenance"](text), "text/plain": ""}),
        display({"text/plain": text}),
        {"output_type": "stream", "name": "stdout", "text": text},
        {"output_type": "error", "ename": text, "evalue": text, "traceback": [text]},
        answer(**page),
    ]
    title = " ".join(text.split())
    path = write(folder / "01_a.ipynb", markdown(f"# {title}"), markdown("## Result"), code(f"x = {text!r}", *outputs))
    read = read_entry(path)
    return write_report(read, folder / "01_a.html").read_text("utf-8"), read


WHOLE_PAGES = {
    "all at once": "".join(text for name, text in (HOSTILE | LINE_BREAKS).items() if name != "10 kB"),
    **{name: HOSTILE[name] for name in ("script", "broken quotes", "closing tags", "a comment", "half a tag", "10 kB")},
    **LINE_BREAKS,
}


def pages(folder: Path, text: str) -> tuple[str, str]:
    """A report and an index with a text at every such place."""
    html, read = report(folder, text)
    done, failed = Recorded("01", "01_a", text, "done", 1.0), Recorded("02", "02_a", text, "failed", 1.0, text)
    outcomes, reasons, more = {"01": done, "02": failed}, {"03": text, "04": text}, {text: text}
    run = StudyRun("small_models", "stored", outcomes, reasons, commits=more, versions=more)
    section = Section(load_study("small_models"), run, {"01": read})
    return html, write_index([section], folder / "index.html").read_text("utf-8")


@pytest.fixture(scope="module")
def plain_pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return pages(tmp_path_factory.mktemp("plain"), PLAIN)


@pytest.mark.parametrize("text", WHOLE_PAGES.values(), ids=WHOLE_PAGES)
def test_pages_have_the_same_elements_whatever_the_names(
    tmp_path: Path, plain_pages: tuple[str, str], text: str
) -> None:
    for hostile, plain in zip(pages(tmp_path, text), plain_pages, strict=True):
        found = parsed(hostile)
        elements, expected = (
            [one for one in page.elements if one != ("span", ("class",))]  # the colours of the code cells
            for page in (found, parsed(plain))
        )
        assert elements == expected
        assert is_harmless(hostile, keep="\n\t")
        assert markup.typographic(printable(text, keep="\n"))[:200].split("\n")[0] in found.text
        assert not any(value.startswith(("javascript:", "http:", "//")) for value in found.values)


PROSE = {
    "a picture from elsewhere": "![x](https://evil.example/track.png)",
    "a picture by reference": "![x][y]\n\n[y]: https://evil.example/track.png",
    "a script link": "[x](javascript:alert(1))",
    "a data link": "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "an autolink": "<javascript:alert(1)>",
    "HTML": "<img src=x onerror=alert(1)> <b>x</b>\n\n<script>alert(1)</script>",
    "HTML in a list": "- <iframe src=//evil.example></iframe>",
    "HTML in a table": "| a |\n|---|\n| <script>x</script> |",
    "an attribute in a heading": '## x" onclick="alert(1)',
}


@pytest.mark.parametrize("source", PROSE.values(), ids=PROSE)
def test_prose_loads_nothing_and_runs_nothing(source: str) -> None:
    found = parsed(prose_html(source))
    assert not {tag for tag, _ in found.elements} & {"script", "iframe", "img", "svg", "object", "b", "comment"}
    assert not [names for _, names in found.elements if any(name.startswith("on") or name == "src" for name in names)]
    assert not any(value.lower().startswith(("javascript:", "data:", "//")) for value in found.values)


@pytest.mark.parametrize("text", (HOSTILE | LINE_BREAKS | MARKS).values(), ids=HOSTILE | LINE_BREAKS | MARKS)
def test_records_tables_and_errors_read_back_and_steer_nothing(tmp_path: Path, text: str) -> None:
    run = StudyRun("s", "stored", {"01": Recorded("01", "01_a", text, "failed", 1.0, text)}, {"02": text}, text)
    path = save_run(tmp_path / "s" / "run.json", run)
    assert is_harmless(path.read_text("utf-8"))
    assert load_run(path) == run
    assert is_harmless(save_table(frame(text), tmp_path, "01_t").read_text("utf-8"))
    assert is_harmless(repr(NotebookError(text)), keep="")


@pytest.mark.parametrize(
    "text", [*HOSTILE.values(), *LINE_BREAKS.values(), "$x$", "$\\frac{1}{$", "$$", "a $b_c_d$ \\"]
)
def test_a_figure_draws_any_name_as_text_in_a_file_that_is_whole(text: str) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(2, 1))
    ax.set_title(text[:300], parse_math=False)
    ax.plot([1, 2], label=text[:300])
    ax.set_yscale("log")
    svg = figure_bytes(figure, "svg", description=text)
    plt.close(figure)
    tree = ElementTree.fromstring(svg)
    assert not [element for element in tree.iter() if element.tag.endswith(("script", "foreignObject", "image"))]
    assert is_harmless(svg.decode(), keep="\n\t")


TOGETHER = {
    "all at once": "".join(text for name, text in (HOSTILE | LINE_BREAKS | MARKS).items() if name != "10 kB"),
    "10 kB": HOSTILE["10 kB"],
    "surrogates": "\ud800",
}


@pytest.mark.parametrize("text", TOGETHER.values(), ids=TOGETHER)
def test_the_command_line_prints_names_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    tensors = llama_tensors()
    if text.isascii() or "\ud800" not in text:  # a header with half a surrogate pair is refused
        tensors[f"{text}.norm.weight"] = np.ones(16, np.float32)
    for name, config in (("good", LLAMA_CONFIG), ("bad", {"model_type": text, "architectures": [text]})):
        write_files(tmp_path / name, checkpoint_files(tensors, config))
    steers = "m\x1b[31m"
    write_files(tmp_path / steers, checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    monkeypatch.chdir(tmp_path)
    few = ("--permutations", "99")
    for arguments in (
        ["inspect", "./good"], ["inspect", "./bad"], ["inspect", "./bad", "--json"],
        ["extract", "./good", "--all", "--out", "o"], ["extract", "./good", "--all", "--json", "--out", "o"],
        ["extract", "./bad", "--debug"], ["extract", "./good", "--role", text],
        ["compare", f"./{steers}", f"./{steers}", *few], ["compare", f"./{steers}", f"./{steers}", *few, "--json"],
    ):  # fmt: skip
        exit_code, out, err = run(*arguments)
        assert is_harmless(out)
        assert is_harmless(err)
        if "--json" in arguments:
            assert json.loads(out)
        elif exit_code == 1:
            assert err.splitlines()[-1].startswith("lnsim: ")


NO_PATHS = ["../../x", "/etc/passwd", "..", ".", "", "a/../../b", "a\\..\\b", "\x00", "~root"]
NO_PATHS += ["C:\\x", "x" * 5_000, "é\u202e"]


@pytest.mark.parametrize("name", [*NO_PATHS, *HOSTILE.values(), *LINE_BREAKS.values()])
def test_the_file_of_an_extract_lies_in_its_folder_whatever_repo_and_commit_are_called(name: str) -> None:
    rng = random.Random(name)
    for repo_id, commit in ((name, None), ("a/b", name), (name, name), (name + "/" + name, rng.choice(NO_PATHS))):
        file = extract_name(repo_id, commit)
        assert Path(file).name == file
        assert all(sign.isalnum() or sign in "._-@" for sign in file)
        assert file.isprintable()
        assert file.endswith(".safetensors")
        assert not file.startswith(".")
        assert len(file.encode()) < 230


def hostile_extract(folder: Path, **metadata: str) -> Path:
    """What anyone could send round as an extract."""
    content = file_bytes(llama_tensors(), {"format": FORMAT, "config": json.dumps(LLAMA_CONFIG), **metadata})
    return write_files(folder, {"model.safetensors": content}) / "model.safetensors"


def source_record(**changes: Any) -> str:
    entry = {"shard": "s.safetensors", "start": 0, "stop": 4, "sha256": "0", "dtype": "BF16"} | changes
    return json.dumps({name: entry for name in llama_tensors()})


@pytest.mark.parametrize("text", [*NO_PATHS, *HOSTILE.values(), *LINE_BREAKS.values()])
def test_an_extract_that_lies_about_its_origin_is_copied_into_the_folder_only(tmp_path: Path, text: str) -> None:
    path = hostile_extract(
        tmp_path / "in", source=text, repo_id=text, commit=text, revision=text, licence=text, tensors=source_record()
    )
    found = extract_and_keep(path, out=tmp_path / "out")
    assert found.path is not None
    assert {one for one in tmp_path.rglob("*") if one.is_file()} == {path, found.path}
    assert found.path.parent == tmp_path / "out"
    rows = parsed(markup.provenance(provenance.model_rows(text, lnsim.load(found.path))))
    assert {tag for tag, _ in rows.elements} <= {"dl", "div", "dt", "dd", "code", "i"}


BAD_RECORDS = {
    "no JSON": {"tensors": "{"},
    "a list": {"tensors": "[]"},
    "nested without end": {"tensors": '{"a":' * 5_000},
    "a list for a text": {"tensors": source_record(shard=[])},
    "true for a number": {"tensors": source_record(stop=True)},
    "an unknown key": {"tensors": source_record(more=1)},
    "other tensors": {"tensors": json.dumps({"\x1b[31m": {}})},
    **{
        f"roles {roles:.9}": {"tensors": source_record(), "roles_read": roles}
        for roles in ("{", "[1]", "null", "[" * 5_000)
    },
}


@pytest.mark.parametrize("record", BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_an_extract_whose_record_is_malformed_is_one_error(tmp_path: Path, record: dict[str, str]) -> None:
    path = hostile_extract(tmp_path, **record)
    expected = "roles_read" if "roles_read" in record else r"^Reading an extract: "
    with pytest.raises(LnsimError, match=expected) as caught:
        lnsim.load(path)
    assert is_harmless(str(caught.value), keep="")


def test_pictures_of_the_text_itself_stay() -> None:
    data = PICTURE.partition('src="')[2].partition('"')[0]
    assert parsed(prose_html(f"![A line.]({data})")).elements == [("p", ()), ("img", ("src", "alt"))]


def test_vectors_and_tables_in_a_notebook_show_names_as_text() -> None:
    text, wide = WHOLE_PAGES["all at once"], np.ones((2, 8), dtype=np.float32)
    one = RoleVectors(text, np.array([0, 3]), wide, None, wide, None, (text, "x" * 10_000), "rmsnorm")
    vectors = NormVectors(text, text, text, "rmsnorm", 8, {text: one}, {text: (1, 2)}, (text,))
    shown = [vectors._repr_html_(), one._repr_html_(), card(text, text, [text], [], [text]), small([text], [[text]])]
    for html in shown:
        found = parsed(html)
        assert {tag for tag, _ in found.elements} <= {"div", "span", "b", "table", "thead", "tbody", "tr", "th", "td"}
        assert {names for _, names in found.elements} <= {(), ("style",)}
        assert is_harmless(html)
    assert len(shown[0]) < 10_000
    assert repr(vectors).isprintable()
    assert repr(one).isprintable()
