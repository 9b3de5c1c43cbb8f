"""The README of the tests shows the tables of faults as they are run."""

from __future__ import annotations

import pytest
from readme_tables import SECTIONS, section


@pytest.mark.parametrize("name", SECTIONS)
def test_a_table_of_the_readme_is_what_its_rows_say(name: str) -> None:
    assert section(name) == SECTIONS[name](), "run: python tests/readme_tables.py"
