"""The table of attacks: what a hostile repo holds, and what `lnsim extract` must make of it.

`test_attacks.py` runs each row on a folder and behind the stand-in for the Hub; `readme_tables.py` shows them in the
README.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from fault_table import OneError
from hub_stand_in import virtual_shard
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, header_bytes, llama_tensors

from lnsim.errors import FormatError, HeaderError, LnsimError, RoleError, UnsupportedDtypeError

__all__ = ["BOMBS", "HUGE", "LONGER", "NORMS", "ROWS", "TENSORS", "Attack", "Files", "Reads"]

PLACES = ("folder", "hub")
Files = Mapping[str, Any]
"""Content by name: bytes, or a virtual file."""
TENSORS = llama_tensors()
NORMS = {name: array.tobytes() for name, array in TENSORS.items() if "norm" in name}
_INDEX = "model.safetensors.index.json"
_SHARD = "model-00001-of-00002.safetensors"
_ODD = "model.layers.1.input_layernorm.weight"


@dataclass(frozen=True)
class Reads:
    """The norms are read bit for bit; the reader is given a note that holds ``note``."""

    text: str
    stored: Mapping[str, bytes] | None = None  # by tensor name; those of the plain model where None
    note: str = ""


@dataclass(frozen=True)
class Attack:
    """One row: what is attacked, what the repo holds, what must come of it, and where it is read from."""

    group: str
    holds: str
    outcome: Reads | OneError
    files: Callable[[], Files]
    everything: bool = False  # read with --all
    places: tuple[str, ...] = PLACES


def _refuses(
    group: str, holds: str, kind: type[LnsimError], says: str, files: Callable[[], Files], places: Any = PLACES
) -> Attack:
    return Attack(group, holds, OneError(kind, says), files, places=places)


# Headers


def _raw(text: str, n_bytes: int = 0, length: int | None = None) -> Callable[[], Files]:
    return lambda: {
        "config.json": json.dumps(LLAMA_CONFIG).encode(),
        "model.safetensors": header_bytes(text, length) + bytes(n_bytes),
    }


def _entry(shape: str, offsets: str = "[0,0]", name: str = "model.norm.weight") -> str:
    return f'"{name}":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}'


def _many_tensors() -> Files:
    """The model's file, with 100,000 tensors of one byte behind its own."""
    plain = file_bytes(TENSORS, padding=0)
    length = int.from_bytes(plain[:8], "little")
    size = len(plain) - 8 - length
    more = "".join(
        f',"model.layers.0.mlp.experts.{n}.up_proj.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{n},{n + 1}]}}'
        for n in range(size, size + 100_000)
    )
    text = plain[8 : 8 + length - 1].decode() + more + "}"
    return _raw(text)() | {"model.safetensors": header_bytes(text) + plain[8 + length :] + bytes(100_000)}


def _many_headers() -> Files:
    shard = header_bytes("{}" + " " * 3_000_000)
    return {f"model-{number:05d}-of-00040.safetensors": shard for number in range(1, 41)}


def _object(*entries: str) -> str:
    return "{" + ",".join(entries) + "}"


def _refused(says: str, holds: str, files: Callable[[], Files]) -> Attack:
    return _refuses("header", holds, HeaderError, says, files)


_OVER = "at most 100000000 bytes was expected, found "
_FOUR = _entry("[1]", "[0,4]")
_HUGE = f"[{','.join([str(2**63)] * 200)}]"
HEADERS = (
    _refused(f"{_OVER}{2**63}", "a length of 2^63", _raw("{}", length=2**63)),
    _refused(f"{_OVER}100000001", "a length of 100,000,001", _raw("{}", length=100_000_001)),
    _refused("past the end of a", "a length one byte over the file", _raw("{}", length=3)),
    _refused("past the end of a", "a length of 100 MB in a file of 10 bytes", _raw("{}", length=10**8)),
    _refused("nested too deeply", "100,000 lists one in the other", _raw('{"a":' + "[" * 100_000)),
    _refused("overflows 64 bits", "a shape whose product is 4 when 64 bits overflow",
             _raw(_object(_entry(f"[{2**62 + 1},4]", "[0,16]")), 16)),
    _refused("overflows 64 bits", "a shape of 200 sizes of 2^63", _raw(_object(_entry(_HUGE, "[0,4]")), 4)),
    _refused("shape must list whole numbers", "a negative size", _raw(_object(_entry("[-1]", "[0,4]")), 4)),
    _refused("its tensors end at byte", "offsets up to 2^60", _raw(_object(_entry(f"[{2**58}]", f"[0,{2**60}]")), 4)),
    _refused("an overlap", "two tensors over the same bytes", _raw(_object(_FOUR, _entry("[1]", "[0,4]", "b")), 4)),
    _refused("stands there twice; its bytes would be ambiguous", "two tensors of one name",
             _raw(_object(_FOUR, _entry("[1]", "[4,8]")), 8)),
    _refused("is no JSON, or more than 1048576 bytes", "a tensor's entry with 2 MB of lists",
             _raw('{"a":{"x":[[]' + ",[]" * 700_000 + "]}}")),
    _refuses("header", "40 shards with headers of 3 MB of spaces each", HeaderError,
             "bytes and 300000 tensors were expected in all shards together", _many_headers, places=("folder",)),
    Attack("header", "100,000 tensors beside the norms", Reads("reads the norms, in under 2 s of processor time"),
           _many_tensors),
)  # fmt: skip


