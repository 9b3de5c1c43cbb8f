"""Tests of tables as readers see them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from lnsim.errors import NotebookError
from lnsim.report.html import clean_html
from lnsim.report.table import cell_text, table
from studies.pictures import Strip


class Cells(HTMLParser):
    """Tags with their attributes, and the text of each cell."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts and self.tags[-1][0] in ("td", "th"):
            self.texts[-1] += data.strip()


def written(frame: pd.DataFrame, **options: object) -> str:
    given = {"formats": {}, "labels": {}, **options}
    return table(frame, "cap-1", "Table 1.", "A claim.", "A caption.", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "spec", "expected"),
    [
        (np.float64(-0.1234), ".3f", "−0.123"),
        (-0.0001, ".3f", "0.000"),
        (np.int64(-12345), ".3f", "−12,345"),
        (float("nan"), ".3f", "undefined"),
        (None, ".3f", "none"),
        (np.bool_(True), ".3f", "yes"),
        ("encoder/pre_mlp", ".3f", "encoder/pre-MLP"),
        (0.471, ".1%", "47.1 %"),
        (0.00414, "p", "0.0041"),
        (1e-5, "p", "<0.0001"),
        (float("nan"), "p", "undefined"),
    ],
)
def test_a_value_reads_as_in_print(value: object, spec: str, expected: str) -> None:
    assert cell_text(value, spec) == expected


def test_every_header_has_its_scope_the_caption_names_the_box_and_text_stands_left() -> None:
    html = written(pd.DataFrame({"kind": ["copy"], "r": [-0.5]}, index=["x"]), labels={"kind": "Kind"})
    tags = Cells(html).tags
    assert all("scope" in attributes for tag, attributes in tags if tag == "th")
    assert next(tag for tag, _ in tags if tag in ("td", "th")) == "td"  # the empty corner is no header
    assert next(a for tag, a in tags if tag == "div")["aria-labelledby"] == "cap-1"
    assert next(a for tag, a in tags if tag == "caption")["id"] == "cap-1"
    assert '<th scope="col" class="text">Kind</th>' in html
    assert "<td>−0.500</td>" in html


def test_columns_of_two_levels_get_group_headers_and_attributes_may_go_downwards() -> None:
    columns = pd.MultiIndex.from_tuples([("pre_mlp", "cosine"), ("pre_mlp", "r"), ("final", "r")])
    html = written(pd.DataFrame([[1.0, 2.0, 3.0]], columns=columns, index=pd.Index([4], name="layer")))
    assert '<th scope="colgroup" colspan="2">pre-MLP</th>' in html
    assert '<th scope="colgroup" colspan="1">final</th>' in html
    frame = pd.DataFrame({"p_value": [0.0001], "layers": [30]}, index=["pre_mlp"])  # on its side each keeps its format
    assert {"0.0001", "30", "p value", "pre-MLP"} <= set(Cells(written(frame, transpose=True)).texts)


def test_row_numbers_give_way_to_the_first_column_and_evenly_spaced_layers_are_a_name_and_stay() -> None:
    texts = Cells(written(pd.DataFrame({"model": ["a", "b"], "n": [1, 2]}))).texts
    assert texts == ["model", "n", "a", "1", "b", "2"]
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": 0.5}, index=pd.RangeIndex(5, 20, 5, name="layer"))
    assert Cells(written(frame)).texts[:5] == ["layer", "a", "b", "5", "1.000"]
    with pytest.raises(NotebookError, match="'cap-1': it has no rows or no columns"):
        written(pd.DataFrame())


def long(n: int) -> pd.DataFrame:
    return pd.DataFrame({"r": np.arange(n) / 7, "word": "x"}, index=[f"row {place}" for place in range(n)])


def test_a_table_of_more_than_a_few_rows_can_be_sorted_by_numbers_with_more_digits_than_are_shown() -> None:
    html = written(long(4))
    assert 'class="dataframe"' in html
    assert "data-v" not in html
    html = written(long(6))
    assert '<table class="dataframe sorts">' in html
    assert '<td data-v="0.1428571429">0.143</td><td class="text">x</td>' in html


def test_rows_say_what_their_pair_is_and_the_relation_stands_in_its_colour() -> None:
    relations = {"group": ["related", "independent"], "relation": ["exact copy", "independent"], "n": [1, 2]}
    html = written(pd.DataFrame(relations, index=["A × B", "A × C"]))
    assert '<tr data-kind="related"><th scope="row">A × B</th><td class="text rel">exact copy</td>' in html
    assert '<tr data-kind="independent">' in html
    assert ">group<" not in html
    html = written(pd.DataFrame({"group": ["within", "related"], "n": [1, 2]}, index=["x", "y"]))
    assert '<tr data-kind="within"><th scope="row">x</th><td class="text">within</td>' in html  # without a colour
    assert '<td class="text rel">related</td>' in html
    html = written(pd.DataFrame({"group": ["dense"], "n": [1]}, index=["x"]))
    assert "data-kind" not in html
    assert ">group<" in html
    html = written(pd.DataFrame({"verdict": ["wrong <b>"], "n": [1]}, index=["a"]), kinds="verdict")
    assert 'data-kind="wrong &lt;b&gt;"' in html  # readers may filter by any column of kinds


def test_a_line_is_drawn_where_another_group_begins() -> None:
    frame = pd.DataFrame({"group": ["related", "independent", "independent"], "a": [1, 2, 3]}, index=["x", "y", "y"])
    html = written(frame, parted=True)
    assert html.count('class="gap"') == 1
    assert html.index('<tr class="gap" data-kind="independent">') > html.index(">x<")
    assert 'class="gap"' not in written(frame)
    assert 'class="gap"' not in written(frame.drop(columns="group"), parted=True)


def test_a_column_of_sentences_is_broken_into_lines() -> None:
    frame = pd.DataFrame({"short": ["x", "y"], "long": ["word " * 15, "z"], "longer": ["word " * 30, "z"]})
    cells = Cells(written(frame.set_index("short")))
    kinds = [attributes.get("class") for tag, attributes in cells.tags if tag == "td"]
    assert kinds == ["prose", "prose wide"] * 2


def numbers(html: str, name: str) -> list[float]:
    return [float(value) for value in re.findall(rf' {name}="(-?[\d.]+)"', html)]


def test_a_strip_is_a_picture_in_its_cell_whose_mark_lies_between_the_ends_of_the_scale() -> None:
    strip = Strip(0.4, -0.05, 0.07, "related")
    assert numbers(strip.html, "cx") == [68.0]
    assert numbers(strip.html, "x") + numbers(strip.html, "width")[:1] == [23.0, 12.0]
    assert '<circle class="rel"' in strip.html
    assert numbers(Strip(-0.9, -0.3, 0.3, "independent").html, "cx") == [8.0]  # beyond it
    assert clean_html(strip.html) == strip.html
    assert '<td class="text"><svg class="strip"' in written(pd.DataFrame({"strip": [strip]}, index=["x"]))


@pytest.mark.parametrize(("values", "found"), [((0.1, 0.2, 0.1), "0.2 and 0.1"), ((float("nan"), 0, 1), "nan")])
def test_an_undefined_value_a_range_upside_down_and_an_unknown_group_are_refused(
    values: tuple[float, ...], found: str
) -> None:
    with pytest.raises(NotebookError, match=f"Drawing a strip: expected r and an ascending range, found .*{found}"):
        Strip(*values, "related")  # type: ignore[arg-type]
    with pytest.raises(NotebookError, match="'cousins' is none of related, independent, disputed"):
        Strip(0.1, 0.0, 0.2, "cousins")
