"""This program works in JupyterLab as a person would, in headless Chromium, and says what is wrong.

    python tests/browser/check_jupyterlab.py [00 13 | all] [--chromium PATH] [--shots DIR] [--patience SECONDS]

It starts JupyterLab on this machine with a home of its own, opens each notebook, chooses Run > Run All Cells, waits
until the kernel is idle and looks at the outputs: a figure must be painted, and no cell may show an error or stay
without a number. In one of them it changes the experiment as docs/explore.md says: the mean over layers becomes the
median, in one cell, and the table must follow. Then it opens an empty notebook, loads a stored model, completes a role
and a layer with Tab and compares two models. The notebooks are copies in a project folder of their own, so
nothing in the clone changes.
Exit code 0: nothing found.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from urllib.error import URLError
from urllib.request import urlopen

from check_reports import FLAGS, watch
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from playwright.sync_api import Error as BrowserError

ROOT = Path(__file__).resolve().parents[2]
EMPTY = {
    "cells": [{"cell_type": "code", "id": "a", "metadata": {}, "source": [], "outputs": [], "execution_count": None}],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # A kernel's completions are dropped after a second, which is too short on a machine with other work.
    "@jupyterlab/completer-extension/manager": {"providerTimeout": 60_000},
    # Cells out of sight would otherwise not be in the page, and their outputs could not be looked at.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
}
CHANGED = ('cosine_mean=("cosine", "mean"), cosine_min', 'cosine_mean=("cosine", "median"), cosine_min')
"""What is changed in one cell, and into what."""
OPTIONS = [
    "--no-browser", "--allow-root", "--ip=127.0.0.1", "--ServerApp.port_retries=0",
    "--LabApp.extension_manager=readonly", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
]  # fmt: skip
IDLE = "() => /\\| Idle/.test(document.querySelector('#jp-main-statusbar')?.innerText ?? '')"
FACTS = """() => {
  const outputs = [...document.querySelectorAll('.jp-Notebook .jp-OutputArea-output')];
  const numbers = [...document.querySelectorAll('.jp-Notebook .jp-CodeCell')]
    .map(cell => cell.querySelector('.jp-InputPrompt').textContent.trim());
  const wrong = /error|stderr/;
  const errors = outputs.filter(o => wrong.test(o.dataset.mimeType ?? ''));
  const images = outputs.flatMap(o => [...o.querySelectorAll('img')]);
  return {
    numbers, errors: errors.map(e => e.innerText.slice(0, 300)),
    images: images.length, blank: images.filter(i => !(i.complete && i.naturalWidth > 0)).length,
  };
}"""


@dataclass(frozen=True, slots=True)
class Lab:
    """A JupyterLab that runs, and how it is looked at."""

    url: str
    token: str
    browser: Browser
    patience: float
    shots: Path | None

    @contextmanager
    def opened(self, path: str, found: list[str]) -> Iterator[Page]:
        """A notebook in a window of its own, its kernel ready; script errors and requests that leave are findings."""
        context = self.browser.new_context(viewport={"width": 1280, "height": 1000})
        page = context.new_page()
        page.set_default_timeout(self.patience * 1000)
        watch(page, found, self.url)
        page.goto(f"{self.url}/lab/tree/{path}?reset&token={self.token}")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        page.wait_for_function(IDLE)
        try:
            yield page
        finally:
            if self.shots is not None:
                self.shots.mkdir(parents=True, exist_ok=True)
                page.screenshot(path=self.shots / f"jupyterlab-{Path(path).stem}.png")
            self.end_kernels(context)
            context.close()

    def end_kernels(self, context: BrowserContext) -> None:
        """Shut down what the window has started, for the memory: a kernel outlives its window."""
        told_by = {"Authorization": f"token {self.token}"}
        for kernel in context.request.get(f"{self.url}/api/kernels", headers=told_by).json():
            context.request.delete(f"{self.url}/api/kernels/{kernel['id']}", headers=told_by)


def main(words: list[str] | None = None) -> int:
    """Run the checks; returns the exit code."""
    parser = argparse.ArgumentParser(description="Work in JupyterLab with Chromium and check what is shown.")
    usual = ["00", "13", "compare"]
    parser.add_argument("numbers", nargs="*", help=f"numbers of notebooks, or all ({' '.join(usual)})", default=usual)
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser (/usr/bin/chromium)")
    parser.add_argument("--shots", type=Path, help="write a screenshot of every window into this folder")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds that one step may take (120)")
    options = parser.parse_args(words)
    names = [p.name for p in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    names = [name for name in names if {"all", name[:2], name.removesuffix(".ipynb")} & set(options.numbers)]
    if not names:
        print(f"No notebook has a number of {', '.join(options.numbers)}.")
        return 1
    before = stored()
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = make_home(Path(folder))
        with server(home) as (url, token):
            browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
            lab = Lab(url, token, browser, options.patience, options.shots)
            for name in names:
                found += told(name, check_notebook(lab, f"notebooks/{name}"))
            found += told("a changed experiment", check_change(lab, "notebooks/01_layer0_baseline.ipynb"))
            found += told("an empty notebook", check_by_hand(lab, "empty.ipynb"))
            browser.close()
    if stored() != before:
        found.append("a notebook of the clone has changed")
    print(*found, f"{len(names)} notebooks, a changed one and an empty one: {len(found) or 'no'} findings.", sep="\n")
    return 1 if found else 0


def told(name: str, findings: Iterator[str]) -> Iterator[str]:
    """The findings with the notebook's name and the seconds it took; a step that never ends is one of them."""
    started = time.monotonic()
    try:
        yield from (f"{name}: {finding}" for finding in findings)
    except BrowserError as error:
        yield f"{name}: {str(error).splitlines()[0]}"
    print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)


