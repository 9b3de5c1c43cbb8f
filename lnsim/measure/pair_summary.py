"""This module sums up the comparison of two models: the measures of each role they share, and one verdict.

Only roles of the same name are compared, and in them only layers of the same number. Everything else is named with the
reason why it was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.common_roles import check_offsets, common_roles, lone_layers, not_comparable_roles
from lnsim.measure.nulls import holm
from lnsim.measure.permutation import Orders, channel_orders
from lnsim.measure.role_summary import RoleSummary, summarise_role
from lnsim.measure.verdict import Evidence, NormTest, verdict

__all__ = ["PairSummary", "summarise_pair"]


@dataclass(frozen=True, slots=True)
class PairSummary:
    """Two models compared.

    Args:
        roles: what was measured, by role; at least one.
        not_compared: by role, why it, or which of its layers, had no counterpart.
        verdict: a key of ``verdict.RULES``.
        obstacle: what stands in the way of a verdict, where it is ``not_comparable``; else empty.
    """

    roles: Mapping[str, RoleSummary]
    not_compared: Mapping[str, str]
    verdict: str
    obstacle: str = ""

    def __post_init__(self) -> None:
        if not self.roles or (self.verdict == "not_comparable") != bool(self.obstacle):
            raise ComparisonError(f"Summing up a pair: expected roles, and an obstacle or a verdict; found {self}.")
        for name in ("roles", "not_compared"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def summarise_pair(
    a: NormVectors,
    b: NormVectors,
    n_permutations: int = 9999,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> PairSummary:
    """Compare every role that both models have.

    Args:
        a: one model; lengths of differences are over those of its vectors.
        b: the other.
        n_permutations: of the channels, one permutation shared by all layers of a role.
        seed: of the permutations; they are the same ones for all roles of one width.
        progress: told how many roles are done of how many.

    Raises:
        ComparisonError: when no role can be compared, or what is added to the stored γ is not known; the message says
            why.
    """
    roles = common_roles(a, b)
    check_offsets(a, b)
    orders: dict[int, Orders] = {}
    found: dict[str, RoleSummary] = {}
    for role in roles:
        progress(len(found), len(roles))
        size = a[role].hidden_size
        if size not in orders:
            orders[size] = channel_orders(size, n_permutations, seed)
        found[role] = summarise_role(a[role], b[role], orders[size], seed)
    progress(len(found), len(roles))
    found = _adjusted(found)
    tests = _tests(found)
    key = verdict(Evidence(tests, min(1.0, len(tests) / (1 + n_permutations))))
    obstacle = "" if tests else "no norm of the residual stream has a defined r in all layers"
    return PairSummary(found, {**not_comparable_roles(a, b), **lone_layers(a, b, roles)}, key, obstacle)


def _adjusted(found: Mapping[str, RoleSummary]) -> dict[str, RoleSummary]:
    """The same roles with p adjusted over those that the verdict rests on."""
    tested = [role for role, one in found.items() if one.tested]
    p_holm, p_ranks_holm = (
        dict(zip(tested, holm([getattr(found[role], name) for role in tested]), strict=True))
        for name in ("pvalue", "p_ranks")
    )
    return {
        role: replace(one, p_holm=p_holm.get(role), p_ranks_holm=p_ranks_holm.get(role)) for role, one in found.items()
    }


def _tests(found: Mapping[str, RoleSummary]) -> tuple[NormTest, ...]:
    """What the verdict rests on."""
    # "Identical" speaks of every vector compared, so also of those in roles that are not tested.
    identical = all(one.identical for one in found.values())
    return tuple(_norm_test(one, identical) for one in found.values() if one.tested)


def _norm_test(one: RoleSummary, identical: bool) -> NormTest:
    values = {name: getattr(one, name) for name in ("p_holm", "p_ranks_holm", "same", "elsewhere", "without")}
    return NormTest(**values, one_length=one.one_length, identical=identical)
