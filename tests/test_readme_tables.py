"""The README of the tests shows the tables of faults as they are run."""

from __future__ import annotations

import pytest
from readme_tables import SECTIONS, section, table, with_section


@pytest.mark.parametrize("name", SECTIONS)
def test_a_table_of_the_readme_is_what_its_rows_say(name: str) -> None:
    assert section(name) == SECTIONS[name](), "run: python tests/readme_tables.py"


def test_a_cell_may_hold_a_bar_and_a_section_is_replaced_whole() -> None:
    assert table(("a", "b"), [("x|y", "z")]) == "| a | b |\n| --- | --- |\n| x\\|y | z |"
    text = "head\n<!-- t -->\nold\n<!-- /t -->\ntail\n"
    assert with_section(text, "t", "new") == "head\n<!-- t -->\nnew\n<!-- /t -->\ntail\n"
    assert section("t", text) == "old"
    with pytest.raises(ValueError, match="should have a section"):
        with_section(text, "u", "new")
