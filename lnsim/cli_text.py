"""This module words what the command line prints: records for machines, aligned tables for people.

Text from a repo must not steer the terminal, so all of it is made printable.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from typing import Any

from lnsim.checkpoint.inspection import Inspection
from lnsim.checkpoint.source import Progress
from lnsim.checkpoint.vectors import IN_LLAMA, NormVectors
from lnsim.tables import aligned
from lnsim.text import printable

_MANY = 20  # models of one folder from which they are one line


def extract_record(found: NormVectors) -> dict[str, Any]:
    """What ``extract --json`` prints for one source."""
    return {
        "source": found.source,
        "repo_id": found.provenance.get("repo_id"),
        "commit": found.commit,
        "model_type": found.model_type,
        "norm_type": found.norm_type,
        "n_vectors": found.n_vectors,
        "roles": {key: [len(vectors.layers), vectors.hidden_size] for key, vectors in found.roles.items()},
        "missing_layers": {key: list(layers) for key, layers in found.missing_layers.items()},
        "notes": list(found.notes),
        "requests": found.requests,
        "bytes_received": found.bytes_received,
        "seconds": round(found.seconds, 3),
        "path": None if found.path is None else str(found.path),
    }


def extract_text(found: NormVectors) -> str:
    """What ``extract`` prints for a person."""
    rows = [
        (key, IN_LLAMA.get(key, ""), len(vectors.layers), vectors.hidden_size, vectors.norm_type)
        for key, vectors in found.roles.items()
    ]
    lines = [
        f"{found.source}{'@' + found.commit if found.commit else ''}  {found.model_type}, {found.n_vectors} vectors",
        aligned(("role", "Llama name", "layers", "channels", "norm"), rows),
        *_gaps(found.missing_layers, found.notes),
        f"{found.requests} requests, {found.bytes_received:,} bytes, {found.seconds:.2f} s -> {found.path}",
    ]
    return printable("\n".join(lines), keep="\n")


def inspection_text(found: Inspection) -> str:
    """What ``inspect`` prints for a person."""
    at_commit = f"{found.repo_id or found.source}@{found.commit}/{found.part}".rstrip("/")
    facts = [
        ("checkpoint", found.where if found.commit is None else at_commit),
        ("family", f"{found.family or 'unknown'} (model type {found.model_type or 'not told'})"),
        ("blocks", ", ".join(f"{tower} {count}" for tower, count in found.n_layers.items()) or "not known"),
        ("norm type", found.norm_type or "not known"),
        ("tensors", f"{found.n_tensors:,}: " + ", ".join(f"{n:,} {dtype}" for dtype, n in found.dtypes.items())),
        ("files", f"{len(found.shards)}, {sum(found.shards.values()):,} bytes"),
        ("read for this", f"{found.requests} requests, {found.bytes_received:,} bytes"),
    ]
    rows = [
        (key, IN_LLAMA.get(key, ""), role.n_layers, role.hidden_size, role.dtype, role.norm_type, role.example)
        for key, role in found.roles.items()
    ]
    lines = [f"{name:<14} {value}" for name, value in facts]
    if rows:
        lines += ["", aligned(("role", "Llama name", "norms", "channels", "dtype", "norm", "first tensor"), rows)]
    lines += _gaps(found.missing_layers, found.notes)
    if found.problem:
        lines.append(f"no roles: {found.problem}")
    return printable("\n".join(lines), keep="\n")


def listing(pattern: str = "") -> dict[str, Any]:
    """Studies and stored models, as ``list --json`` prints them; those whose name, folder or repo id fits the pattern.

    A path is below the project folder, or whole where it lies elsewhere: an installed package has extracts of its own.
    """
    from lnsim.checkpoint.inspection import inspect
    from lnsim.paths import stored_models, working_root
    from lnsim.study.catalog import list_studies, load_study

    root = working_root()
    models = []
    for name, path in stored_models().items():
        found, place = inspect(str(path)), path.relative_to(root) if path.is_relative_to(root) else path
        roles = {key: [role.n_layers, role.hidden_size] for key, role in found.roles.items()}
        one: dict[str, Any] = {"name": name, "repo_id": found.repo_id, "commit": found.commit}
        one |= {"model_type": found.model_type, "roles": roles, "path": place.as_posix()}
        if any(fnmatch(str(one[key]).casefold(), f"*{pattern.casefold()}*") for key in ("name", "repo_id", "path")):
            models.append(one)
    studies = [
        {"name": study.name, "title": study.title, "models": len(study.models), "sources": list(study.sources)}
        for study in map(load_study, list_studies())
    ]
    return {"studies": studies, "models": models}


def listing_text(found: Mapping[str, Any], fold: bool = True) -> str:
    """The listing for a person; where it is to fold, with studies, and many models of one folder as one line."""
    studies = [(s["name"], s["models"], " ".join(s["sources"]), s["title"]) for s in found["studies"]]
    models = []
    folders = Counter(m["path"].rpartition("/")[0] for m in found["models"])
    many = {folder: n for folder, n in folders.items() if fold and n > _MANY}
    for m in found["models"]:
        if m["path"].rpartition("/")[0] in many:
            continue
        n_norms, widest = sum(n for n, _ in m["roles"].values()), max((w for _, w in m["roles"].values()), default=0)
        commit = (m["commit"] or "-")[:14]
        models.append((m["name"], m["repo_id"] or "", commit, m["model_type"], f"{n_norms} of {widest} channels"))
    tables = [
        *[aligned(("study", "models", "sources", "title"), studies)] * fold,
        aligned(("stored model", "repo id", "commit", "family", "norms"), models),
    ]
    folded = [f"{f}: {n} more models; lnsim list {f.rpartition('/')[2]} shows them" for f, n in many.items()]
    return printable("\n\n".join([*tables, *folded]), keep="\n")


def _gaps(missing: Mapping[str, Sequence[int]], notes: Iterable[str]) -> list[str]:
    gaps = [f"missing: {key} in layers {', '.join(map(str, layers))}" for key, layers in missing.items()]
    return gaps + [f"note: {note}" for note in notes]


@contextmanager
def bar(label: str, unit: str = "read") -> Iterator[Progress]:
    """A bar that is told how many steps are done of how many."""
    if not sys.stderr.isatty():
        yield lambda done, planned: None
        return
    from tqdm import tqdm

    with tqdm(desc=printable(label[:60]), unit=unit, leave=False, file=sys.stderr) as drawn:

        def progress(done: int, planned: int) -> None:
            drawn.total = planned
            drawn.n = done
            drawn.refresh()

        yield progress
