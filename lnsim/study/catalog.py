"""This module reads studies from ``data/studies/*.toml``: the models, how they are related, what each notebook gets.

Anything in a study file that cannot be right stops the reading with a StudyError that names the file, the key, what was
expected and what was found. A study of found models states each relation with its evidence. Where the models were made
for the purpose, their parents are known, and every relation among them follows.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from lnsim.checkpoint.families.table import ROLES
from lnsim.errors import StudyError
from lnsim.paths import studies_dir
from lnsim.words import TEXTS

_NUMBERS = tuple(f"{number:02d}" for number in range(16))  # notebook numbers that a study may speak of
# Kinds of matrices that a study may speak of, by the name that their last part has in the file.
MATRIX_KINDS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

KINDS: Mapping[str, str] = TEXTS["relations"]
"""Kinds of relation with their meaning; a comes first where one model comes from the other."""

_MISTAKES: Mapping[str, str] = TEXTS["study_mistakes"]
_RELATED_KINDS = tuple(kind for kind in KINDS if kind not in ("disputed", "independent"))  # these share an origin
_DERIVED = ("exact_copy", "fine_tune", "derived", "depth_expanded")
# By parameter, the kinds of relation that its pairs must have on record: no label without its evidence.
_MADE = {"copies": ("exact_copy",), "derived": _RELATED_KINDS, "controls": ("independent",)}

Text = Annotated[str, Meta(pattern=r"\S")]
Source = Literal["stored", "hub", "replica"]
Whole = Annotated[int, Meta(ge=0, le=9999)]
Draws = Annotated[int, Meta(ge=2, le=1_000_000)]
Names = Annotated[list[str], Meta(min_length=1)]  # keys of models, roles, or kinds of matrices
Pairs = list[tuple[str, str]]
Layers = Annotated[list[Whole], Meta(min_length=1)]


class Model(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model of a study."""

    # short name, the one that parameters, tables and relations use
    key: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*\Z")]
    label: Text  # the name that readers see
    colour: Annotated[str, Meta(pattern=r"^#[0-9a-f]{6}\Z")]  # ``#rrggbb``, the model's own in every figure
    family: Text  # the architecture, in a reader's words
    kind: Literal["dense", "moe"]
    # repo on the Hub, or None where the model has none
    repo_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w.-]*/[\w.-]+\Z")] | None = None
    # what to ask the Hub for: a commit where one is on record, else a branch; None without a repo
    revision: Text | None = None
    stored: str = ""  # name of the stored extract; the repo id where the extract comes from the Hub
    note: str = ""  # anything that a reader of its numbers must know; may be empty
    tower: str | None = None  # what is compared of it, where that is not its main tower, such as ``vision``
    parents: tuple[str, ...] = ()  # keys of the models it was made from, in a study that made its models
    derivation: str = ""  # how it was made from them, in a phrase; empty where it has no parents

    def __post_init__(self) -> None:
        if not self.stored:
            msgspec.structs.force_setattr(self, "stored", self.repo_id or "")


class Relation(Struct, frozen=True, forbid_unknown_fields=True):
    """The relation of two models."""

    a: str  # key of one model; the origin, where the kind has one
    b: str  # key of the other
    kind: str  # one of KINDS
    evidence: Text  # one sentence: who says so, or what shows it

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"expected one of {', '.join(KINDS)} as its kind, found '{self.kind}'")
        if self.a == self.b:
            raise ValueError(f"'{self.a}' is related to itself; name two models")

    @property
    def derived(self) -> bool:
        """True where b comes from a: a positive control with a direction."""
        return self.kind in _DERIVED

    @property
    def related(self) -> bool:
        """True where the two share an origin: a positive control."""
        return self.kind in _RELATED_KINDS

    @property
    def independent(self) -> bool:
        """True where the two are presumed strangers: a negative control."""
        return self.kind == "independent"

    @property
    def group(self) -> str:
        """What the pair counts as in a table of pairs: ``related``, ``independent``, or ``disputed``, no control."""
        return "related" if self.related else self.kind


class _Comparison(Struct, forbid_unknown_fields=True):
    """Pairs compared in one kind of norm, which may have another role in each model."""

    roles: tuple[str, str]
    pairs: Pairs


