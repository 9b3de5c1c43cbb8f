"""This module finds the project's folders and the extracts kept in them."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from lnsim.errors import SourceError

HOME_VARIABLE = "LNSIM_HOME"  # environment variable that names the project folder, before anything else is looked at
_STUDIES = Path("data", "studies")
_VECTORS = Path("data", "vectors")
_SUFFIX = ".safetensors"
# Characters of an extract's name, and its bytes: with commit, ending and temporary name they stay below 255.
_LONGEST_NAME = 120
_MOST_BYTES = 190


def project_root() -> Path:
    """The folder that holds ``data/studies``.

    Looked for in this order: the environment variable ``LNSIM_HOME``, the working directory and its parents, the clone
    that the ``lnsim`` package lies in, the copy that an installed package brings along (which is only read, see
    ``working_root``). SourceError where none of them has it.
    """
    if home := os.environ.get(HOME_VARIABLE):
        if not (Path(home) / _STUDIES).is_dir():
            raise SourceError(
                f"Looking for the project folder: {HOME_VARIABLE} is '{Path(home)}', which has no "
                f"{_STUDIES.as_posix()}. Set it to a clone of the project, or unset it."
            )
        return Path(home).resolve()
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[1], _bundle()):
        if (folder / _STUDIES).is_dir():
            return folder
    raise SourceError(
        f"Looking for the project folder: neither '{here}' nor a folder above it has {_STUDIES.as_posix()}. "
        f"Start lnsim inside a clone of the project, or set {HOME_VARIABLE} to one."
    )


def working_root() -> Path:
    """The folder below which ``data``, ``figures`` and ``reports`` are written.

    That is the project folder, or with the copy inside an installed package, the working directory.
    """
    root = project_root()
    return Path.cwd() if root == _bundle() else root


def from_here(path: Path) -> str:
    """A path from the working folder, where there is one: not from one drive of Windows to another."""
    try:
        return os.path.relpath(path)
    except ValueError:
        return str(path)


def _bundle() -> Path:
    return Path(__file__).resolve().parent / "bundled"


def studies_dir() -> Path:
    """The folder of study files."""
    return project_root() / _STUDIES


def vectors_dir() -> Path:
    """The folder that extracts are written to; it need not exist yet."""
    return working_root() / _VECTORS


def atlas_dir() -> Path:
    """The folder of the atlas, where no other is named; it need not exist yet."""
    return working_root() / "data" / "atlas" / "store"


def replica_dir(study: str) -> Path:
    """The folder of a study's replica, whether it was made or not."""
    return working_root() / "data" / "replica" / study


def measured_dir(study: str) -> Path:
    """The folder of the numbers that others measured on a study's models and published."""
    return studies_dir().parent / "measured" / study


def notebooks_dir() -> Path:
    """The folder of the experiments: that of the project, or where it has none, the one that comes with the package."""
    return at_home("notebooks/*.ipynb", "the notebooks of the experiments").parent


def rows_file(extract: Path) -> Path:
    """Where the matrix rows of a stored extract lie: apart from its norms, which are smaller and often asked for."""
    for folder in extract.parents:
        if folder.name == _VECTORS.name:
            return folder.parent / "rows" / extract.relative_to(folder)
    return extract.parent / "rows" / extract.name


def at_home(pattern: str, what: str) -> Path:
    """The first file of a pattern, of the project or the package; SourceError says what was looked for."""
    homes = (project_root(), Path(__file__).resolve().parents[1], _bundle())
    for found in (path for home in homes for path in home.glob(pattern)):
        return found
    raise SourceError(
        f"Looking for {what}: '{homes[0] / pattern}' is not there. Start lnsim inside a clone of the project, or set "
        f"{HOME_VARIABLE} to one."
    )


