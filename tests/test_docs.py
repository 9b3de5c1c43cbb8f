"""The pages for people are true: their commands and sessions run, their links lead somewhere."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import run, run_all_program
from control_repos import CONTROLS, stock
from doc_pages import LANGUAGES, ROOT, Block, anchors, blocks, changed, links, pages
from hub_stand_in import HubStandIn
from made_gguf import llama_tensors as gguf_tensors
from made_gguf import write_gguf
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files
from test_two_models import ran
from virtual_dispute import DISPUTE, dispute_files

__all__ = ["ran"]

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [path.relative_to(ROOT).as_posix() for path in DOCS]
GATED = "owner/gated-model"


def parsed(path: Path) -> list[Block]:
    # The first two blocks of the README are CI's own: it types them as they stand.
    found = list(blocks(path.read_text("utf-8")))
    setup = [block for block in found if block.language == "sh" and not block.marks][:2]
    return [block for block in found if path.name != "README.md" or path.parent != ROOT or block not in setup]


ALL = {name: parsed(path) for name, path in zip(NAMES, DOCS, strict=True)}


def having(*marks: str, without: tuple[str, ...] = ()) -> list[str]:
    """Pages with a block to run that has all these marks and none of the others."""
    return [name for name, found in ALL.items() if any(is_due(block, marks, without) for block in found)]


def is_due(block: Block, marks: tuple[str, ...], without: tuple[str, ...]) -> bool:
    runs = block.language in ("sh", "python") and "setup" not in block.marks
    return runs and set(marks) <= set(block.marks) and not set(without) & set(block.marks)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder to write into, with the studies, links to the stored vectors, and a small checkpoint."""
    shutil.copytree(ROOT / "data" / "studies", tmp_path / "data" / "studies")
    for path in (ROOT / "data" / "vectors").glob("*/*.safetensors"):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path)
    (tmp_path / "data" / "atlas").mkdir()
    (tmp_path / "data" / "atlas" / "controls.txt").symlink_to(CONTROLS)
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    (tmp_path / "data" / "claims").symlink_to(ROOT / "data" / "claims")
    write_files(tmp_path / "my-checkpoint", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stocked(hub: HubStandIn, tmp_path: Path) -> HubStandIn:
    """A Hub with the repos that the pages name."""
    files = checkpoint_files(llama_tensors(), LLAMA_CONFIG)
    for repo_id in ("Qwen/Qwen3-4B", "zai-org/GLM-4.5-Air", "upstage/Solar-Open-100B"):
        hub.add(repo_id, files)
    hub.add(GATED, files, gated=True)
    hub.add("owner/base", files)
    hub.add("owner/other", files)
    content = write_gguf(tmp_path / "model.gguf", gguf_tensors()).read_bytes()
    hub.add("owner/model-GGUF", {"model-Q4_K_M.gguf": content, "model-Q8_0.gguf": content})
    hub.add("owner/pipeline", {f"text_encoder/{name}": content for name, content in files.items()})
    return hub


class Reader:
    """Somebody who reads a page from top to bottom and does what it says, as far as it is due."""

    def __init__(self, page: str, project: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str = "") -> None:
        self.page, self.project, self.monkeypatch, self.endpoint = page, project, monkeypatch, endpoint
        self.names: dict[str, Any] = {}
        self.said = ""
        self.due = False

    def read(self, *marks: str, without: tuple[str, ...] = ()) -> None:
        """Do the blocks that have all these marks and none of the others."""
        for block in ALL[self.page]:
            if block.language == "toml":
                (self.project / block.path).write_text(block.text)
            elif block.language == "diff":
                self.change(block)
            elif block.language == "text" and self.due:
                assert " ".join(block.text.split()) in " ".join(self.said.split()), f"{self.page}:{block.line}"
            elif block.language in ("sh", "python"):
                self.due = is_due(block, marks, without)
                if self.due:
                    self.do(block)

    def change(self, block: Block) -> None:
        """Change a file of the project, or of a copy of the package."""
        if block.path.startswith("lnsim/") and not (self.project / "lnsim").exists():
            shutil.copytree(ROOT / "lnsim", self.project / "lnsim", ignore=shutil.ignore_patterns("__pycache__"))
        path = self.project / block.path
        path.write_text(changed(path.read_text("utf-8"), block.text))

    def do(self, block: Block) -> None:
        if block.language == "python":
            self.session(block)
            return
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                code = self.command(words)
                assert code == ("fails" in block.marks), f"{self.page}:{block.line}: {line}\n{self.said}"

    def session(self, block: Block) -> None:
        where = f"{self.page}:{block.line}"
        if "patched" in block.marks:
            self.patched(block)
        elif ">>>" in block.text:
            test = doctest.DocTestParser().get_doctest(block.text, self.names, where, where, 0)
            told: list[str] = []
            result = doctest.DocTestRunner(verbose=False).run(test, out=told.append, clear_globs=False)
            self.names = test.globs
            assert not result.failed, "".join(told)
        else:
            exec(compile(block.text, where, "exec"), self.names)

    def patched(self, block: Block) -> None:
        """Run a session with the package as the page changes it."""
        file = self.project / "session.txt"
        file.write_text(block.text)
        code = f"import doctest, sys; sys.exit(doctest.testfile({str(file)!r}, module_relative=False).failed)"
        environment = {**os.environ, "PYTHONPATH": str(self.project)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
        assert done.returncode == 0, done.stdout.decode()

    def command(self, words: list[str]) -> int:
        """Type a command; returns its exit code."""
        settings = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
        words = words[len(settings) :]
        if settings:
            return self.process(words, settings)
        if words[0] == "lnsim":
            code, _, self.said = run(*words[1:])
            return code
        assert words[:2] == ["python", "run_all.py"], f"no test knows how to run: {words}"
        return self.run_all(words[2:])

    def process(self, words: list[str], settings: dict[str, str]) -> int:
        """A command with settings that are read at its start."""
        assert words[0] == "lnsim"
        if "HF_ENDPOINT" in settings:
            settings["HF_ENDPOINT"] = self.endpoint
        env = {**os.environ, "HF_HUB_CACHE": str(self.project / "cache"), **settings, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-m", *words], env=env, capture_output=True, text=True)
        self.said = done.stderr
        return done.returncode

    def run_all(self, words: list[str]) -> int:
        module = run_all_program(self.monkeypatch)
        self.monkeypatch.setenv("LNSIM_HOME", str(self.project))
        own = any(block.path == f"data/studies/{word}.toml" for word in words for block in ALL[self.page])
        if "--only" not in words and not own:  # other tests run whole studies
            self.monkeypatch.setattr(module, "run_plans", lambda plans, *rest, **options: [])
            self.monkeypatch.setattr(module, "fetch_for", lambda study, numbers: {})
        reports = [] if "--reports" in words else ["--reports", "reports"]
        return int(module.main([*words, *reports]))


@pytest.mark.parametrize("page", having(without=("hub", "slow")))
def test_what_a_page_shows_runs_without_a_network(page: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Reader(page, project, monkeypatch).read(without=("hub", "slow"))


@pytest.mark.parametrize("page", having("hub", without=("slow",)))
def test_what_a_page_reads_from_the_hub_runs_against_a_stand_in(
    page: str, project: Path, stocked: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    Reader(page, project, monkeypatch, stocked.endpoint).read("hub", without=("slow",))
    assert stocked.requests


def slow_lines(page: str) -> set[str]:
    return {line for block in ALL[page] if is_due(block, ("slow",), ()) for line in block.text.splitlines()}


# A page whose slow commands all stand on a longer one, too, is not run for itself.
SLOW = [page for page in having("slow") if not any(slow_lines(page) < slow_lines(other) for other in ALL)]


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW)
def test_the_slow_commands_of_a_page_run(
    page: str, project: Path, stocked: HubStandIn, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if not any("run_all.py" in line for line in slow_lines(page)):
        request.getfixturevalue("ran")  # other tests make the whole pages of two models and of many
    for family in DISPUTE:
        stocked.add(family.repo_id, dispute_files(family))
    stock(stocked)
    Reader(page, project, monkeypatch, stocked.endpoint).read("slow")


def test_every_block_says_what_it_is_and_only_a_few_cannot_be_run() -> None:
    setup = []
    for page, found in ALL.items():
        for block in found:
            assert block.language in LANGUAGES, f"{page}:{block.line}"
            assert bool(block.path) == (block.language in ("toml", "diff")), f"{page}:{block.line}: {block.path}"
            if "setup" in block.marks:
                setup += block.text.splitlines()
    assert all((having("hub"), having(without=("hub",))))
    programs = {words[0] for line in setup if (words := shlex.split(line))}
    assert programs <= {"jupyter", "hf", "python3"}


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in links(page.read_text("utf-8")):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path.read_text("utf-8")), f"{page.name}: {target}"


def test_no_page_stands_alone() -> None:
    index = {(ROOT / "docs" / target.partition("#")[0]).resolve() for target in links(text_of("docs/README.md"))}
    assert {path.resolve() for path in (ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "README.md"} <= index
    assert (ROOT / "CONTRIBUTING.md") in index
    assert "docs/README.md" in links(text_of("README.md"))


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_glossary_is_in_order_and_has_no_word_twice() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\*", text_of("docs/glossary.md"), re.MULTILINE)
    plain = [word.lower().replace("γ", "gamma") for word in words]
    assert plain == sorted(plain)
    assert len(set(plain)) == len(plain)