def stored() -> dict[str, bytes]:
    """The notebooks of the clone as they lie there."""
    return {path.name: path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}


def make_home(folder: Path) -> Path:
    """A project folder with copies of the notebooks and the clone's data."""
    home = folder / "home"
    copytree(ROOT / "notebooks", home / "notebooks")
    (home / "data").symlink_to(ROOT / "data")
    (home / "empty.ipynb").write_text(json.dumps(EMPTY))
    for name, values in SETTINGS.items():
        path = folder / "settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    return home


@contextmanager
def server(home: Path) -> Iterator[tuple[str, str]]:
    """JupyterLab on a free port, with nobody's settings; its address and token."""
    folder, token = home.parent, secrets.token_hex(16)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {"HOME": "user", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "share", "JUPYTER_RUNTIME_DIR": "run",
           "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "IPYTHONDIR": "ipython",
           "LNSIM_HOME": "home"}  # fmt: skip
    for name in own.values():
        (folder / name).mkdir(exist_ok=True)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {name: str(folder / place) for name, place in own.items()}
    environment |= {"PYTHONPATH": path, "JUPYTER_TOKEN": token}
    command = [sys.executable, "-m", "jupyterlab", *OPTIONS, f"--port={port}", f"--ServerApp.root_dir={home}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log, start_new_session=True)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url, token, process, folder / "log")
        yield url, token
    finally:
        process.send_signal(signal.SIGTERM)  # it shuts its kernels down
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(url: str, token: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers; SystemExit with its last words when it ends before."""
    for _ in range(600):
        try:
            with urlopen(f"{url}/api/status?token={token}", timeout=5):
                return
        except (URLError, OSError):
            if process.poll() is not None:
                break
            time.sleep(0.2)
    raise SystemExit(f"JupyterLab does not answer: {log.read_text('utf-8', 'replace')[-2000:]}")


def check_notebook(lab: Lab, path: str) -> Iterator[str]:
    """Run all cells of a notebook as it is, and look at what it shows."""
    found: list[str] = []
    with lab.opened(path, found) as page:
        n_cells = page.locator(".jp-Notebook .jp-CodeCell").count()
        run_all(page)
        facts = page.evaluate(FACTS)
    yield from found
    yield from judge(facts)
    if facts["numbers"] != [f"[{number}]:" for number in range(1, n_cells + 1)]:
        yield f"its {n_cells} cells have the numbers {' '.join(facts['numbers'])}"
    if not facts["images"]:
        yield "it shows no figure"


def run_all(page: Page) -> None:
    """Run > Run All Cells, until the kernel is idle or a cell shows an error."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(
        """() => document.querySelector(
          '.jp-Notebook :is([data-mime-type$="jupyter.error"], [data-mime-type$="jupyter.stderr"])') ||
        [...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')]
          .every(p => /\\[\\d+\\]/.test(p.textContent))"""
    )
    page.wait_for_function(IDLE)


def check_change(lab: Lab, path: str) -> Iterator[str]:
    """Change one cell of a notebook, the mean over layers to the median, and see the table follow."""
    import lnsim

    model = lnsim.load("smollm2-135m-instruct")
    cells = lnsim.cells({"m": model}, [("m", "m")], ["pre_attention"])
    cosines = cells[(cells.layer_a == 0) & (cells.layer_b != 0)].cosine
    before, after = f"{cosines.mean():.3f}", f"{cosines.median():.3f}"
    found: list[str] = []
    with lab.opened(path, found) as page:
        cell = page.locator(".jp-Notebook .jp-CodeCell").filter(has_text=CHANGED[0])
        text = "\n".join(cell.locator(".cm-line").all_inner_texts())
        if CHANGED[0] not in text:
            found.append(f"no cell has {CHANGED[0]!r}")
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        page.keyboard.insert_text(text.replace(*CHANGED))
        run_all(page)
        rows = page.locator(".jp-Notebook .jp-OutputArea-output tr").filter(has_text="SmolLM2")
        said = " ".join(rows.filter(has_text="pre-attention").all_inner_texts())
        if before == after or after not in said:
            found.append(f"with the median the row of SmolLM2 is {said[:200]!r}; expected {after} in it")
        facts = page.evaluate(FACTS)
    yield from found
    yield from judge(facts)


def judge(facts: dict[str, list[str] | int]) -> Iterator[str]:
    """Errors, and pictures that are not painted."""
    for text in facts["errors"]:  # type: ignore[union-attr]
        yield f"a cell shows an error: {text!r}"
    if facts["blank"]:
        yield f"{facts['blank']} of {facts['images']} pictures are not painted"


def check_by_hand(lab: Lab, path: str) -> Iterator[str]:
    """Type into an empty notebook: a model as a table, a role and a layer by Tab, a comparison with its figure."""
    found: list[str] = []
    with lab.opened(path, found) as page:
        run_cell(page, 'import lnsim\nvectors = lnsim.load("all-minilm-l6-v2")\nvectors')
        table = page.locator(".jp-Notebook .jp-OutputArea-output table").first
        table.wait_for()
        said = table.inner_text()
        if "post_attention" not in said or "384" not in said:
            found.append(f"vectors show {said[:200]!r}")
        if "post_mlp" not in completed(page, 'vectors["post_m', "post_mlp"):
            found.append("Tab does not complete a role")
        run_cell(page, 'role = vectors["post_mlp"]\nrole')
        if "[5" not in completed(page, "role[", "5").replace(" ", ""):
            found.append("Tab does not offer a layer's number")
        run_cell(page, 'pair = lnsim.compare(vectors, "sre-minilm-l6", n_permutations=1999)\npair')
        run_cell(page, "pair.plot()")
        page.locator(".jp-Notebook .jp-OutputArea-output img").first.wait_for()
        page.wait_for_function(IDLE)
        facts = page.evaluate(FACTS)
        if facts["images"] != 1:
            found.append(f"a comparison draws {facts['images']} figures, expected one")
        if "Verdict: Strong shared-origin signal" not in page.locator(".jp-Notebook").inner_text():
            found.append("a comparison shows no verdict")
    yield from found
    yield from judge(facts)


def run_cell(page: Page, text: str) -> None:
    """Replace the text of the last cell and run it, which adds an empty one."""
    write(page, text)
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    n = cells.count()
    page.keyboard.press("Shift+Enter")
    cells.nth(n).wait_for()
    page.wait_for_function(
        "n => /\\[\\d+\\]/.test(document.querySelectorAll('.jp-Notebook .jp-InputPrompt')[n].textContent)", arg=n - 1
    )


def write(page: Page, text: str) -> None:
    """Put a text into the last cell instead of what stands there."""
    page.locator(".jp-Notebook .jp-CodeCell").last.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def completed(page: Page, text: str, wanted: str) -> str:
    """The text of the last cell after Tab; where several completions are offered, the one wanted is chosen."""
    write(page, text)
    page.keyboard.press("Tab")
    editor, offered = page.locator(".jp-Notebook .jp-CodeCell .cm-content").last, page.locator(".jp-Completer-item")
    page.wait_for_function(
        """text => document.querySelector('.jp-Completer-item') ||
        [...document.querySelectorAll('.jp-Notebook .jp-CodeCell .cm-content')].at(-1).innerText !== text""",
        arg=text,
    )
    if offered.count():
        offered.filter(has_text=wanted).first.click()
    return editor.inner_text()


if __name__ == "__main__":
    sys.exit(main())
