"""This module makes one model: weights from its parents, training, a checkpoint, its norms kept.

Everything lies in the zoo's work folder, one folder a model. The record is written last, so a model with a record is
whole, and one without is made again from the start.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.utils import logging

from studies.zoo.keep import keep_norms, keep_rows
from studies.zoo.models import initial_model, load_model, reset_norms
from studies.zoo.recipes import SAME_FUNCTION, UNTRAINED, Recipe
from studies.zoo.surgery import SURGERIES, doubled, halved, merged
from studies.zoo.texts import SOURCES, Text, read_text
from studies.zoo.training import held_out_loss, train

__all__ = ["RECORD", "finished", "make_model"]

RECORD = "zoo.json"

SAME_WITHIN = 2e-4
"""Largest difference of a logit between a model and one that should compute the same (float32, logits of order ten)."""


def finished(folder: Path, fingerprint: str) -> dict[str, Any] | None:
    """The record of a model that was made from the same recipe before; None where it must be made."""
    if not (folder / RECORD).is_file():
        return None
    record: dict[str, Any] = json.loads((folder / RECORD).read_text())
    return record if record["fingerprint"] == fingerprint else None


def make_model(recipe: Recipe, fingerprint: str, work: Path, texts: Path, out: Path) -> dict[str, Any]:
    """Make a model, save its checkpoint, keep its norms, and return its record.

    Raises:
        ArithmeticError: when training fails, or a model that should compute the same as its parent does not.
    """
    torch.set_num_threads(1)  # the sums have one order, however many models are made at a time
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    begun, busy = time.perf_counter(), time.process_time()
    text = read_text(recipe.text, texts)
    parents = [load_model(work / name) for name in recipe.parents]
    model = _made(recipe, parents, text)
    folder = work / recipe.name
    if recipe.kind == "rounded":
        model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    model = model.to(torch.float32)
    record = _record(recipe, fingerprint, model, text)
    record["largest_logit_difference"] = _check_same(recipe, parents, model, text)
    record |= {"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - busy}
    keep_norms(folder, recipe.name, _texts(record), out)
    keep_rows(folder, recipe.name, out)
    part = folder / f".{RECORD}.part"
    part.write_text(json.dumps(record, indent=1) + "\n")
    os.replace(part, folder / RECORD)
    return record


def _made(recipe: Recipe, parents: list[PreTrainedModel], text: Text) -> PreTrainedModel:
    if recipe.kind in UNTRAINED:
        weights = merged(parents) if recipe.kind == "merged" else SURGERIES[recipe.kind](parents[0], recipe)
        parents[0].config.architectures = [type(parents[0]).__name__]
        model = type(parents[0])(parents[0].config)
        model.load_state_dict({name: value.float() for name, value in weights.items()})
        return model
    model = _beginning(recipe, parents)
    teacher = parents[0].eval() if recipe.kind == "distilled" else None
    train(model, recipe, text, teacher, step=lambda number: None)
    return model


def _beginning(recipe: Recipe, parents: list[PreTrainedModel]) -> PreTrainedModel:
    """The network as it is before its own training."""
    if recipe.kind in ("root", "distilled"):
        return initial_model(recipe)
    if recipe.kind == "expanded":
        return doubled(parents[0], recipe)
    if recipe.kind == "dropped":
        return halved(parents[0], recipe)
    model = load_model(Path(parents[0].config._name_or_path))
    if recipe.kind == "reinitialised":
        reset_norms(model, recipe.gamma)
    return model


def _record(recipe: Recipe, fingerprint: str, model: PreTrainedModel, text: Text) -> dict[str, Any]:
    source = SOURCES[recipe.text]
    return {
        "name": recipe.name,
        "architecture": recipe.architecture,
        "kind": recipe.kind,
        "parents": list(recipe.parents),
        "text": recipe.text,
        "text_source": f"{source.requirement} sha256:{source.sha256}",
        "text_sha256": text.sha256,
        "seed": recipe.seed,
        "steps": recipe.steps,
        "rate": recipe.rate,
        "bytes_a_step": recipe.size.batch * recipe.size.context,
        "gamma": recipe.gamma,
        "loss": held_out_loss(model, recipe, text),
        "unigram_loss": text.unigram_loss(),
        "fingerprint": fingerprint,
        "versions": f"torch {torch.__version__}, transformers {version('transformers')}",
    }


@torch.no_grad()
def _check_same(recipe: Recipe, parents: list[PreTrainedModel], model: PreTrainedModel, text: Text) -> float | None:
    if recipe.kind not in SAME_FUNCTION:
        return None
    rows = torch.tensor(list(text.held_out[: 8 * recipe.size.context])).reshape(8, -1)
    found = float((model.eval()(rows).logits - parents[0].eval()(rows).logits).abs().max())
    if found > SAME_WITHIN:
        raise ArithmeticError(
            f"Making '{recipe.name}': it should compute what '{recipe.parents[0]}' does; a logit differs by {found}."
        )
    return found


def _texts(record: Mapping[str, Any]) -> dict[str, str]:
    """The record as an extract keeps it: text to text, without what differs from run to run."""
    kept = {key: value for key, value in record.items() if key not in ("seconds", "processor_seconds", "name")}
    shown = {key: " ".join(value) if isinstance(value, list) else value for key, value in kept.items()}
    return {f"zoo_{key}": str(value) for key, value in shown.items() if value is not None}