class _Parameters(Struct, forbid_unknown_fields=True):
    """What a study may give to a notebook; a new parameter is one line here."""

    model: str | UnsetType = UNSET
    featured: str | UnsetType = UNSET
    models: Names | UnsetType = UNSET
    alone: Names | UnsetType = UNSET
    pairs: Pairs | UnsetType = UNSET
    derived: Pairs | UnsetType = UNSET
    copies: Pairs | UnsetType = UNSET
    controls: Pairs | UnsetType = UNSET
    roles: Names | UnsetType = UNSET
    kinds: Names | UnsetType = UNSET
    blind: list[Text] | UnsetType = UNSET
    layers: Layers | UnsetType = UNSET
    distances: Layers | UnsetType = UNSET
    cells: Annotated[list[tuple[Whole, Whole]], Meta(min_length=1)] | UnsetType = UNSET
    groups: Annotated[dict[str, Names], Meta(min_length=1)] | UnsetType = UNSET
    sets: Annotated[dict[str, Names], Meta(min_length=1)] | UnsetType = UNSET
    comparisons: Annotated[dict[str, _Comparison], Meta(min_length=1)] | UnsetType = UNSET
    group_by: Literal["kind", "family"] | UnsetType = UNSET
    layer: Whole | UnsetType = UNSET
    baseline_layer: Whole | UnsetType = UNSET
    n_permutations: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    n_trained: Draws | UnsetType = UNSET
    n_draws: Draws | UnsetType = UNSET
    n_sampled: Draws | UnsetType = UNSET
    stored: Text | UnsetType = UNSET
    stored_pairs: Pairs | UnsetType = UNSET
    stored_pair: tuple[str, str] | UnsetType = UNSET
    same_token_ids: bool | UnsetType = UNSET
    n_power_draws: Draws | UnsetType = UNSET
    threshold: Annotated[float, Meta(gt=0, lt=1)] | UnsetType = UNSET
    seed: Annotated[int, Meta(ge=0, lt=2**32)] | UnsetType = UNSET

    def keys(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Model keys by the parameter that holds them, a list or a pair at a time."""
        for name in ("model", "featured"):
            if (one := getattr(self, name)) is not UNSET:
                yield name, [one]
        for name in ("models", "alone"):
            yield name, getattr(self, name) or []
        for name in ("pairs", *_MADE):
            for pair in getattr(self, name) or ():
                yield name, pair
        for name, some in (self.sets or {}).items():
            yield f"sets.{name}", some
        for name, one in (self.comparisons or {}).items():
            for pair in one.pairs:
                yield f"comparisons.{name}.pairs", pair


class Study(Struct, frozen=True, forbid_unknown_fields=True):
    """What is compared with what."""

    title: Text  # heading that readers see
    about: Text  # one sentence
    # where its vectors may come from, the preferred one first
    sources: Annotated[tuple[Source, ...], Meta(min_length=1)]
    models: Annotated[tuple[Model, ...], Meta(min_length=1)]  # in the order of the file
    relations: tuple[Relation, ...] = ()  # every relation on record; a pair that has none is presumed independent
    experiments: Mapping[str, Mapping[str, Any]] = {}  # parameters by notebook number, as the file gives them
    not_run: Mapping[str, str] = {}  # by notebook number, why this study does not run it; a phrase without a full stop
    # numbers of the notebooks that need no vectors, since they have published numbers
    without_vectors: tuple[str, ...] = ()
    name: str = ""  # the file's name without ``.toml``

    @property
    def has_descent(self) -> bool:
        """True where the study made its models, so that every relation follows from their parents."""
        return any(model.parents for model in self.models)

    @property
    def labels(self) -> Mapping[str, str]:
        """What readers see of each model, by key."""
        return {model.key: model.label for model in self.models}

    @property
    def colours(self) -> Mapping[str, str]:
        """The colour of each model, by the label that readers see."""
        return {model.label: model.colour for model in self.models}

    def kinds(self, by: str) -> Mapping[str, str]:
        """What each model is counted as, by key, in a reader's words; `by` is ``kind`` or ``family``."""
        if by not in ("kind", "family"):
            raise StudyError(f"Grouping the models of '{self.name}': expected kind or family, found '{by}'.")
        return {model.key: getattr(model, by).replace("moe", "MoE") for model in self.models}

    def model(self, key: str) -> Model:
        """The model of a key; StudyError names the keys there are."""
        models = {model.key: model for model in self.models}
        if key not in models:
            raise StudyError(f"Study '{self.name}' has no model '{key}'; its models are {', '.join(models)}.")
        return models[key]

    def relation(self, a: str, b: str) -> Relation:
        """How two models are related, in either order: by descent where the study made its models, else as it states.

        A pair without a stated relation is presumed independent. StudyError where a key is unknown, or both are one.
        """
        if self.model(a) == self.model(b):
            raise StudyError(f"Study '{self.name}': '{a}' has no relation to itself; name two models.")
        if self.has_descent:
            return self._by_descent(a, b)
        for relation in self.relations:
            if {relation.a, relation.b} == {a, b}:
                return relation
        return Relation(a, b, "independent", "No relation is on record: presumed independent.")

    def ancestors(self, key: str) -> frozenset[str]:
        """Keys of all models that this one was made from, itself not among them."""
        parents = self.model(key).parents
        return frozenset(parents).union(*map(self.ancestors, parents))

    def _by_descent(self, a: str, b: str) -> Relation:
        above = {key: self.ancestors(key) for key in (a, b)}
        if a in above[b] or b in above[a]:
            origin, made = (a, b) if a in above[b] else (b, a)
            model = self.model(made)
            made_from = f"Made here from {' and '.join(model.parents)}: {model.derivation}."
            return Relation(origin, made, "derived", made_from)
        if shared := above[a] & above[b]:
            return Relation(a, b, "common_ancestor", f"Both were made here from {' and '.join(sorted(shared))}.")
        return Relation(a, b, "independent", "Made here from random weights of other seeds, without a common ancestor.")

    def pairs(self) -> tuple[Relation, ...]:
        """Every pair of the study's models once, in the order of the file."""
        return tuple(self.relation(a, b) for a, b in combinations(self.labels, 2))


def list_studies() -> tuple[str, ...]:
    """Names of the study files, in alphabetical order."""
    return tuple(sorted(path.stem for path in studies_dir().glob("*.toml")))


def load_study(name: str) -> Study:
    """Read the study of a name, one of ``list_studies()``.

    StudyError when there is no such file, or anything in it is wrong; the message names file and key.
    """
    if name not in list_studies():
        near = difflib.get_close_matches(name, list_studies(), n=1)
        there = ", ".join(list_studies()) or "none"
        meant = "".join(f" Did you mean '{one}'?" for one in near)
        raise StudyError(f"There is no study '{name}' in data/studies; there are {there}.{meant}")
    path = studies_dir() / f"{name}.toml"
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8"))
        return _checked({**table, "name": name})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"Reading data/studies/{path.name}: expected a TOML file in UTF-8, found {error}.") from None
    except StudyError as error:
        raise StudyError(f"Reading data/studies/{path.name}: {error}") from None


