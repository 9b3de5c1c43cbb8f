"""Tests of the null strip."""

from __future__ import annotations

import re

import pytest

from lnsim.errors import NotebookError
from lnsim.render.prose import clean_html
from lnsim.render.strip import Strip


def numbers(html: str, name: str) -> list[float]:
    return [float(value) for value in re.findall(rf' {name}="(-?[\d.]+)"', html)]


def test_the_mark_lies_between_the_ends_of_the_scale() -> None:
    html = Strip(0.4, -0.05, 0.07, "related").html
    assert numbers(html, "cx") == [68.0]
    assert numbers(html, "x") + numbers(html, "width")[:1] == [23.0, 12.0]
    assert '<circle class="rel"' in html


def test_what_lies_beyond_the_scale_is_drawn_at_its_end() -> None:
    assert numbers(Strip(-0.9, -0.3, 0.3, "independent").html, "cx") == [8.0]


def test_it_is_hidden_from_readers_who_do_not_see_it_and_passes_the_allow_list() -> None:
    html = Strip(0.4, -0.05, 0.07, "disputed").html
    assert 'aria-hidden="true"' in html
    assert clean_html(html) == html


@pytest.mark.parametrize(("values", "found"), [((0.1, 0.2, 0.1), "0.2 and 0.1"), ((float("nan"), 0, 1), "nan")])
def test_an_undefined_value_or_a_range_upside_down_is_refused(values: tuple[float, ...], found: str) -> None:
    with pytest.raises(NotebookError, match=f"Drawing a strip: expected r and an ascending range, found .*{found}"):
        Strip(*values, "related")  # type: ignore[arg-type]


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(NotebookError, match="'cousins' is none of related, independent, disputed"):
        Strip(0.1, 0.0, 0.2, "cousins")
