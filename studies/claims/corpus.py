"""This module gathers everything that was published on the models of a study, from ``data/claims/<study>``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from lnsim.paths import project_root
from studies.claims.printed import Printed, read_layer_table
from studies.claims.published import Published
from studies.claims.rows import Claim, read_claims, read_facts

__all__ = ["LAYER_TABLE", "Corpus", "claims_dir", "read_corpus"]

LAYER_TABLE = "ANLGBOY/solar-vs-glm-sanity-check, out_sanity/layernorm_sanity.csv"
"""Where the layer table was published; the data file keeps six significant digits of it."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The published numbers, and what follows from the others about each.

    Args:
        claims: the rows of the five documents, in the order of the file.
        published: a lookup in all printed numbers.
        n_layers: decoder layers by model key, from the configs.
    """

    claims: tuple[Claim, ...]
    published: Published
    n_layers: Mapping[str, int]

    def without(self, names: Collection[str]) -> Published:
        """The lookup that leaves out some claims, as evidence against the others."""
        printed = self.published.printed
        kept = [claim for claim in self.claims if claim.name not in names]
        return Published(Printed(printed.facts, kept, printed.table, printed.n_layers))


def claims_dir(study: str) -> Path:
    """Where the published numbers on a study's models lie, whether there are any or not."""
    return project_root() / "data" / "claims" / study


def read_corpus(folder: Path) -> Corpus:
    """Read ``published.csv``, ``peers.csv`` and ``norms_by_layer.csv``.

    Raises:
        StudyError: when a file is missing or a row cannot be.
    """
    claims, facts = read_claims(folder / "published.csv"), read_facts(folder / "peers.csv")
    table, from_table = read_layer_table(folder / "norms_by_layer.csv", LAYER_TABLE)
    depths = {fact.members: int(fact.known.low) for fact in facts if fact.metric == "n_layers"}
    printed = Printed((*facts, *from_table), claims, table, depths)
    return Corpus(claims, Published(printed), depths)
