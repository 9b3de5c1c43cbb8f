"""What people paste as a SOURCE: which repo, revision and part it means, and that it is read so, end to end."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run
from hub_stand_in import COMMIT, LATER_COMMIT, HubStandIn
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, llama_tensors, norm_bits, write_files

import lnsim
from lnsim.checkpoint.hub.names import RepoName, check_endpoint, is_repo_id, parse_repo_name
from lnsim.checkpoint.opening import find_source, open_checkpoint
from lnsim.errors import FormatError, HubError, OfflineError, RepoNotFoundError, RevisionError, SourceError

PAGE = "https://huggingface.co/org/pipe"
MEANINGS = {
    ("gpt2", None, ""): ["gpt2", "hf://gpt2", "https://huggingface.co/gpt2"],
    ("gpt2", "main", "onnx"): ["gpt2@main/onnx"],
    # Nearly the name of a stored model, but for its owner or revision.
    ("sre-minilm-l8", "main", ""): ["sre-minilm-l8@main"],
    ("me/sre-minilm-l8", None, ""): ["me/sre-minilm-l8"],
    ("org/pipe", None, ""): [
        "org/pipe/", " org/pipe\n", "models/org/pipe", "hf://org/pipe", f"{PAGE}/", f"{PAGE}.git",
        f"{PAGE}?library=transformers#usage", "https://huggingface.co/models/org/pipe",
        "HTTPS://HuggingFace.co/org/pipe", "http://www.huggingface.co/org/pipe", "hf.co/org/pipe",
        "git@hf.co:org/pipe.git", "ssh://git@huggingface.co/org/pipe",
    ],
    ("_org/_pipe", None, ""): ["_org/_pipe"],
    ("org/pipe", "v1", ""): ["org/pipe@v1/", "https://huggingface.co/api/models/org/pipe/revision/v1"],
    ("org/pipe", "refs/pr/3", ""): ["org/pipe@refs/pr/3"],
    ("org/pipe", "refs/convert/parquet", "x"): ["org/pipe@refs/convert/parquet/x"],
    ("org/pipe", "refs/pr/3", "sub"): [
        "org/pipe@refs%2Fpr%2F3/sub", "hf://models/org/pipe@refs/pr/3/sub/", f"{PAGE}/tree/refs%2Fpr%2F3/sub",
    ],
    ("org/pipe", "feature/x", "sub"): ["org/pipe@feature%2Fx/sub", "org/pipe/sub@feature/x"],
    ("org/pipe", "main", "sub/folder"): ["org/pipe@main/sub/folder/", "hf.co/org/pipe/tree/main/sub/folder/"],
    ("org/pipe", None, "model.safetensors"): ["org/pipe/model.safetensors"],
    ("org/pipe", None, "at@2/model.safetensors"): ["org/pipe/at@2/model.safetensors"],
    ("org/pipe", "main", ""): [f"{PAGE}/tree/main?show_file_info=model.safetensors"],
    ("org/pipe", "main", "my folder/model.safetensors"): [f"{PAGE}/blob/main/my%20folder/model.safetensors"],
    ("org/pipe", "main", "model.safetensors"): [f"{PAGE}/resolve/main/model.safetensors?download=true"],
    ("org/pipe", COMMIT, ""): [f"{PAGE}/commit/{COMMIT}"],
    ("gpt2", "main", "model.safetensors"): ["https://huggingface.co/gpt2/blob/main/model.safetensors"],
    ("org/tree", "main", ""): ["https://huggingface.co/org/tree/tree/main"],
}  # fmt: skip
FORMS = {form: meaning for meaning, forms in MEANINGS.items() for form in forms}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_names_the_same_repo_and_part_at_one_revision(form: str) -> None:
    repo_id, revision, part = FORMS[form]
    assert find_source(form).repo_name == RepoName(repo_id, revision, part)
    if revision is None:
        assert parse_repo_name(form, "feature/x") == RepoName(repo_id, "feature/x", part)
    else:
        with pytest.raises(SourceError, match="the revision is given twice"):
            parse_repo_name(form, "v2")


NO_MODELS = {
    "hf://datasets/org/data": "a model was expected, found something of the Hub's 'datasets'",
    "https://huggingface.co/spaces/org/app": "a model was expected, found something of the Hub's 'spaces'",
    "https://huggingface.co/": "this is no page of a model, its folders or files; owner/name",
    f"{PAGE}/discussions/3": "this is no page of a model",
    "https://example.org/org/pipe": "an address of the Hub was expected, found the host 'example.org'.* HF_ENDPOINT",
    "https://huggingface.co.example.org/org/pipe": "found the host 'huggingface.co.example.org'",
    "https://me:secret@huggingface.co/org/pipe": r"'https://huggingface.co/org/pipe': .* without a user",
    "https://example.org/x.safetensors?signature=secret": r"'https://example.org/x.safetensors': ",
    "https://huggingface.co:port/org/pipe": "an address: owner/name",
    "s3://bucket/model": "'s3://bucket/model': owner/name, .* was expected",
    "org/pipe@": "a revision was expected behind the @",
    "org/pipe@/sub": "a revision was expected behind the @",
    "org/pipe/../other": "behind the repo a plain path was expected, found '../other'",
    "org/pipe//sub": "behind the repo a plain path was expected",
    "org//pipe": "it cannot be a repo id",
    "org/a--b": "it cannot be a repo id",
    "a/b?x": "it cannot be a repo id",
    "//127.0.0.1/a": "there is no such file or folder",
    "a/\nb": "it cannot be a repo id",
    "C:/models/llama": "there is no such file or folder",
    "models\\llama": "there is no such file or folder",
    "folder/model.safetensors": "there is no such file or folder",
    "~nobody-of-this-name/x": "there is no such file or folder",
    "": "there is no such file or folder",
    "x" * 5000: "it cannot be a repo id",
    "127.0.0.2:1/org/pipe": "it cannot be a repo id",
}


@pytest.mark.parametrize("form", NO_MODELS)
def test_what_can_be_no_model_is_one_error_that_says_what_was_expected(form: str, hub: HubStandIn) -> None:
    with pytest.raises(SourceError, match=f"^Opening .*{NO_MODELS[form]}") as caught:
        find_source(form)
    assert str(caught.value).isprintable()
    assert "secret" not in str(caught.value)
    assert hub.requests == []


def test_the_rule_of_repo_ids_is_that_of_the_client_library() -> None:
    dice = random.Random(12)
    texts = ["".join(dice.choices("aZ0_-./é @", k=dice.randint(1, 7))) for _ in range(20_000)]
    texts += ["x" * 96, "x" * 97, "x" * 96 + "/y", "x.git", "x.gitt", "a/b.git"]
    assert len({is_repo_id(text) for text in texts}) == 2
    for text in texts:
        try:
            validate_repo_id(text)
        except HFValidationError:
            assert not is_repo_id(text), text
        else:
            assert is_repo_id(text), text


def test_a_path_and_a_stored_name_come_before_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_source("all-minilm-l6-v2/").path == find_source("all-minilm-l6-v2").path
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path / "org" / "pipe", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    assert find_source("org/pipe/").path == Path("org/pipe")
    assert find_source("org/pipe/model.safetensors").path == Path("org/pipe/model.safetensors")
    assert find_source("hf://org/pipe").repo_name == RepoName("org/pipe", None)


# A part of a repo, end to end

ENCODER, OTHER = llama_tensors(seed=1), llama_tensors(n_layers=2, seed=2)
PIPE = {
    "config.json": b"{}",
    "model_index.json": b"{}",
    "original.ckpt": b"x",
    **{f"text_encoder/{name}": content for name, content in checkpoint_files(ENCODER, LLAMA_CONFIG, 3).items()},
    **{f"other/{n}": c for n, c in checkpoint_files(OTHER, LLAMA_CONFIG | {"num_hidden_layers": 2}).items()},
    "bare/model.safetensors": file_bytes(ENCODER),
}


@pytest.fixture
def pipe(hub: HubStandIn) -> HubStandIn:
    hub.add("org/pipe", PIPE)
    hub.add("org/pipe", PIPE, branch="feature/x", commit=LATER_COMMIT)
    return hub


@pytest.mark.parametrize(
    "source", ["org/pipe/text_encoder", f"org/pipe@{COMMIT}/text_encoder", "{endpoint}/org/pipe/tree/main/text_encoder"]
)
def test_the_weights_of_a_sub_folder_are_read_with_its_own_config(pipe: HubStandIn, source: str) -> None:
    source = source.format(endpoint=pipe.endpoint)
    found = lnsim.extract(source)
    assert norm_bits(found.stored) == norm_bits(ENCODER)
    assert (found.commit, found.model_type, found.provenance["repo_id"]) == (COMMIT, "llama", "org/pipe")
    assert not any("other/" in path for path in pipe.paths())
    opened = open_checkpoint(source)
    assert (opened.repo_id, opened.part) == ("org/pipe", "text_encoder")
    assert opened.where == f"org/pipe@{COMMIT[:12]}/text_encoder"
    assert f"org/pipe@{COMMIT}/text_encoder\n" in run("inspect", source)[1]


@pytest.mark.parametrize("address", ["{0}/org/pipe/resolve/main", "{1}/org/pipe/blob/main", "org/pipe"])
def test_one_file_is_read_with_its_config_and_an_index_with_its_shards(pipe: HubStandIn, address: str) -> None:
    address = address.format(pipe.endpoint, pipe.endpoint[7:])
    found = lnsim.extract(f"{address}/other/model.safetensors")
    assert norm_bits(found.stored) == norm_bits(OTHER)
    assert dict(found.config)["num_hidden_layers"] == 2
    assert norm_bits(lnsim.extract(f"{address}/text_encoder/model.safetensors.index.json").stored) == norm_bits(ENCODER)
    shard = "model-00002-of-00003.safetensors"
    opened = open_checkpoint(f"{address}/text_encoder/{shard}")
    assert (list(opened.headers), opened.part) == ([shard], f"text_encoder/{shard}")


def test_the_revision_may_come_apart_from_a_part(pipe: HubStandIn) -> None:
    assert lnsim.extract("org/pipe/other", revision="feature/x").commit == LATER_COMMIT
    assert lnsim.extract("org/pipe@feature%2Fx/other").commit == LATER_COMMIT
    with pytest.raises(RevisionError, match=r"no such revision.* write org/pipe@feature%2Fx, or use --revision\.$"):
        lnsim.extract("org/pipe@feature/x")
    with pytest.raises(RevisionError, match=r"Reading org/pipe@x/y: .*\(branch, tag or commit\)\.$"):
        lnsim.extract("org/pipe/other", revision="x/y")


def test_a_folder_without_a_config_says_that_the_roots_was_not_used(pipe: HubStandIn) -> None:
    opened = open_checkpoint("org/pipe/bare")
    assert opened.config is None
    assert opened.notes == ("bare has no config.json; the one in the repo's root was not used.",)
    assert open_checkpoint("org/pipe/other").notes == ()


def test_weights_in_sub_folders_or_several_files_are_named_as_they_can_be_typed(pipe: HubStandIn) -> None:
    said = r"PyTorch pickles \(original\.ckpt\) and .* in sub-folders only.* for example org/pipe@main/bare\.$"
    with pytest.raises(FormatError, match=said):
        lnsim.extract("org/pipe")
    pipe.add("a/b", {"x.safetensors": file_bytes(ENCODER), "y.safetensors": file_bytes(OTHER)})
    with pytest.raises(FormatError, match=r"Name one of these files instead, for example a/b@main/x\.safetensors\."):
        open_checkpoint("a/b")
    assert list(open_checkpoint("a/b@main/y.safetensors").headers) == ["y.safetensors"]


@pytest.mark.parametrize(("source", "message"), [
    ("org/pipe@main/vae", r"no such folder or file\. Weights are in org/pipe@main/bare, org/pipe@main/other, "),
    ("org/pipe/text_enc", "no such folder or file"),
    ("org/pipe/original.ckpt", r"a folder, a \.safetensors, \.bin or \.gguf file was expected\. Name its folder"),
    ("org/pipe/other/config.json", r"Name its folder, org/pipe@main/other, "),
])  # fmt: skip
def test_a_part_that_is_not_there_is_told_with_those_that_are(pipe: HubStandIn, source: str, message: str) -> None:
    with pytest.raises(SourceError, match=rf"^Opening org/pipe@{COMMIT[:12]}/.*{message}"):
        lnsim.extract(source)


def test_a_mistyped_path_of_three_parts_is_told_as_one(hub: HubStandIn) -> None:
    with pytest.raises(RepoNotFoundError, match=r"no such repo.* There is no such file or folder here either\.$"):
        lnsim.extract("runs/first/checkpoint-500")


# The Hub's cache


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A repo in the Hub's cache, of links into ``blobs`` as the client library lays it out."""
    home = tmp_path / "hub-cache" / "models--org--pipe"
    for number, (name, content) in enumerate((checkpoint_files(OTHER, LLAMA_CONFIG) | PIPE).items()):
        write_files(home / "blobs", {f"{number:064x}": content})
        link = home / "snapshots" / COMMIT / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path(os.path.relpath(home / "blobs" / f"{number:064x}", link.parent)))
    write_files(home / "refs", {"main": COMMIT.encode()})
    return home