# Names of tensors

STRANGE = {
    "`../`": "../../../etc/passwd", "an absolute path": "/etc/passwd", "a URL": "https://evil.example/?q=",
    "NUL": "a\x00b", "line breaks": "a\r\nlnsim: all is well\n", "ANSI escapes": "\x1b[31m\x1b]0;title\x07",
    "C1 controls": "\x9b31m", "RTL marks": "\u202egnp.\u2067a", "HTML": "<script>alert(1)</script>",
    "a template": "${HOME}`id`{{7*7}}%n", "10 kB": "x" * 10_000, "10,000 dots": "." * 10_000,
    "a noncharacter": "\ufdd0\U000e0001",
}  # fmt: skip


def _with(more: Mapping[str, Any], config: Mapping[str, Any] = LLAMA_CONFIG) -> Callable[[], Files]:
    return lambda: checkpoint_files(TENSORS | dict(more), config)


_ONES = np.ones(16, ml_dtypes.bfloat16)


def _named(holds: str, name: str, everything: bool = False) -> Attack:
    """A norm of a strange name beside the model's own; ``--all`` reads it too."""
    full = f"{name}.norm.weight"
    how = "reads the model's norms, and this one under its name as text" if everything else "reads the model's norms"
    stored = NORMS | ({full: _ONES.tobytes()} if everything else {})
    said = f"a norm whose name holds {holds}" + (", read with `--all`" if everything else "")
    return Attack("tensor name", said, Reads(how, stored), _with({full: _ONES}), everything)


def _numbered(number: str, holds: str) -> Attack:
    name = f"model.layers.{number}.input_layernorm.weight"
    reads = Reads("reads the model's norms; this one is no layer", note="Read as other")
    return Attack("tensor name", f"a layer number of {holds}", reads, _with({name: _ONES}))


NAMES = (
    *(_named(holds, name) for holds, name in STRANGE.items()),
    *(_named(holds, name, everything=True) for holds, name in STRANGE.items()),
    _numbered("1000000", "10^6"),
    _numbered("9" * 5000, "5,000 digits"),
    _numbered("\u0663", "another script"),
    _numbered("01", "1 with a leading zero"),
    Attack("tensor name", "layers 4,000 to 9,999 that the config does not promise",
           Reads("reads the model's norms; those are beyond its blocks", note="beyond the 3 blocks of the config"),
           _with({f"model.layers.{n}.input_layernorm.weight": _ONES for n in range(4_000, 10_000)})),
    _refuses("tensor name", "the blocks twice, under two prefixes", RoleError, "While giving roles to the norms of",
             _with({name.removeprefix("model."): array for name, array in TENSORS.items()})),
)  # fmt: skip


# Index and names of files


def _index(weight_map: Any) -> Callable[[], Files]:
    files = checkpoint_files(TENSORS, LLAMA_CONFIG, 2)
    return lambda: files | {_INDEX: json.dumps({"weight_map": weight_map}).encode()}


def _leading(holds: str, shard: Any) -> Attack:
    says, files = "should lie in a safetensors file of the same checkpoint", _index({"model.norm.weight": shard})
    return _refuses("index", f"a tensor that should lie in {holds}", FormatError, says, files)


