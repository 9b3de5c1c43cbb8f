"""This program trains the small roots that the rates of the test are counted on, and keeps their norm vectors.

    python -m studies.zoo.roots [--work DIR] [--out DIR] [--texts DIR]

Nobody can look up whether two models found in the wild are strangers, so how often the test is wrong is counted on
models that are strangers by construction: every one begins with random numbers of its own (but for the group that
shares them, which is the point of that group), reads the same text in batches of its own, and shares nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.numpy import save_file

from studies.zoo.keep import keep_norms
from studies.zoo.many import BATCH, CONTEXT, HEADS, HIDDEN, LAYERS, RATE, STEPS, Many, norms_of, train_many
from studies.zoo.texts import SOURCES, Text, fetch_texts, read_text

__all__ = ["GROUPS", "main"]

HERE = Path(__file__).resolve().parents[2]

GROUPS: Mapping[str, Many] = {
    "learned": Many("learned", tuple(range(1, 51)), tuple(range(1, 51))),
    "rotary": Many("rotary", tuple(range(1001, 1051)), tuple(range(1001, 1051))),
    "fixed": Many("fixed", tuple(range(2001, 2025)), tuple(range(2001, 2025))),
    "one-seed": Many("rotary", (3001,) * 12, tuple(range(3101, 3113))),
}
"""The groups by name: a seed of the first weights and one of the batches for each model."""

_CONFIGS: Mapping[str, dict[str, Any]] = {
    "learned": {"model_type": "gpt2", "n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS},
    "rotary": {
        "model_type": "gpt_neox", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "use_parallel_residual": False,
    },
    "fixed": {
        "model_type": "xglm", "d_model": HIDDEN, "num_layers": LAYERS, "attention_heads": HEADS,
        "scale_embedding": True,
    },
}  # fmt: skip
"""By positions, the config of the family whose norms stand in the same places and under these names."""

_NAMES = {
    "learned": {"attention": "transformer.h.{}.ln_1", "mlp": "transformer.h.{}.ln_2", "final": "transformer.ln_f"},
    "rotary": {
        "attention": "gpt_neox.layers.{}.input_layernorm", "mlp": "gpt_neox.layers.{}.post_attention_layernorm",
        "final": "gpt_neox.final_layer_norm",
    },
    "fixed": {
        "attention": "model.layers.{}.self_attn_layer_norm", "mlp": "model.layers.{}.final_layer_norm",
        "final": "model.layer_norm",
    },
}  # fmt: skip


def main(words: list[str] | None = None) -> int:
    """Train every group and keep its norms; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.zoo.roots", description="Train the small roots.")
    parser.add_argument(
        "--work", type=Path, default=HERE / "build" / "roots", metavar="DIR", help="checkpoints of norms"
    )
    parser.add_argument("--out", type=Path, default=HERE / "data" / "vectors" / "roots", metavar="DIR")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP", help="these groups")
    parser.add_argument("--texts", type=Path, default=HERE / "build" / "texts", metavar="DIR")
    options = parser.parse_args(words)
    torch.set_num_threads(1)  # the sums have one order
    torch.use_deterministic_algorithms(True)
    fetch_texts(options.texts)
    text = read_text("prose", options.texts)
    for group in options.only:
        many = GROUPS[group]
        begun = time.perf_counter()
        for name, loss in _made(group, many, text, options.work, options.out):
            print(f"{name}: {loss:.3f} nats a byte (unigrams {text.unigram_loss():.3f})", file=sys.stderr)
        print(json.dumps({"group": group, "models": len(many.seeds), "seconds": round(time.perf_counter() - begun)}))
    return 0


def _made(group: str, many: Many, text: Text, work: Path, out: Path) -> Iterator[tuple[str, float]]:
    weights, losses = train_many(many, text)
    for place, loss in enumerate(losses):
        name = f"{group}-{place + 1:02d}"
        folder = work / name
        folder.mkdir(parents=True, exist_ok=True)
        named = {_stored_name(many.positions, key): value for key, value in norms_of(weights, place).items()}
        save_file({key: value.copy() for key, value in named.items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(_CONFIGS[many.positions] | {"vocab_size": 256}))
        keep_norms(folder, name, _record(many, place, loss, text), out)
        yield name, loss


def _stored_name(positions: str, key: str) -> str:
    *layer, place, kind = key.split(".")
    return f"{_NAMES[positions][place].format(*layer)}.{kind}"


def _record(many: Many, place: int, loss: float, text: Text) -> dict[str, str]:
    source = SOURCES[text.name]
    record = {
        "architecture": _CONFIGS[many.positions]["model_type"], "kind": "root", "positions": many.positions,
        "text": text.name, "text_source": f"{source.requirement} sha256:{source.sha256}", "text_sha256": text.sha256,
        "seed": many.seeds[place], "batch_seed": many.batch_seeds[place], "steps": STEPS, "rate": RATE,
        "bytes_a_step": BATCH * CONTEXT, "gamma": "ones", "loss": loss, "unigram_loss": text.unigram_loss(),
        "trained_beside": len(many.seeds) - 1, "versions": f"torch {torch.__version__}",
    }  # fmt: skip
    return {f"zoo_{key}": str(value) for key, value in record.items()}


if __name__ == "__main__":
    sys.exit(main())