def stored_models() -> Mapping[str, Path]:
    """Every stored extract by name, in the order of the names.

    The name is the file's without ``.safetensors``; where two folders hold files of one name, it is the path below
    ``data/vectors``, so that both stay reachable. With an installed package these are the extracts that it brings along
    and those below the working directory; of two with the same path the latter is taken.
    """
    below: dict[str, Path] = {}
    for folder in dict.fromkeys((project_root() / _VECTORS, vectors_dir())):
        for where, _, files in os.walk(folder):
            inside = "" if where == str(folder) else f"{Path(where).relative_to(folder).as_posix()}/"
            names = (name for name in files if name.endswith(_SUFFIX) and not name.startswith("."))
            below |= {inside + name.removesuffix(_SUFFIX): Path(where, name) for name in names}
    stems = {name: name.rpartition("/")[2] for name in below}
    uses = Counter(stems.values())
    named = {stems[name] if uses[stems[name]] == 1 else name: path for name, path in below.items()}
    return dict(sorted(named.items()))


def find_stored(name: str) -> Path:
    """The extract of a stored model, by its name or a repo id with or without commit; capitals do not matter.

    SourceError where no extract has this name, with near names, or more than one has.
    """
    models = stored_models()
    if name in models:
        return models[name]
    found = [key for key, path in models.items() if _matches(name.casefold(), key.casefold(), path)]
    if len(found) == 1:
        return models[found[0]]
    if found:
        raise SourceError(f"'{name}' could be any of the stored models {_listed(found)}. Give one of these names.")
    if not models:
        raise SourceError(f"There is no stored model '{name}': data/vectors holds none. 'lnsim extract' writes one.")
    near = near_stored(name)
    hint = f"Did you mean {_listed(near)}?" if near else "'lnsim list' names them all."
    raise SourceError(f"There is no stored model '{name}' among the {len(models)} in data/vectors. {hint}")


def stored() -> tuple[str, ...]:
    """The names of all stored models, as ``lnsim.load`` takes them."""
    return tuple(stored_models())


def _matches(name: str, key: str, path: Path) -> bool:
    """True when the key is the name but for its folder (``zoo/gpt2-code-8``) or the commit of a repo's extract."""
    repo_id, _, commit = name.partition("@")
    as_file = extract_name(repo_id, commit or None).removesuffix(_SUFFIX)
    last = key.rpartition("/")[2]
    if "/" in name and path.as_posix().casefold().endswith(f"/{name}{_SUFFIX}"):
        return True
    return not {name, as_file}.isdisjoint((key, last)) or (not commit and last.startswith(f"{as_file}@"))


def near_stored(name: str, cutoff: float = 0.5) -> tuple[str, ...]:
    """The names of at most three stored models that are most like this one, whatever its capitals, the nearest first.

    The cutoff is how alike they must be, as ``difflib`` counts, from 0 to 1.
    """
    by_lower = {key.casefold(): key for key in stored_models()}
    near = difflib.get_close_matches(name.casefold(), by_lower, n=3, cutoff=cutoff)
    return tuple(by_lower[key] for key in near)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def extract_name(label: str, commit: str | None, *, keep_end: bool = False) -> str:
    """File name of an extract: letters and digits of any script and ``._-``, whatever the source is called.

    The label is a repo id, or the last parts of a path, parted by ``/``. With `keep_end`, one that is too long is cut
    at its beginning, with a digest of all of it, so that it stays apart.

    >>> extract_name("Qwen/Qwen3-4B", "1cfa9a7208912126459214e8b04321603b3df60c")
    'Qwen--Qwen3-4B@1cfa9a720891.safetensors'
    """
    short = _cut(_safe(label.replace("/", "--")).strip(".-") or "model", keep_end)
    return f"{short}{'@' + _safe(commit[:12]) if commit else ''}{_SUFFIX}"


def _safe(text: str) -> str:
    """Text of letters and digits, their accents, and ``._-``: no part of a file name that it is in can be a path.

    File systems and keyboards differ in how they write an accent; here it has one spelling.
    """
    signs = unicodedata.normalize("NFC", text)
    return re.sub("\0+", "-", "".join(c if c in "._-" or unicodedata.category(c)[0] in "LNM" else "\0" for c in signs))


def _cut(text: str, keep_end: bool) -> str:
    if _fits(text):
        return text
    digest = f"{hashlib.sha256(text.encode('utf-8')).hexdigest()[:8]}-" if keep_end else ""
    while not _fits(digest + text):
        text = text[1:] if keep_end else text[:-1]
    return digest + text


def _fits(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and len(text.encode("utf-8")) <= _MOST_BYTES
