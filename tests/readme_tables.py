"""Tables in `tests/README.md` that are made from the rows of the tests, so that they cannot say anything else.

    python tests/readme_tables.py

writes the tables of faults and attacks anew. A section stands between `<!-- name -->` and `<!-- /name -->`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

README = Path(__file__).with_name("README.md")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def section(name: str) -> str:
    """What stands in a section of the README."""
    return README.read_text("utf-8").partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0].strip()


def fault_table() -> str:
    """The faults of servers, networks and repos: a line for each row of the parametrised test."""
    from fault_table import ROWS

    heads = ("what the server or the network does", "how often", "at", "what lnsim does")
    return table(
        heads, [(row.does, row.often, ", ".join(p.name for p in row.places), row.outcome.text) for row in ROWS]
    )


def machine_table() -> str:
    """The faults of the machine: a line for each test that says what it shows."""
    modules = map(importlib.import_module, ("test_store", "test_interrupt"))
    heads = ("what happens on the machine", "how often", "what lnsim does")
    return table(heads, [line for module in modules for line in _shown(module)])


def attack_table() -> str:
    """Attacks: a line for each row of the parametrised tests."""
    from attack_rows import BOMBS, HUGE, LONGER, ROWS

    lines = [(row.group, row.holds, row.outcome.text) for row in ROWS]
    lines += [("memory", f"a header of {megabytes} MB of {of}", f'"{says}", in 256 MB') for megabytes, of, says in HUGE]
    lines += [("memory", f"10 GB of zeros as {one}, in 10 MB of gzip", f'"{LONGER}", in 256 MB') for one in BOMBS]
    return table(("attacked", "the repo or server has", "what lnsim does"), lines)


def _shown(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    return (thing.shows for thing in vars(module).values() if hasattr(thing, "shows"))


SECTIONS = {"faults": fault_table, "machine": machine_table, "attacks": attack_table}


def main() -> None:
    """Write every section anew."""
    sys.path.insert(0, str(README.parents[1]))
    for name, render in SECTIONS.items():
        README.write_text(README.read_text("utf-8").replace(section(name), render()), "utf-8")


if __name__ == "__main__":
    main()
