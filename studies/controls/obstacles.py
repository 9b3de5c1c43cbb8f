"""This module names the pairs of models that cannot be compared in a role, with the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lnsim.measure.comparable import Models, obstacle

__all__ = ["obstacles_in_words"]


def obstacles_in_words(
    models: Models, pairs: Iterable[tuple[str, str]], roles: Iterable[str], labels: Mapping[str, str]
) -> str:
    """The pairs that cannot be compared in a role that at least one of the two has, one sentence a reason.

    Models and pairs are by key; `labels` are what readers see of each.
    """
    named = {labels[key]: vectors for key, vectors in models.items()}
    pairs = [(labels[a], labels[b]) for a, b in pairs]
    found: dict[str, dict[str, None]] = {}
    for role in roles:
        for a, b in pairs:
            reason = obstacle(named, a, b, (role, role))
            if reason and (role in named[a].roles or role in named[b].roles):
                found.setdefault(reason, {})[f"{a} × {b}"] = None
    said = (f"Not compared, since {reason}: {', '.join(names)}." for reason, names in found.items())
    return " ".join(said) or "Every pair of these models can be compared."
