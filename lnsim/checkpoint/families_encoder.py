"""This module holds the tables of encoders and encoder-decoders. How to read and add a line: see ``families.py``."""

from __future__ import annotations

from lnsim.checkpoint.families import family, stack

__all__ = ["ENCODERS"]

BERT_ROOTS = ("", "bert.", "roberta.", "model.")

ENCODERS = (
    family("bert", "bert roberta xlm-roberta camembert", stack("encoder", """
        embeddings.LayerNorm                        embedding
        encoder.layer.*.attention.output.LayerNorm  post_attention
        encoder.layer.*.output.LayerNorm            post_mlp
        """, norm="layernorm", bias=True, roots=BERT_ROOTS)),
)  # fmt: skip
