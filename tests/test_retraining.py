"""Tests of training the quick zoo anew, by a stand-in for the trainer: what is asked, read, and said on failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from lnsim.errors import NotebookError
from lnsim.study.retraining import NEEDS, retrained

ROOT = Path(__file__).resolve().parents[1]

TRAINER = """
import shutil, sys
from pathlib import Path
quick, _, out, _, work = sys.argv[1:]
assert quick == "--quick"
Path(out).mkdir(parents=True)
{body}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with no trainer yet."""
    (tmp_path / "data" / "studies").mkdir(parents=True)
    (tmp_path / "studies" / "zoo").mkdir(parents=True)
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    return tmp_path


def trainer(home: Path, body: str) -> None:
    (home / "studies" / "__init__.py").touch()
    (home / "studies" / "zoo" / "__init__.py").touch()
    (home / "studies" / "zoo" / "__main__.py").write_text(TRAINER.format(body=body))


def test_nothing_happens_where_it_is_not_wanted(home: Path) -> None:
    assert retrained(False) == {}


def test_a_missing_package_is_named_with_the_extra_that_has_it(home: Path) -> None:
    assert NEEDS == ("torch", "transformers")
    with pytest.raises(NotebookError, match=r'no no_such_a and no no_such_b. Install .* pip install -e "\.\[zoo\]"'):
        retrained(True, needs=("json", "no_such_a", "no_such_b"))


def test_a_project_without_the_trainer_is_an_error(home: Path) -> None:
    with pytest.raises(NotebookError, match=r"the project folder has no package 'studies.zoo'"):
        retrained(True, needs=())


def test_the_models_from_random_weights_are_read_and_the_others_left_out(home: Path) -> None:
    stored = ROOT / "data" / "vectors"
    lines = [f"shutil.copy({str(stored / 'zoo' / 'llama-prose-1.safetensors')!r}, Path(out) / 'mine.safetensors')"]
    lines += [f"shutil.copy({str(stored / 'small_models' / 'sre-minilm-l6.safetensors')!r}, out)"]
    trainer(home, "\n".join(lines))
    found = retrained(True, needs=())
    assert list(found) == ["mine"]
    assert found["mine"]["pre_mlp"].scale.shape == (6, 192)


def test_a_training_that_fails_is_an_error_with_its_last_words(home: Path) -> None:
    trainer(home, "print('first', file=sys.stderr); sys.exit('zoo: no room left')")
    with pytest.raises(NotebookError, match=r"'python -m studies.zoo --quick' ended with 1 and said 'zoo: no room"):
        retrained(True, needs=())


def test_a_training_that_leaves_no_model_is_an_error(home: Path) -> None:
    trainer(home, "")
    with pytest.raises(NotebookError, match="it ended well and left no model that began from random weights, of 0"):
        retrained(True, needs=())
