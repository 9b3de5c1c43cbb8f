"""Faults of what is read: addresses that expire, doors that are shut, headers that lie, commits that move."""

from __future__ import annotations

from fault_table import (
    ADDRESS,
    BYTES,
    CONFIG,
    CONFIG_FILE,
    INDEX,
    LISTING,
    N_SHARDS,
    NORMS,
    RANGES,
    START,
    TENSORS,
    Arrange,
    OneError,
    Place,
    Recovers,
    Row,
    Stage,
    fails,
    fault,
)  # fmt: skip
from hub_stand_in import COMMIT, LATER_COMMIT, Fault
from safetensors_bytes import checkpoint_files, file_bytes, llama_tensors

from lnsim.errors import FormatError, GatedError, HeaderError, HubError, RangeError, RepoNotFoundError, RevisionError

_INDEX = "model.safetensors.index.json"
_SHARDS = tuple(f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3))
_FIRST, _SECOND, _ = _SHARDS
_LOST = next(name for name in list(TENSORS)[0::N_SHARDS] if name in NORMS)


def _signatures(**limits: float) -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        stage.hub.latency = 0.02  # so that several reads of a shard are under way at once
        for name, value in limits.items():
            setattr(stage.hub, name, value)

    return arrange


def _time_passes(stage: Stage, place: Place) -> None:
    stage.hub.signature_seconds = 60.0
    stage.when(place, lambda: stage.hub.grow_old(61.0), nth=2)


SIGNED = (
    Row("an address good for one use only (then 403)", "always", Recovers(40), _signatures(signature_uses=1), RANGES),
    Row("addresses too old after the second read (403)", "once", Recovers(16), _time_passes, RANGES),
    fails("403 for every address, however new", HubError, "the server refused access (403)",
          fault("status", status="403"), RANGES),
    fails("403 without a reason", HubError, "the server refused access (403)", fault("status", status="403"),
          (LISTING, CONFIG_FILE, INDEX, ADDRESS)),
)  # fmt: skip


def _gated(token: str = "") -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        stage.repo.gated = True
        if token:
            stage.monkeypatch.setenv("HF_TOKEN", token)

    return arrange


def _refused(status: str, why: str, times: int = 1_000_000, **headers: str) -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        stage.monkeypatch.setenv("HF_TOKEN", "hf_expired")
        stage.spoil(place, "status", times, status=status, X_Error_Message=why, **headers)

    return arrange


def _without(name: str, place_of_loss: str) -> Arrange:
    """A shard that the index names: not in the listing, or listed but gone."""

    def arrange(stage: Stage, place: Place) -> None:
        if place_of_loss == "listing":
            del stage.repo.files[COMMIT][name]
        else:
            stage.hub.faults.append(Fault(name, "status", headers={"status": "404", "X-Error-Code": "EntryNotFound"}))

    return arrange


REFUSED = (
    fails("401: no such repo, or a private one", RepoNotFoundError,
          "Reading no/such@main: the Hub has no such repo, or it is private and no token was sent (`hf auth login`).",
          lambda stage, place: None, (LISTING,), source="no/such", most_requests=1),
    fails("404: no such repo", RepoNotFoundError, "Reading a/b@main: the Hub has no such repo",
          fault("status", status="404", X_Error_Code="RepoNotFound"), (LISTING,), most_requests=1),
    fails("404: no such revision", RevisionError,
          "Reading a/b@v9: the repo has no such revision (branch, tag or commit).", lambda stage, place: None,
          (LISTING,), source="a/b@v9", most_requests=1),
    fails("401: gated, no token", GatedError,
          "the repo is gated, and no token was sent. Accept its terms on its page, then log in with `hf auth login`.",
          _gated(), (CONFIG_FILE, INDEX)),
    fails("403: gated, a token without access", GatedError, "the repo is gated, and your token has no access.",
          _gated("hf_other"), (CONFIG_FILE, INDEX)),
    fails("401: a token that the Hub refuses, and says why", HubError,
          "the Hub refuses your token (401). Log in anew with `hf auth login`; a public repo needs no token: unset "
          "HF_TOKEN, or `hf auth logout`. The server says: 'Invalid credentials in Authorization header'.",
          _refused("401", "Invalid credentials in Authorization header"), (LISTING, CONFIG_FILE, INDEX, ADDRESS)),
    fails("403: a token without the permission, and why", HubError,
          "the server refused access (403). Your token may not read it: see what it permits, or log in with another "
          "(`hf auth login`). The server says: 'Please enable access to gated repositories'.",
          _refused("403", "Please enable access to gated repositories"), (LISTING, CONFIG_FILE, INDEX, ADDRESS)),
    fails("403: gated, a token without the permission, and why", GatedError,
          "and your token has no access. ... The server says: 'Please enable access'.",
          _refused("403", "Please enable access", X_Error_Code="GatedRepo"), (LISTING, CONFIG_FILE, ADDRESS)),
    Row("401 where an address leads, with a token at the Hub", "twice", Recovers(4), _refused("401", "no", times=2),
        RANGES),
    fails("451: not served for legal reasons", HubError, "it may not be served, for legal reasons (451).",
          fault("status", status="451"), (LISTING, CONFIG_FILE, ADDRESS)),
    fails("404: a shard that the index names is not listed", HubError,
          f"its index names '{_SECOND}', which the commit does not hold", _without(_SECOND, "listing"), (INDEX,)),
    fails("404: a shard that is listed is gone", HubError, f"{_SECOND}: the repo has no such file",
          _without(_SECOND, "storage"), (INDEX, ADDRESS)),
    fails("404: config.json is listed and gone", HubError, "config.json: the repo has no such file",
          fault("status", status="404", X_Error_Code="EntryNotFound"), (CONFIG_FILE,)),
)  # fmt: skip


