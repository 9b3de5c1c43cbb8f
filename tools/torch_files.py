"""Make the files of tests/data/torch with PyTorch (2.13 made those that are stored): python tools/torch_files.py"""

import collections
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parents[1] / "tests" / "data" / "torch"


def tensors() -> dict[str, torch.Tensor]:
    """A state dict of two blocks in BF16, the head tied to the embedding."""
    g = torch.Generator().manual_seed(0)
    found: dict[str, torch.Tensor] = collections.OrderedDict()
    found["model.embed_tokens.weight"] = torch.randn(8, 4, generator=g).to(torch.bfloat16)
    for layer in range(2):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"model.layers.{layer}.{norm}.weight"] = torch.randn(4, generator=g).to(torch.bfloat16)
    found["model.norm.weight"] = torch.randn(4, generator=g).to(torch.bfloat16)
    found["lm_head.weight"] = found["model.embed_tokens.weight"]
    return found


def main() -> None:
    """Write the files."""
    plain = tensors()
    base = torch.arange(12.0).reshape(3, 4)
    kinds = {
        "view": base[1], "half": base.half(), "double": base.double(), "long": torch.tensor(3), "byte": base.byte(),
        "bool": base > 4, "turned": base.t(), "complex": torch.zeros(2, dtype=torch.complex64), "int8": base.char(),
        "fp8": base.to(torch.float8_e4m3fn), "empty": torch.zeros(0, 4), "parameter": torch.nn.Parameter(base),
    }  # fmt: skip
    torch.save(plain, HERE / "plain.bin")
    torch.save(plain, HERE / "protocol_4.bin", pickle_protocol=4)
    torch.save({"state_dict": plain, "epoch": 3, "loss": 0.5, "betas": [1, (2, None)]}, HERE / "nested.bin")
    torch.save(torch.nn.LayerNorm(4).state_dict(), HERE / "module.bin")
    torch.save(kinds, HERE / "kinds.bin")
    torch.save(plain, HERE / "legacy.bin", _use_new_zipfile_serialization=False)
    torch.jit.script(torch.nn.LayerNorm(4)).save(str(HERE / "script.bin"))
    np.savez(
        HERE / "values.npz",
        **{name: one.contiguous().flatten().view(torch.uint8).numpy() for name, one in plain.items()},
    )


if __name__ == "__main__":
    main()
