"""Kernels share compiled modules only where each would have to compile them anew, and the environment is put back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lnsim.render import bytecode

FORBIDS, PREFIX = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORBIDS, "1")
    monkeypatch.delenv(PREFIX, raising=False)
    monkeypatch.setattr(bytecode, "_is_compiled", lambda: False)


def test_where_nothing_is_compiled_or_may_be_written_a_temporary_folder_takes_it() -> None:
    with bytecode.shared_bytecode():
        folder = Path(os.environ[PREFIX])
        assert folder.is_dir()
        assert FORBIDS not in os.environ
    assert not folder.exists()
    assert os.environ[FORBIDS] == "1"
    assert PREFIX not in os.environ


def test_the_environment_is_put_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="x"), bytecode.shared_bytecode():
        raise ValueError("x")
    assert (os.environ[FORBIDS], PREFIX in os.environ) == ("1", False)


@pytest.mark.parametrize("reason", ["compiled", "allowed", "chosen"])
def test_nothing_changes_where_it_need_not(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    if reason == "compiled":
        monkeypatch.setattr(bytecode, "_is_compiled", lambda: True)
    elif reason == "allowed":
        monkeypatch.delenv(FORBIDS)
    else:
        monkeypatch.setenv(PREFIX, "mine")
    before = dict(os.environ)
    with bytecode.shared_bytecode():
        assert dict(os.environ) == before