def test_a_folder_of_the_cache_is_its_repo(hub: HubStandIn, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in (str(cache), f"{cache}/snapshots"):
        assert (open_checkpoint(home).commit, open_checkpoint(home).part) == (COMMIT, "")
    for part in ("", "model.safetensors", "text_encoder", "other/model.safetensors"):
        opened = open_checkpoint(f"{cache}/snapshots/{COMMIT}/{part}")
        assert (opened.repo_id, opened.commit, opened.part) == ("org/pipe", COMMIT, part)
        assert opened.where == f"org/pipe@{COMMIT}/{part}".rstrip("/")
    assert hub.requests == []
    monkeypatch.chdir(cache / "snapshots" / COMMIT / "other")
    for source in (".", "model.safetensors", "../other"):
        assert open_checkpoint(source).repo_id == "org/pipe"
    assert lnsim.load("..").commit == COMMIT


def test_refs_main_decides_else_the_only_snapshot_else_they_are_listed(cache: Path) -> None:
    (cache / "snapshots" / LATER_COMMIT).mkdir()
    assert open_checkpoint(str(cache)).commit == COMMIT
    (cache / "refs" / "main").unlink()
    with pytest.raises(SourceError, match=rf"one snapshot was expected, found {COMMIT}, {LATER_COMMIT}, and it has no"):
        open_checkpoint(str(cache))
    (cache / "snapshots" / LATER_COMMIT).rmdir()
    assert open_checkpoint(str(cache)).commit == COMMIT
    (cache / "refs" / "main").write_text(LATER_COMMIT)
    with pytest.raises(SourceError, match=rf"found {COMMIT}, and refs/main names '{LATER_COMMIT}', which is not there"):
        open_checkpoint(str(cache))


def test_a_cached_commit_is_read_without_a_request(
    hub: HubStandIn, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert norm_bits(lnsim.extract(f"org/pipe@{COMMIT}").stored) == norm_bits(OTHER)
    assert norm_bits(lnsim.extract(f"org/pipe@{COMMIT}/text_encoder").stored) == norm_bits(ENCODER)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert norm_bits(lnsim.extract("org/pipe").stored) == norm_bits(OTHER)
    assert norm_bits(lnsim.extract("hf://org/pipe/text_encoder").stored) == norm_bits(ENCODER)
    assert norm_bits(lnsim.extract("org/pipe@main/other/model.safetensors").stored) == norm_bits(OTHER)
    assert hub.requests == []
    with pytest.raises(OfflineError, match="switched off by HF_HUB_OFFLINE"):
        lnsim.extract("org/other/text_encoder")


@pytest.mark.parametrize("source", ["{cache}", "{cache}/snapshots/{commit}/model.safetensors", "org/pipe@{commit}"])
def test_a_snapshot_whose_blobs_were_deleted_says_so_and_what_to_do(
    hub: HubStandIn, cache: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.remove(os.path.realpath(cache / "snapshots" / COMMIT / "model.safetensors"))
    source = source.format(cache=cache, commit=COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    said = rf"'model\.safetensors' is a link to a file that is no .*`hf download org/pipe --revision {COMMIT}`"
    with pytest.raises(SourceError, match=said):
        open_checkpoint(source)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    hub.add("org/pipe", checkpoint_files(OTHER, LLAMA_CONFIG))
    assert norm_bits(lnsim.extract(f"org/pipe@{COMMIT}").stored) == norm_bits(OTHER)


def test_a_config_whose_blob_was_deleted_is_no_missing_config(cache: Path) -> None:
    os.remove(os.path.realpath(cache / "snapshots" / COMMIT / "config.json"))
    for source in (cache, cache / "snapshots" / COMMIT / "model.safetensors"):
        with pytest.raises(SourceError, match=r"'config\.json' is a link to a file that is no longer there \(1 such"):
            open_checkpoint(str(source))


def test_a_snapshot_of_some_files_only_says_how_the_rest_is_read(hub: HubStandIn, cache: Path) -> None:
    (cache / "snapshots" / COMMIT / "model.safetensors").unlink()
    with pytest.raises(FormatError, match=rf"may hold only some of its files: .* org/pipe@{COMMIT} is read from the"):
        open_checkpoint(str(cache))


def test_a_cache_that_is_closed_is_told(hub: HubStandIn, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.listdir", refused)
    with pytest.raises(SourceError, match=r"Opening snapshots in the Hub's cache: Permission denied\.$"):
        open_checkpoint(str(cache))
    hub.add("org/pipe", checkpoint_files(OTHER, LLAMA_CONFIG))
    assert norm_bits(lnsim.extract(f"org/pipe@{COMMIT}").stored) == norm_bits(OTHER)


# HF_ENDPOINT

WRONG_ENDPOINTS = {
    "hf-mirror.com": "HF_ENDPOINT is 'hf-mirror.com'; an address such as 'https://hf-mirror.com' was expected",
    "localhost:8080/hub/": "an address such as 'https://localhost:8080/hub/' was expected",
    "": "HF_ENDPOINT is ''; an address such as 'https://host' was expected",
    " https://hf-mirror.com": "HF_ENDPOINT is ' https://hf-mirror.com'",
    "ftp://hf-mirror.com": "HF_ENDPOINT is 'ftp://hf-mirror.com'",
    "https://": "HF_ENDPOINT is 'https://'",
    "https://hf-mirror.com:port": "HF_ENDPOINT is 'https://hf-mirror.com:port'",
    "https://me:secret@hf-mirror.com": "HF_ENDPOINT is 'hf-mirror.com'",
}


@pytest.mark.parametrize("text", WRONG_ENDPOINTS)
def test_an_endpoint_that_is_no_address_is_one_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", text)
    for source in ("org/pipe", "https://huggingface.co/org/pipe", "localhost:1/org/pipe"):
        with pytest.raises(HubError, match=WRONG_ENDPOINTS[text]) as caught:
            find_source(source)
        assert "secret" not in str(caught.value)
    assert find_source("all-minilm-l6-v2").path is not None


def test_an_endpoint_that_was_wrong_from_the_start_is_told(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "hf-mirror.com")
    with pytest.raises(HubError, match=r"HF_ENDPOINT is 'hf-mirror\.com'"):
        lnsim.extract("org/pipe")


def test_a_slash_behind_the_endpoint_or_a_path_in_it_is_well(monkeypatch: pytest.MonkeyPatch, hub: HubStandIn) -> None:
    assert check_endpoint("https://hf-mirror.com/") == "https://hf-mirror.com/"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "https://mirror.example/hub")
    found = parse_repo_name("https://mirror.example/hub/org/pipe/tree/main/sub")
    assert found == RepoName("org/pipe", "main", "sub")


def test_what_is_no_endpoint_ends_without_a_traceback(tmp_path: Path) -> None:
    environment = os.environ | {"HF_ENDPOINT": "http://[bad", "PYTHONPATH": str(Path(lnsim.__file__).parents[1])}
    words = [sys.executable, "-m", "lnsim", "inspect", "org/pipe"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("lnsim: Looking for the Hub: the environment variable HF_ENDPOINT is 'http://[bad';")
    assert done.stderr.count("\n") == 1