INDEX = (
    _leading("`../../evil.safetensors`", "../../evil.safetensors"),
    _leading("a URL", "https://evil.example/model.safetensors"),
    _leading("a path with backslashes", "..\\evil.safetensors"),
    _leading("a name with NUL", "a\x00.safetensors"),
    _leading("a name with an RTL mark", "\u202esrosnetefas.safetensors"),
    _leading("a name of 10 kB", "x" * 10_000 + ".safetensors"),
    _leading("a pickle", "pytorch_model.bin"),
    _leading("`config.json`", "config.json"),
    _leading("`.safetensors`", ".safetensors"),
    _leading("a list", [_SHARD]),
    _refuses("index", "no weight map", FormatError, "an object 'weight_map'", _index([])),
    _refuses("index", "a tensor of 10 kB of name that no shard holds", HeaderError, "should lie in",
             _index({"\x1b[31m" + "x" * 10_000: _SHARD})),
    _refuses("index", "10 MB of empty lists", FormatError, "JSON values were expected",
             lambda: (checkpoint_files(TENSORS, LLAMA_CONFIG,
             2) | {_INDEX: b'{"weight_map":[[]' + b",[]" * 3_500_000 + b"]}"})),
    _refuses("index", "100,000 lists one in the other", FormatError, "JSON was expected",
             lambda: checkpoint_files(TENSORS, LLAMA_CONFIG, 2) | {_INDEX: b"[" * 100_000}),
    _refuses("file name", "its only weights in a file with ANSI escapes in its name", FormatError,
             "was expected, found", lambda: {"config.json": b"{}", "\x1b[31m.safetensors": file_bytes(TENSORS)}),
    Attack("file name", "a second safetensors file whose name holds a line break", Reads("reads the model's norms"),
           lambda: checkpoint_files(TENSORS, LLAMA_CONFIG) | {"a\nb.safetensors": b"x"}),
)  # fmt: skip


# Config


def _config(**changes: Any) -> Callable[[], Files]:
    return lambda: checkpoint_files(TENSORS, LLAMA_CONFIG | changes)


def _raw_config(text: bytes) -> Callable[[], Files]:
    return lambda: checkpoint_files(TENSORS, LLAMA_CONFIG) | {"config.json": text}


def _blocks(value: Any, holds: str) -> Attack:
    says = "expected a whole number of blocks from 0 to 10000"
    return _refuses("config", f"`num_hidden_layers` {holds}", RoleError, says, _config(num_hidden_layers=value))


def _nested(depth: int, around: str = "text_config") -> bytes:
    head = json.dumps(LLAMA_CONFIG).encode()[:-1]
    return head + b"," + (f'"{around}":{{'.encode() * depth) + b"}" * (depth + 1)


PLAIN = Reads("reads the norms")
CONFIG = (
    _blocks(10_001, "10,001"),
    _blocks(-1, "-1"),
    _blocks(1.5, "1.5"),
    _blocks("x\x1b[31m", "a text with ANSI escapes"),
    _blocks(True, "`true`"),
    _blocks([3], "a list"),
    Attack("config", "`num_hidden_layers` `null`",
           Reads("reads the norms, blocks counted", note="does not tell the number of"),
           _config(num_hidden_layers=None)),
    Attack("config", "`num_hidden_layers` 10,000 for three layers",
           Reads("reads the norms; 9,997 layers are named as missing"), _config(num_hidden_layers=10_000)),
    Attack("config", "`hidden_size` a text", PLAIN, _config(hidden_size="<b>16</b>")),
    Attack("config", "`hidden_size` 10^400", PLAIN, _config(hidden_size=10**400)),
    Attack("config", "`model_type` a list", PLAIN, _config(model_type=["llama"])),
    _refuses("config", "`model_type` a list, and no known class", RoleError, "has no table",
             _config(model_type=["llama"], architectures=[7, None, "../x"])),
    *(_refuses("config", f"`model_type` with {holds}", RoleError, "has no table",
        _config(model_type=f"llama{text}", architectures=[])) for holds, text in STRANGE.items()),
    _refuses("config", "`model_type` half a surrogate pair", RoleError, "has no table",
             _raw_config(b'{"model_type":"\\ud800"}')),
    Attack("config", "half a surrogate pair in a key it needs not", PLAIN, _config(**{"a\ud800": "\ud800"})),
    Attack("config", "900 text configs one in the other", PLAIN, _raw_config(_nested(900))),
    Attack("config", "900 objects one in the other", PLAIN, _raw_config(_nested(900, "quantization_config"))),
    _refuses("config", "100,000 objects one in the other", FormatError, "JSON", _raw_config(_nested(100_000))),
    Attack("config", "NaN and infinities", PLAIN,
           _raw_config(json.dumps(LLAMA_CONFIG | {"eps": float("nan")}).encode())),
    _refuses("config", "a number of 5,000 digits", FormatError, "JSON", _raw_config(b'{"a":' + b"9" * 5000 + b"}")),
    _refuses("config", "no UTF-8", FormatError, "JSON was expected", _raw_config(b'{"a":"\xff\xfe\xfa"}')),
    _refuses("config", "10 MB of empty objects", FormatError, "JSON values were expected",
             _raw_config(b'{"a":[{}' + b",{}" * 3_500_000 + b"]}")),
)  # fmt: skip


