"""This module holds a question about one source: what to read, at which revision, and which roles."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from lnsim.checkpoint.vectors import LLAMA_NAMES
from lnsim.version import __version__

__all__ = ["Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a source; see ``extract`` for the meaning of each.

    Args:
        source: what to read.
        revision: branch, tag or commit, for a repo id.
        roles: those wanted; None for the default.
        everything: every other norm as well.
        model_type: read the checkpoint as this family.
        tower: take this one for the main tower.
    """

    source: str
    revision: str | None = None
    roles: tuple[str, ...] | None = None
    everything: bool = False
    model_type: str | None = None
    tower: str | None = None

    @classmethod
    def of(
        cls,
        source: str | Path,
        roles: str | Iterable[str] | None = None,
        revision: str | None = None,
        *,
        everything: bool = False,
        model_type: str | None = None,
    ) -> Question:
        """A question from the arguments of ``extract``."""
        wanted = (roles,) if isinstance(roles, str) else roles
        return cls(str(source), revision, None if wanted is None else tuple(wanted), everything, model_type)

    def record(self) -> str:
        """What an extract remembers, so that it answers the same question of the same commit, and no other.

        The version stands in it because another version may know more roles.
        """
        asked = {"roles": self.roles, "everything": self.everything, "model_type": self.model_type}
        tower = {} if self.tower is None else {"tower": self.tower}
        return json.dumps({"lnsim": __version__} | asked | tower)

    def answered_by(self, records: Collection[str], keys: Collection[str]) -> bool:
        """Whether an extract answers it that answers these questions already and holds all norms of these roles."""
        if self.record() in records:
            return True
        if self.roles is None or self.everything:
            return False
        whole = replace(self, roles=None).record()
        return whole in records and all(LLAMA_NAMES.get(role, role) in keys for role in self.roles)
