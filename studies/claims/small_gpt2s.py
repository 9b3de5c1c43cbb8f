"""This module gathers what document 003 printed of its four small GPT-2s: a cosine at every layer of two pairs."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lnsim.errors import StudyError
from lnsim.paths import project_root
from studies.claims.rows import Claim, read_claims

__all__ = ["cosines_of_003", "printed_cosines"]

_SECTION = "gpt2 toy"


def cosines_of_003() -> pd.DataFrame:
    """``printed_cosines`` of every list of published numbers that the project has."""
    lists = sorted((project_root() / "data" / "claims").glob("*/published.csv"))
    return printed_cosines([claim for path in lists for claim in read_claims(path)])


def printed_cosines(claims: Sequence[Claim]) -> pd.DataFrame:
    """The printed cosines, one row each.

    Args:
        claims: all published numbers, as ``rows.read_claims`` gives them.

    Returns:
        Columns ``gamma`` (how γ began: ``ones`` or ``normal``), ``role``, ``layer`` and ``cosine``, as printed.

    Raises:
        StudyError: when there are none.
    """
    found = [
        claim for claim in claims if claim.section == _SECTION and claim.metric == "cosine" and not claim.statistic
    ]
    if not found:
        raise StudyError(f"Looking for the cosines of small GPT-2s: none of {len(claims)} claims is of '{_SECTION}'.")
    rows = []
    for claim in found:
        pair, layer = claim.members.split(":")[0].split("@")
        gamma = pair.rpartition("_")[0]
        rows.append({"gamma": gamma, "role": claim.roles[0], "layer": int(layer), "cosine": float(claim.value)})
    return pd.DataFrame(rows)