# Weights


def _weights(holds: str, change: Callable[[Any], Any], dtype: Any, note: str) -> Attack:
    tensors = llama_tensors(dtype=dtype)
    name = "model.layers.1.input_layernorm.weight"
    tensors[name] = change(tensors[name].copy())
    stored = {key: array.tobytes() for key, array in tensors.items() if "norm" in key}
    text = "reads the bits as they are, and says so" if note else "reads the bits as they are"
    return Attack("weights", holds, Reads(text, stored, note), lambda: checkpoint_files(tensors, LLAMA_CONFIG))


def _set(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[3] = value
        return array

    return change


def _bits(pattern: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array.view(f"u{array.itemsize}")[:2] = pattern
        return array

    return change


def _sized(shape: int | tuple[int, ...], dtype: Any = ml_dtypes.bfloat16, every: bool = False) -> Callable[[], Files]:
    names = [name for name in NORMS if every or name == _ODD]
    return _with({name: np.ones(shape, dtype) for name in names})


def _half_bytes() -> Files:
    text = "{" + _entry("[2]", "[0,1]", "model.layers.0.input_layernorm.weight").replace("F32", "F4") + "}"
    return _raw(text, 1)()


def _huge_norm() -> Files:
    entries = [(name, "BF16", (16,), 32) for name in NORMS if name != "model.norm.weight"]
    huge = [("model.norm.weight", "BF16", (10**9,), 2 * 10**9)]
    shard = virtual_shard([*entries, *huge], lambda name, n_bytes: bytes(n_bytes))
    return {"config.json": json.dumps(LLAMA_CONFIG).encode(), "model.safetensors": shard}


_NOT_FINITE = "Role 'pre_attention': 1 values are not finite, in layers 1."
WEIGHTS = (
    _weights("NaN in a BF16 norm", _set(float("nan")), ml_dtypes.bfloat16, _NOT_FINITE),
    _weights("minus infinity in an F16 norm", _set(float("-inf")), np.float16, _NOT_FINITE),
    _weights("signalling NaNs in an F32 norm", _bits(0x7F800001), np.float32, "2 values are not finite, in layers 1"),
    _weights("a value beyond float32 in an F64 norm", _set(1e300), np.float64, _NOT_FINITE),
    _weights("a norm of minus zeros", lambda array: -np.zeros_like(array), np.float32,
             "every value is zero in layers 1"),
    _weights("denormal numbers of BF16", _bits(1), ml_dtypes.bfloat16, ""),
    _refuses("weights", "a layer of another width", RoleError,
             "all layers should have one width, found 2 tensors of 16 channels, 1 tensors of 24 channels", _sized(24)),
    Attack("weights", "a layer of another dtype",
           Reads("reads the norms, each in its own dtype, with a note that they are widened",
           NORMS | {_ODD: np.ones(16, np.float32).tobytes()},
           "its layers are stored in several dtypes (2 in BF16, 1 in F32); they are widened"), _sized(16, np.float32)),
    _refuses("weights", "norms without a channel", RoleError, "no channels", _sized(0, every=True)),
    _refuses("weights", "a norm of a billion channels", RoleError, "expected at most 1,048,576 values in a norm",
             _huge_norm, places=("hub",)),
    _refuses("weights", "norms of a dtype that is no number", UnsupportedDtypeError, "F4", _half_bytes),
)  # fmt: skip

ROWS = (*HEADERS, *NAMES, *INDEX, *CONFIG, *WEIGHTS)


# Memory


# A header of so many megabytes that hold one thing; what is said of it, at less than 256 MB in all.
HUGE = (
    (100, "spaces", "no norm-like names at all"),
    (100, "a metadata text", "no norm-like names at all"),
    (25, "a metadata text with an emoji", "at most 16777216 are read"),
    (25, "a metadata text of escapes", "more than 16777216 bytes"),
    (100, "an unknown key with empty objects", "more than 1048576 bytes"),
    (100, "lists one in the other", "nested too deeply"),
    (100, "tensors", "what it lists takes more than"),
    (100, "metadata keys", "what it lists takes more than"),
    (25, "one tensor's name", "at most 1048576 are read"),
    (25, "one tensor's shape", "more than 1048576 bytes"),
    (101, "spaces", "a length of at most 100000000 bytes was expected"),
)


# What answers with 10 GB of zeros in 10 MB of gzip, and its address.
BOMBS = {"the listing": r"/api/models/a/b$", "config.json": r"config\.json", "the index": r"index\.json"}
LONGER = "bytes were expected, the answer is longer"
