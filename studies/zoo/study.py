"""This module writes the study file of the zoo, ``data/studies/zoo.toml``, from the plan: one source of the lineage.

python -m studies.zoo.study
"""

from __future__ import annotations

import colorsys
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.zoo.plan import full_zoo
from studies.zoo.recipes import GAMMA_INITS, KINDS, Recipe

__all__ = ["DERIVATIONS", "study_text"]

DERIVATIONS: Mapping[str, str] = {
    "light": "light fine-tune",
    "heavy": "heavy fine-tune",
    "other_text": "fine-tune on other text",
    "high_rate": "fine-tune at a high rate",
    "expanded": "layers doubled",
    "dropped": "every second layer",
    "frozen": "norms frozen",
    "reinitialised": "norms set back to one",
    "distilled": "distilled",
    "permuted": "channels permuted",
    "rescaled": "γ rescaled",
    "folded": "γ folded away",
    "rounded": "rounded to BF16",
    "merged": "mean of two children",
}
"""By kind of recipe, what readers see."""

BLIND = ("reinitialised", "distilled", "permuted", "rescaled", "folded")
"""Kinds that norm vectors should not see, said before anything was measured: γ or its channels were replaced."""

_FAMILIES = {"llama": "Llama", "gpt2": "GPT-2"}


def study_text(recipes: Sequence[Recipe] | None = None) -> str:
    """The study file's text, for these recipes; for the whole zoo where None."""
    recipes = full_zoo() if recipes is None else recipes
    models = (line for place, recipe in enumerate(recipes) for line in _model(recipe, place))
    return "\n".join([_HEAD, *models, *_tail(recipes)])


_HEAD = """# Small models of known lineage, trained by `studies.zoo`; their norm vectors lie in data/vectors/zoo.
# Written by `python -m studies.zoo.study` from the zoo's plan: change that, not this file.

title = "A zoo of small models whose lineage is known"
about = "Small models trained here, so that who comes from whom is a fact: measures and tests compete on them."
sources = ["stored"]
"""


def _model(recipe: Recipe, place: int) -> Iterator[str]:
    yield from (
        "[[models]]",
        f"key = {_text(_key(recipe.name))}",
        f"label = {_text(_label(recipe))}",
        f"stored = {_text(recipe.name)}",
        f"colour = {_text(_colour(place))}",
        f"family = {_text(_FAMILIES[recipe.architecture])}",
        'kind = "dense"',
        f"note = {_text(_note(recipe))}",
    )
    if recipe.parents:
        yield f"parents = {_list(_key(name) for name in recipe.parents)}"
        yield f"derivation = {_text(DERIVATIONS[recipe.kind])}"
    yield ""


def _tail(recipes: Sequence[Recipe]) -> Iterator[str]:
    roots = [recipe for recipe in recipes if recipe.kind == "root"]
    first, other = (_key(next(r.name for r in roots if r.architecture == name)) for name in ("llama", "gpt2"))
    stranger = _key([r.name for r in roots if r.architecture == "llama" and r.gamma == "ones"][1])
    yield from _table(
        "experiments.00", models=[first, f"{first}_heavy", f"{first}_expanded", stranger, other], featured=first
    )
    yield from _table(
        "experiments.06",
        pairs=[[first, f"{first}_{kind}"] for kind in ("heavy", "expanded", "dropped", "permuted")]
        + [[first, stranger]],
        roles=["pre_attention", "pre_mlp"],
        cells=[[0, 0], [1, 2], [2, 1], [2, 4], [4, 2], [5, 5]],
        n_permutations=9999,
        seed=0,
    )
    yield from _table(
        "experiments.09",
        models=[_key(recipe.name) for recipe in roots],
        roles=["pre_attention", "pre_mlp"],
        n_permutations=9999,
        seed=0,
    )
    yield from _table(
        "experiments.11",
        models=[_key(recipe.name) for recipe in recipes],
        roles=["pre_attention", "pre_mlp"],
        blind=[DERIVATIONS[kind] for kind in BLIND],
        threshold=0.99,
        n_permutations=499,
        n_draws=1000,
        n_sampled=200,
        seed=0,
    )
    yield from _table(
        "experiments.15",
        models=[_key(recipe.name) for recipe in recipes],
        same_token_ids=True,
        stored_pair=["all-minilm-l6-v2", "sre-minilm-l6"],
        n_draws=200,
        n_permutations=999,
        seed=0,
    )
    yield "[not_run]"
    for number, reason in _NOT_RUN.items():
        yield f"{_text(number)} = {_text(reason)}"
    yield ""


_ASKED = "asked of the models found in the wild; of models made here the question is descent, in 09 and 11"
_NOT_RUN = {
    **{number: _ASKED for number in ("01", "02", "03", "04", "05", "07")},
    "08": "the stored files hold norms only, no projection weights",
    "10": "nobody has published numbers on its models",
    "12": "its synthetic models are drawn after models found in the wild",
    "13": "11 counts the verdicts on every kind of pair of these models",
}


def _table(name: str, **values: Any) -> Iterator[str]:
    yield f"[{name}]"
    for key, value in values.items():
        yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    yield ""


def _key(name: str) -> str:
    return name.replace("-", "_")


def _label(recipe: Recipe) -> str:
    """A short name: no family's, since "Llama 2" is somebody else's model."""
    letter = {"llama": "L", "gpt2": "G"}[recipe.architecture]
    if recipe.kind == "root":
        gamma = "" if recipe.gamma == "ones" else f", γ {recipe.gamma.replace('_', ' ')}"
        return f"{letter}{recipe.seed}, {recipe.text}{gamma}"
    return f"{letter}{recipe.seed // 1000}, {DERIVATIONS[recipe.kind]}"


def _note(recipe: Recipe) -> str:
    """What happened to it, in one sentence."""
    how = KINDS[recipe.kind]
    if recipe.kind == "root":
        return f"{how.capitalize()} on {recipe.text}, {recipe.steps} steps; γ begins as {GAMMA_INITS[recipe.gamma]}."
    steps = f"; {recipe.steps} steps on {recipe.text}" if recipe.steps else ""
    return f"{how[:1].upper()}{how[1:]}{steps}."


def _colour(place: int) -> str:
    """A colour of its own for every model: hues apart by the golden angle, dark enough to be read on white."""
    red, green, blue = colorsys.hls_to_rgb((place * 0.61803398875) % 1.0, 0.34 + 0.04 * (place % 3), 0.55)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _list(values: Iterable[str]) -> str:
    return json.dumps(list(values))


if __name__ == "__main__":
    path = Path(__file__).resolve().parents[2] / "data" / "studies" / "zoo.toml"
    path.write_text(study_text(), encoding="utf-8")
