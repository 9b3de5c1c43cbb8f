"""The lineage of the zoo's models: what each came from in the end, and which derived ones norms can show."""

from __future__ import annotations

from studies.zoo.plan import full_zoo

UNSEEN = ("distilled", "permuted", "folded")
"""Kinds of which the norms show nothing: another question, see notebook 15."""


def lineage() -> tuple[dict[str, str], list[str]]:
    """By model the root that it came from, and the derived models of a visible kind."""
    recipes = {recipe.name: recipe for recipe in full_zoo()}
    root = {}
    for name, recipe in recipes.items():  # parents stand before their children
        root[name] = root[recipe.parents[0]] if recipe.parents else name
    return root, [name for name, one in recipes.items() if one.kind not in ("root", *UNSEEN)]
