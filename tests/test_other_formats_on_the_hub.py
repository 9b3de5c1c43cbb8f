"""Faults of the network while a GGUF or a PyTorch file is read: the right vectors, or one error and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_table import TRIES
from hub_stand_in import Fault, HubStandIn
from made_gguf import llama_tensors, write_gguf
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files

from lnsim.checkpoint.extract import extract, extract_and_keep
from lnsim.checkpoint.hub.session import Settings
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import HubError, RangeError

TORCH = (Path(__file__).parent / "data" / "torch" / "plain.bin").read_bytes()
CONFIG = checkpoint_files({}, LLAMA_CONFIG | {"num_hidden_layers": 2, "hidden_size": 4})["config.json"]
KINDS = ("ignore_range", "short_body", "reset_midway", "short_range", "long_body", "encoded", "wrong_content_range",
         "no_content_range", "html", "reset")  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A GGUF with so many texts that its start, its end and its norms lie in places of their own."""
    path, tokens = tmp_path_factory.mktemp("gguf") / "m.gguf", [f"token {number}" for number in range(90_000)]
    return write_gguf(path, llama_tensors(), tokens=tokens).read_bytes()


@pytest.fixture
def stocked(hub: HubStandIn, made: bytes, monkeypatch: pytest.MonkeyPatch) -> HubStandIn:
    """Both formats."""
    hub.add("owner/gguf", {"m.gguf": made})
    hub.add("owner/torch", {"pytorch_model.bin": TORCH, "config.json": CONFIG})
    quick = Settings(max_tries=TRIES, first_pause=0.001)
    monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: quick)
    return hub


def values(found: NormVectors) -> dict[str, bytes]:
    return {role: vectors.stored.tobytes() for role, vectors in found.roles.items()}


@pytest.mark.parametrize("source", ["owner/gguf", "owner/torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_fault_is_got_over_and_one_that_lasts_ends_in_a_sentence(
    stocked: HubStandIn, source: str, kind: str, tmp_path: Path
) -> None:
    right = values(extract(source))
    for skip in () if kind == "encoded" else (0, 1, 2):  # a server that packs files does so again
        stocked.faults[:] = [Fault("X-Signature", kind, times=1, skip=skip)]
        assert values(extract(source)) == right
    stocked.faults[:] = [Fault("X-Signature", kind)]
    with pytest.raises((HubError, RangeError), match=rf"{source}@0123456789ab/"):
        extract_and_keep(source, out=tmp_path / "out")
    assert not list((tmp_path / "out").glob("*"))
