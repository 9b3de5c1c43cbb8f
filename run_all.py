"""This program executes the notebooks of the studies and writes the reports.

    python run_all.py                                         all studies, offline, into reports/
    python run_all.py --study small_models --only 01 --set seed=1          a trial, into reports/trial/

A run touches no file that git tracks, and says how far its tables agree with the recorded ones in data/tables; --record
puts its own in their place, and its figures into figures. It exits with 0 only if every notebook succeeded; one that
fails is named with its error, and the others still run.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Notebooks import lnsim from this folder, whether or not it is installed, and use this environment's kernel.
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
os.environ.setdefault("LNSIM_HOME", str(HERE))
# jsonschema would build 38 grammars for formats that no notebook uses: three seconds.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
# Notebooks run side by side; threads inside each would only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from lnsim.errors import LnsimError  # noqa: E402
from lnsim.paths import from_here  # noqa: E402
from lnsim.report.notebooks import Notebook  # noqa: E402
from lnsim.study.catalog import list_studies, load_study  # noqa: E402
from lnsim.study.vectors import SOURCES, source_kind  # noqa: E402
from studies.projections.weights import fetch_for  # noqa: E402
from studies.replica import build_projections, build_replica  # noqa: E402
from studies.run.agreement import statement  # noqa: E402
from studies.run.plans import fetch_study, plan_study, run_plans  # noqa: E402
from studies.run.selection import list_notebooks, parse_setting, select_notebooks  # noqa: E402


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with 2."""
    parser = argparse.ArgumentParser(description="Execute the notebooks of the studies and write the reports.")
    parser.add_argument("--study", nargs="+", metavar="NAME", help="studies to run (all)")
    parser.add_argument("--source", choices=SOURCES, default="auto", help="where vectors come from (auto: offline)")
    parser.add_argument("--only", metavar="01,03", help="numbers of the notebooks to run")
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="set a parameter")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="where reports go (reports)")
    parser.add_argument("--jobs", type=_positive, default=_cores(), metavar="N", help="notebooks at a time (cores)")
    parser.add_argument("--timeout", type=_positive, default=600, metavar="S", help="seconds a cell may take (600)")
    parser.add_argument("--list", action="store_true", help="list studies and notebooks, run nothing")
    parser.add_argument("--record", action="store_true", help="put tables and figures into data/tables and figures")
    options = parser.parse_args(words)
    if options.record and (options.set or options.source in ("hub", "replica")):
        parser.error("--record records what the studies' own parameters and the stored vectors give: no --set, no "
                     "--source hub or replica")  # fmt: skip
    if options.reports is None:
        options.reports = HERE / "reports" / ("trial" if options.set else "")
    return options


def main(words: list[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit code."""
    options = arguments(words)
    try:
        notebooks = select_notebooks(list_notebooks(HERE / "notebooks"), options.only)
        names = options.study or list(list_studies())
        if options.list:
            return listing(names, notebooks)
        return run(options, names, notebooks)
    except (LnsimError, OSError) as error:  # OSError: what the disk refuses to take, with the file's name
        print(f"run_all.py: {error}", file=sys.stderr)
        return 1


def run(options: argparse.Namespace, names: list[str], notebooks: tuple[Notebook, ...]) -> int:
    """Execute the notebooks and say how each ended."""
    from tqdm import tqdm

    settings = dict(parse_setting(text) for text in options.set)
    numbers = {notebook.number for notebook in notebooks}
    if options.source == "hub":
        fetch(names, numbers)
    make_replicas(names, options.source, numbers)
    plans = [plan_study(name, options.source, notebooks, asked=bool(options.study)) for name in names]
    running: list[str] = []
    with tqdm(total=sum(len(plan.notebooks) for plan in plans), unit="notebook", disable=None) as bar:

        def tell(name: str, ended: bool) -> None:
            (running.remove if ended else running.append)(name)
            bar.set_postfix_str(", ".join(running), refresh=False)
            bar.update(ended)
            bar.refresh()

        runs = run_plans(plans, options.reports, HERE, settings, options.jobs, options.timeout, tell, options.record)
    for study_run in runs:
        print(study_run.summary(numbers))
    print("", *statement(one for study_run in runs for one in study_run.agreements(numbers)), sep="\n")
    print(f"\n{from_here(options.reports / 'index.html')}")
    return 0 if all(study_run.succeeded(numbers) for study_run in runs) else 1


def fetch(names: list[str], numbers: set[str]) -> None:
    """Read what these notebooks need from the Hub; a model that cannot be read is named, the others are kept."""
    from tqdm import tqdm

    for name in names:
        study = load_study(name)
        with tqdm(total=len(study.models), desc=name, unit="model", disable=None) as bar:
            rows = "15" in numbers.intersection(study.experiments)
            failed = list(fetch_study(study, lambda key: bar.update(), rows).items())
        failed += fetch_for(study, numbers).items()
        for key, reason in failed:
            print(f"run_all.py: model '{key}': {reason}", file=sys.stderr)


def make_replicas(names: list[str], source: str, numbers: set[str]) -> None:
    """Make the synthetic vectors of the studies that run on them, where they are not there or not current."""
    for study in [load_study(name) for name in names]:
        if source_kind(study, source) == "replica":
            build_replica(study)
            if any("kinds" in study.experiments.get(number, {}) for number in numbers):
                build_projections(study)


def listing(names: list[str], notebooks: tuple[Notebook, ...]) -> int:
    """Print the studies and, for each, its notebooks with their questions."""
    for name in names:
        study = load_study(name)
        print(f"{name}: {study.about}")
        for notebook in notebooks:
            reason = "" if notebook.number in study.experiments else "  (not run: no parameters in the study's file)"
            print(f"  {notebook.number}  {notebook.question}{reason}")
    return 0


def _cores() -> int:
    """The cores that this program may use; where the system does not tell that, those of the machine."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got '{text}'")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