def _lacks_a_tensor(stage: Stage, place: Place) -> None:
    """The first shard was uploaded without a tensor that the index names."""
    kept = [name for name in list(TENSORS)[0::N_SHARDS] if name != _LOST]
    assert len(kept) + 1 == len(list(TENSORS)[0::N_SHARDS])
    stage.put(_FIRST, file_bytes({name: TENSORS[name] for name in kept}))


_MIXED = OneError(
    HeaderError,
    f"tensor '{_LOST}' should lie in {_FIRST}, but no shard holds it; 1 such in all. The upload is incomplete or "
    f"mixed; nothing was read.",
)

HEADER_ANSWERS = (Row("the index names a tensor that its shard lacks", "for ever", _MIXED, _lacks_a_tensor, (INDEX,)),)


def _later(stage: Stage) -> None:
    """Another commit: other weights under the same names, in another order, and another config."""
    other = dict(reversed(llama_tensors(n_layers=6, seed=9, hidden_size=128).items()))
    stage.hub.add("a/b", checkpoint_files(other, CONFIG | {"rope_theta": 1}, N_SHARDS), commit=LATER_COMMIT)
    stage.repo.refs["main"] = COMMIT


def _moves(at: Place) -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        _later(stage)
        stage.when(at, lambda: stage.repo.refs.update(main=LATER_COMMIT))

    return arrange


def _vanishes(stage: Stage, place: Place) -> None:
    """main is rewritten, and the commit that was pinned is gone."""
    _later(stage)

    def rewrite() -> None:
        stage.repo.refs.update(main=LATER_COMMIT)
        del stage.repo.files[COMMIT]

    stage.when(LISTING, rewrite)


def _replaced(stage: Stage, place: Place) -> None:
    """Each shard gets a longer header, so that all its tensors lie elsewhere."""
    longer = {
        name: file_bytes({tensor: TENSORS[tensor] for tensor in list(TENSORS)[number::N_SHARDS]}, padding=800)
        for number, name in enumerate(_SHARDS)
    }
    stage.when(BYTES, lambda: [stage.put(name, content) for name, content in longer.items()])


MOVING = (
    Row("main moves after its commit was asked for", "once", Recovers(3), _moves(LISTING), (INDEX,)),
    Row("main moves after the headers came", "once", Recovers(3), _moves(START), (START,)),
    Row("main moves while vectors are read", "once", Recovers(0), _moves(BYTES), RANGES),
    fails("main is rewritten and the pinned commit is gone", RevisionError, "the repo has no such revision", _vanishes,
          (INDEX,), often="once"),
    fails("shards are replaced by longer ones while they are read", RangeError,
          "The file was replaced while it was read; try again.", _replaced, often="once"),
)  # fmt: skip


def _content(name: str, content: bytes) -> Arrange:
    return lambda stage, place: stage.put(name, content)


CONTENT = (
    fails("config.json is no JSON", FormatError, "Reading a/b@0123456789ab/config.json: JSON was expected",
          _content("config.json", b"\x00garbage"), (CONFIG_FILE,)),
    fails("config.json is a list", FormatError, "a JSON object was expected, found list.",
          _content("config.json", b"[]"), (CONFIG_FILE,)),
    fails("the index is no JSON", FormatError, "Reading the index of a/b@0123456789ab: JSON was expected",
          _content(_INDEX, b"{"), (INDEX,)),
    fails("a shard's file ends before its header does", HeaderError,
          f"Reading the header of a/b@0123456789ab/{_SECOND}:",
          _content(_SECOND, checkpoint_files(TENSORS, CONFIG, N_SHARDS)[_SECOND][:300]), (START,)),
    fails("a shard's file is cut off behind its header", HeaderError,
          f"Reading the header of a/b@0123456789ab/{_SECOND}:",
          _content(_SECOND, checkpoint_files(TENSORS, CONFIG, N_SHARDS)[_SECOND][:-5000]), (START,)),
    fails("a shard's file is empty", HubError, f"{_SECOND}: the server says that the file has no such bytes (416).",
          _content(_SECOND, b""), (START,)),
    fails("a shard's file is a page of HTML", HeaderError, f"Reading the header of a/b@0123456789ab/{_SECOND}:",
          _content(_SECOND, b"<!DOCTYPE html>" * 99), (START,)),
)  # fmt: skip

REPO_ROWS = (*SIGNED, *REFUSED, *HEADER_ANSWERS, *MOVING, *CONTENT)
