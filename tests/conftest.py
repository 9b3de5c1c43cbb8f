"""Fixtures for all tests: no network, no user's cache, and a Hub that runs on this machine."""

from __future__ import annotations

import functools
import os
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # lnsim and studies
sys.path.insert(0, str(Path(__file__).parent))  # helpers of tests
# Tests run side by side; threads inside each would only get in each other's way. numpy looks once, when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Programs that tests start import the same libraries; where Python may not write compiled modules, each would compile
# them anew.
os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from hub_stand_in import HubStandIn

# Each test has a client of its own, and each client would read the same file of certificates again, for 50 ms.
ssl.create_default_context = functools.cache(ssl.create_default_context)  # type: ignore[assignment]

# Programs for a real browser, which import one another; they are run by themselves.
collect_ignore = ["browser"]

# nbformat imports jsonschema, which builds some forty grammars of internet addresses where this package is there, as it
# is with JupyterLab. No notebook is checked against one, and it takes every process of the tests longer than the rest.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]


@pytest.fixture(scope="session")
def replica() -> None:
    """The synthetic vectors of the study that has some, where they are not there yet: what run_all.py does first."""
    from lnsim.study.catalog import load_study
    from studies.replica import build_replica

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LNSIM_HOME", str(Path(__file__).parents[1]))
        build_replica(load_study("solar_glm"))


@pytest.fixture
def make_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., HubStandIn]]:
    """Start stand-ins for the Hub; the client library is pointed at the newest, with an empty cache and no token."""
    from huggingface_hub import close_session, constants

    from lnsim.checkpoint.hub.session import close_clients

    started: list[HubStandIn] = []

    def start(**options: object) -> HubStandIn:
        hub = HubStandIn(**options).__enter__()  # type: ignore[arg-type]
        started.append(hub)
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        return hub

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield start
    close_clients()
    close_session()  # the next test may have other proxies or certificates
    for hub in started:
        hub.__exit__()


@pytest.fixture
def hub(make_hub: Callable[..., HubStandIn]) -> HubStandIn:
    """A stand-in for the Hub without faults."""
    return make_hub()
