"""This program trains the zoo, model by model, and keeps the norm vectors of each.

    python -m studies.zoo                       the whole zoo, into data/vectors/zoo
    python -m studies.zoo --quick --out DIR     a small zoo with every kind of model
    python -m studies.zoo --list                the models and how each is made

A run that was stopped goes on where it was: a model that is finished is not made again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lnsim.errors import LnsimError
from studies.zoo.plan import full_zoo, in_order, quick_zoo
from studies.zoo.recipes import KINDS, Recipe
from studies.zoo.texts import SOURCES, fetch_texts

HERE = Path(__file__).resolve().parents[2]


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with 2."""
    about = "Train the zoo of models of known lineage."
    parser = argparse.ArgumentParser(prog="python -m studies.zoo", description=about)
    parser.add_argument("--quick", action="store_true", help="a small zoo, in minutes")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these models and what they are made from")
    parser.add_argument("--work", type=Path, default=HERE / "build" / "zoo", metavar="DIR", help="checkpoints go here")
    parser.add_argument("--out", type=Path, metavar="DIR", help="norm vectors go here (data/vectors/zoo)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="models at a time, one processor each (2)")
    parser.add_argument("--list", action="store_true", help="list the models, train nothing")
    options = parser.parse_args(words)
    if options.quick and options.out is None:
        parser.error("--quick needs --out DIR: data/vectors/zoo is for the whole zoo")
    options.out = options.out or HERE / "data" / "vectors" / "zoo"
    return options


def main(words: list[str] | None = None) -> int:
    """Train what the command line asks for; returns the exit code."""
    options = arguments(words)
    try:
        recipes = in_order(quick_zoo() if options.quick else full_zoo(), options.only)
    except ValueError as error:
        print(f"zoo: {error}", file=sys.stderr)
        return 1
    if options.list:
        for recipe in recipes:
            print(f"{recipe.name:32} {recipe.steps:4} steps on {recipe.text:6} {KINDS[recipe.kind]}")
        return 0
    if missing := [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]:
        print(f"zoo: training needs {' and '.join(missing)}: pip install -e '.[zoo]'", file=sys.stderr)
        return 1
    try:
        records = trained(recipes, options)
    except (ArithmeticError, OSError, ValueError, LnsimError, subprocess.CalledProcessError) as error:
        print(f"zoo: {error}", file=sys.stderr)
        return 1
    used = sum(record["processor_seconds"] for record in records.values())
    print(json.dumps({"models": len(records), "processor_seconds": round(used), "out": options.out.name}))
    return 0


def trained(recipes: tuple[Recipe, ...], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Fetch the texts, make the models, and say of each what came out; returns the records by name."""
    texts = options.work.parent / "texts"
    fetch_texts(texts)
    work = options.work / ("quick" if options.quick else "full")
    records = {}
    with tqdm(total=sum(recipe.steps + 1 for recipe in recipes), unit="step", disable=None) as bar:
        for recipe, record in made(recipes, work, texts, options.out, options.jobs):
            records[recipe.name] = record
            bar.update(recipe.steps + 1)
            bar.write(
                f"{recipe.name}: {record['loss']:.3f} nats a byte (unigrams {record['unigram_loss']:.3f}), "
                f"{record['processor_seconds']:.0f} s of processor time",
                file=sys.stderr,
            )
    return records


def made(
    recipes: tuple[Recipe, ...], work: Path, texts: Path, out: Path, jobs: int
) -> Iterator[tuple[Recipe, dict[str, Any]]]:
    """Make the models, several at a time, each as soon as its parents are there; yields each with its record."""
    from studies.zoo.make import finished, make_model  # here, so that --list needs no torch

    prints: dict[str, str] = {}
    for recipe in recipes:
        prints[recipe.name] = recipe.fingerprint(prints, {name: source.sha256 for name, source in SOURCES.items()})
    done: set[str] = set()
    waiting = list(recipes)
    running: dict[Future[dict[str, Any]], Recipe] = {}
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        while waiting or running:
            for recipe in [one for one in waiting if done.issuperset(one.parents)]:
                waiting.remove(recipe)
                record = finished(work / recipe.name, prints[recipe.name])
                if record is not None and (out / f"{recipe.name}.safetensors").is_file():
                    done.add(recipe.name)
                    yield recipe, record
                else:
                    job = pool.submit(make_model, recipe, prints[recipe.name], work, texts, out)
                    running[job] = recipe
            ended, _ = wait(running, timeout=None if running else 0, return_when=FIRST_COMPLETED)
            for job in ended:
                recipe = running.pop(job)
                done.add(recipe.name)
                yield recipe, job.result()
    finally:
        pool.shutdown(cancel_futures=True)  # after a failure or Ctrl-C the models in the queue are not made first


if __name__ == "__main__":
    sys.exit(main())