def _mistakes(value: Any, kind: Any, at: str = "") -> Iterator[str]:
    """Every mistake in a value of its type, each with its key; msgspec tells the first only, so entry by entry."""
    inside = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    entry = next(iter(get_args(inside)), None)
    parts: list[tuple[str, Any, Any]] = []
    found: list[str] = []
    if isinstance(inside, type) and issubclass(inside, Struct) and isinstance(value, Mapping):
        types = {one.name: one.type for one in msgspec.structs.fields(inside)}
        parts = [(f"{at}.{name}", one, types[name]) for name, one in value.items() if name in types]
        found += [_told(f"Object contains unknown field `{name}`", at) for name in value if name not in types]
    elif isinstance(entry, type) and issubclass(entry, Struct) and isinstance(value, list):
        parts = [(f"{at}[{place}]", one, entry) for place, one in enumerate(value)]
    found += [mistake for key, one, type_ in parts for mistake in _mistakes(one, type_, key)]
    yield from found
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what, _, below = str(error).partition(" - at `$")
        if (mistake := _told(what, at + below.removesuffix("`"))) not in found:
            yield mistake


def _told(what: str, at: str) -> str:
    return f"key '{at.lstrip('.')}': {what}." if at else f"{what}."


def _checked(table: Mapping[str, Any]) -> Study:
    """The study; StudyError with all mistakes of the first kind that it has: of type, in the models, in the rest."""
    _none(_mistakes(table, Study))
    study = msgspec.convert(table, Study)
    _none(_in_models(study))
    _none([*_in_relations(study), *_in_experiments(study)])
    frozen = {number: MappingProxyType(dict(given)) for number, given in study.experiments.items()}
    return msgspec.structs.replace(study, experiments=MappingProxyType(frozen))


def _none(mistakes: Iterable[str]) -> None:
    if found := list(mistakes):
        raise StudyError(" ".join([f"{len(found)} mistakes."] * (len(found) > 1) + found))


