"""This module lists the models of the zoo: roots, what is made from them, and the roots with other first norms."""

from __future__ import annotations

from dataclasses import replace

from studies.zoo.recipes import GAMMA_INITS, Recipe, Size

__all__ = ["full_zoo", "in_order", "quick_zoo"]

OTHER = {"prose": "code", "code": "prose"}

QUICK = Size(hidden=96, layers=4, heads=4, mlp=192, context=64, batch=8, steps=240, rate=6e-3)


def full_zoo() -> tuple[Recipe, ...]:
    """All models, parents before their children."""
    size = Size()
    roots = [
        _root("llama", "prose", 1, size),
        _root("llama", "prose", 2, size),
        _root("llama", "prose", 3, size),
        _root("llama", "code", 4, size),
        _root("llama", "code", 5, size),
        _root("gpt2", "prose", 6, size),
        _root("gpt2", "prose", 7, size),
        _root("gpt2", "code", 8, size),
    ]
    bases = [roots[0], roots[3], roots[5], roots[7]]
    others = [
        _root(architecture, text, first + 3 * place + number, size, gamma)
        for architecture, first in (("llama", 101), ("gpt2", 201))
        for place, gamma in enumerate(name for name in GAMMA_INITS if name != "ones")
        for number, text in enumerate(("prose", "prose", "code"))
    ]
    return (*roots, *(child for base in bases for child in _children(base)), *others)


def quick_zoo() -> tuple[Recipe, ...]:
    """A small zoo with every kind, for a look at how it works: smaller models, fewer steps, one base."""
    roots = [_root("llama", "prose", 1, QUICK), _root("llama", "prose", 2, QUICK), _root("gpt2", "code", 3, QUICK)]
    others = [
        _root("llama", "code", 101 + place, QUICK, gamma) for place, gamma in enumerate(GAMMA_INITS) if gamma != "ones"
    ]
    return (*roots, *_children(roots[0]), *others)


def in_order(recipes: tuple[Recipe, ...], wanted: list[str] | None) -> tuple[Recipe, ...]:
    """The recipes wanted, with all that they are made from; all of them where ``wanted`` is None.

    Raises:
        ValueError: for a name that no recipe has.
    """
    by_name = {recipe.name: recipe for recipe in recipes}
    if wanted is None:
        return recipes
    if unknown := [name for name in wanted if name not in by_name]:
        raise ValueError(f"The zoo has no model '{unknown[0]}'; its models are {', '.join(by_name)}.")
    needed: set[str] = set()
    todo = list(wanted)
    while todo:
        name = todo.pop()
        needed.add(name)
        todo.extend(by_name[name].parents)
    return tuple(recipe for recipe in recipes if recipe.name in needed)


def _root(architecture: str, text: str, seed: int, size: Size, gamma: str = "ones") -> Recipe:
    first_norms = "" if gamma == "ones" else f"{gamma.replace('_', '-')}-"
    name = f"{architecture}-{first_norms}{text}-{seed}"
    return Recipe(name, architecture, "root", text, seed, size.steps, size.rate, size, gamma=gamma)


def _children(base: Recipe) -> list[Recipe]:
    """One model of every kind made from a base; steps and rates are shares of the base's."""
    trained = {
        "light": (1 / 6, 0.1),
        "heavy": (1, 1),
        "other_text": (1 / 2, 1),
        "high_rate": (1 / 3, 3),
        "expanded": (5 / 12, 1),
        "dropped": (5 / 12, 1),
        "frozen": (5 / 12, 1),
        "reinitialised": (5 / 12, 1),
        "distilled": (1, 1),
    }
    children = [
        _child(base, kind, place, round(share * base.steps), rate * base.rate)
        for place, (kind, (share, rate)) in enumerate(trained.items())
    ]
    made = ("permuted", "rescaled", "folded", "rounded")
    children += [_child(base, kind, len(trained) + place, 0, 0.0) for place, kind in enumerate(made)]
    merged = _child(base, "merged", len(trained) + len(made), 0, 0.0)
    return [*children, replace(merged, parents=(f"{base.name}-heavy", f"{base.name}-high-rate"))]


def _child(base: Recipe, kind: str, place: int, steps: int, rate: float) -> Recipe:
    parents = ("", "") if kind == "merged" else (base.name,)
    return replace(
        base,
        name=f"{base.name}-{kind.replace('_', '-')}",
        kind=kind,
        text=OTHER[base.text] if kind in ("other_text", "frozen") else base.text,
        seed=1000 * base.seed + place,
        steps=steps,
        rate=rate,
        parents=parents,
    )