def _in_models(study: Study) -> Iterator[str]:
    for what in ("key", "label", "colour"):
        yield from _once("models", [getattr(model, what) for model in study.models], f"each {what}")
    yield from _once("sources", list(study.sources), "each source")
    needed = "repo_id" if "hub" in study.sources else "stored"
    before: set[str] = set()
    for model in study.models:
        at = f"models.{model.key}"
        if not getattr(model, needed):
            yield f"key '{at}.{needed}': this study's sources need it, found no such key. Add it."
        for unknown in [key for key in model.parents if key not in before]:
            yield f"key '{at}.parents': expected keys of models listed before it, found '{unknown}'."
        if bool(model.parents) != bool(model.derivation):
            yield f"key '{at}': expected parents and derivation together or neither, found one of them."
        before.add(model.key)


def _in_relations(study: Study) -> Iterator[str]:
    """No unknown model, no pair twice, and none left out that others imply."""
    if study.relations and study.has_descent:
        yield "key 'relations': expected none beside models with parents, from which all follow."
    found: dict[frozenset[str], Relation] = {}
    for one in study.relations:
        yield from _known("relations", (one.a, one.b), study.labels)
        pair = frozenset((one.a, one.b))
        if pair in found:
            yield f"key 'relations': the pair '{one.a}' and '{one.b}' is listed twice."
        found[pair] = one
    # Two models related to a third are hardly strangers, so their own relation must be stated, whatever it is.
    for first, second in combinations([pair for pair, one in found.items() if one.related], 2):
        if len(first ^ second) == 2 and first ^ second not in found:
            a, b = sorted(first ^ second)
            (middle,) = first & second
            yield _MISTAKES["implied"].format(a=a, b=b, middle=middle)


def _in_experiments(study: Study) -> Iterator[str]:
    for number in (*study.experiments, *study.not_run, *study.without_vectors):
        if number not in _NUMBERS:
            yield f"key '{number}': expected a notebook number, {_NUMBERS[0]} to {_NUMBERS[-1]}."
    for number, given in study.experiments.items():
        wrong = list(_mistakes(given, _Parameters, f"experiments.{number}"))
        yield from wrong or _in_parameters(study, f"experiments.{number}", msgspec.convert(given, _Parameters))
    for number, reason in study.not_run.items():
        if number in study.experiments:
            yield f"key 'not_run.{number}': notebook {number} also has parameters; keep one of the two."
        if not reason.strip() or reason.endswith("."):
            yield f"key 'not_run.{number}': expected a phrase without a full stop, found '{reason}'."


def _in_parameters(study: Study, at: str, found: _Parameters) -> Iterator[str]:
    for name, keys in found.keys():  # noqa: SIM118  # a method, not a mapping's
        yield from _known(f"{at}.{name}", keys, study.labels)
    for name in ("roles", "kinds", "blind", "cells"):
        yield from _once(f"{at}.{name}", getattr(found, name) or [], "each entry")
    compared = [(f"comparisons.{name}.roles", one.roles) for name, one in (found.comparisons or {}).items()]
    for name, roles in [("roles", found.roles or []), *compared]:
        for unknown in [role for role in roles if role.rpartition("/")[2] not in ROLES]:
            yield _MISTAKES["role"].format(at=f"{at}.{name}", known=", ".join(ROLES), found=unknown)
    for unknown in [kind for kind in found.kinds or () if kind not in MATRIX_KINDS]:
        yield f"key '{at}.kinds': expected one of {', '.join(MATRIX_KINDS)}, found '{unknown}'."
    for name in ("layers", "distances"):
        numbers = getattr(found, name) or []
        if any(later <= earlier for earlier, later in pairwise(numbers)):
            yield f"key '{at}.{name}': expected ascending layer numbers, none twice, found {numbers}."
    for name in ("pairs", *_MADE):
        yield from _once(f"{at}.{name}", [sorted(pair) for pair in getattr(found, name) or ()], "each entry")
    for name, kinds in _MADE.items():
        for a, b in getattr(found, name) or ():
            known = a != b and {a, b} <= set(study.labels)  # else told above
            if known and (kind := study.relation(a, b).kind) not in kinds:
                yield _MISTAKES["kind"].format(at=f"{at}.{name}", known=" or ".join(kinds), a=a, b=b, found=kind)


def _known(at: str, keys: Sequence[str], known: Collection[str]) -> Iterator[str]:
    for unknown in [key for key in keys if key not in known]:
        yield f"key '{at}': expected model keys of this study ({', '.join(known)}), found '{unknown}'."
    yield from _once(at, list(keys), "each entry")


def _once(at: str, values: Sequence[Any], what: str) -> Iterator[str]:
    if twice := [value for place, value in enumerate(values) if value in values[:place]]:
        yield f"key '{at}': expected {what} once, found {twice[0]!r} twice."
