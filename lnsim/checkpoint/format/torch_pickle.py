"""This module reads the pickle of a state dict without unpickling it: nothing is imported, and nothing is called.

A stack machine for the opcodes of Python's pickletools that ``torch.save`` writes for dicts of tensors. A name of
Python is a text here, and stands for itself; only those in ``_CALLS`` may be "called", and of those each gives a plain
value. Any other name or opcode ends the reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import calcsize, unpack_from
from typing import Any

from lnsim.checkpoint.format.header_json import FORMATS, quoted
from lnsim.errors import HeaderError

_STORAGES: Mapping[str, str] = FORMATS["torch"]["storages"]
_DTYPES: Mapping[str, str] = FORMATS["torch"]["dtypes"]
_NESTED = ("state_dict", "model_state_dict", "model", "module")  # where training code puts the state dict
_MOST_DIMENSIONS = 16
_MOST_MADE = 1_000_000  # dicts, lists and tuples: five are made of a tensor


@dataclass(frozen=True, slots=True)
class Name:
    """A global name that the pickle asks for."""

    text: str


@dataclass(frozen=True, slots=True)
class Storage:
    """A storage by its key; an empty dtype is told by the tensor."""

    dtype: str
    key: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as the pickle describes it: where in which storage, in values."""

    dtype: str
    key: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def contiguous(self) -> bool:
        """Whether its values lie one behind the other, the last dimension the fastest."""
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size > 1 and stride != step:
                return False
            step *= size
        return True


def state_dict(data: bytes) -> dict[str, Tensor]:
    """The tensors of a pickled state dict, by name; HeaderError where it is none, or asks for anything else."""
    found = _Machine(data).run()
    if not isinstance(found, dict):
        raise HeaderError(f"a dict of tensors was expected in data.pkl, found {type(found).__name__}.")
    for one in (found, *(found.get(key) for key in _NESTED)):
        tensors = _tensors(one)
        if tensors:
            return tensors
    raise HeaderError(f"a dict of tensors was expected in data.pkl, found the keys {list(found)[:8]!s:.200}.")


def _tensors(value: Any) -> dict[str, Tensor]:
    there = value.items() if isinstance(value, dict) else ()
    return {key: one for key, one in there if isinstance(key, str) and isinstance(one, Tensor)}


def _rebuilt(args: tuple[Any, ...]) -> Tensor:
    """What ``_rebuild_tensor_v2`` and its kin make of a storage."""
    storage, offset, shape, strides = (*args, None, None, None, None)[:4]
    dtype = args[6] if len(args) > 6 and isinstance(args[6], Name) else None
    whole = isinstance(storage, Storage) and isinstance(shape, tuple) and isinstance(strides, tuple)
    if not whole or len(shape) != len(strides) or len(shape) > _MOST_DIMENSIONS:
        raise HeaderError("a storage, an offset, a shape and as many strides were expected of a tensor.")
    numbers = (offset, *shape, *strides)
    if not all(isinstance(one, int) and 0 <= one < 1 << 48 for one in numbers):
        raise HeaderError("whole numbers that a machine can count were expected as sizes of a tensor.")
    named = storage.dtype or (_DTYPES.get(dtype.text.removeprefix("torch "), dtype.text) if dtype else "unknown")
    return Tensor(named, storage.key, offset, shape, strides)


def _first(args: tuple[Any, ...]) -> Any:
    return args[0] if args else None


def _of_type(args: tuple[Any, ...]) -> Any:
    """What ``_rebuild_from_type_v2`` makes: a tensor by another of these calls."""
    if len(args) < 3 or not isinstance(args[0], Name) or not isinstance(args[2], tuple):
        raise HeaderError("a call that makes a tensor was expected of a tensor's subclass.")
    return _called(args[0], args[2])


_CALLS: Mapping[str, Callable[[tuple[Any, ...]], Any]] = {
    "collections OrderedDict": lambda args: {},
    "torch._utils _rebuild_tensor": _rebuilt,
    "torch._utils _rebuild_tensor_v2": _rebuilt,
    "torch._utils _rebuild_tensor_v3": _rebuilt,
    "torch._utils _rebuild_parameter": _first,
    "torch._utils _rebuild_parameter_with_state": _first,
    "torch._tensor _rebuild_from_type_v2": _of_type,
    "torch Size": _first,
    "torch device": _first,
    "torch.serialization _get_layout": _first,
}


def _is_allowed(name: str) -> bool:
    module, _, what = name.partition(" ")
    if module == "torch" and what in (*_DTYPES, "Tensor"):
        return True
    if module in ("torch", "torch.storage") and what.endswith("Storage"):
        return what.removesuffix("Storage") in (*_STORAGES, "Typed")
    return name in _CALLS or name == "torch.nn.parameter Parameter"


def _called(name: Any, args: Any) -> Any:
    if not isinstance(name, Name) or name.text not in _CALLS or not isinstance(args, tuple):
        told = quoted(name.text) if isinstance(name, Name) else f"a {type(name).__name__}"
        raise HeaderError(f"a call that a state dict needs was expected in data.pkl, found {told}.")
    return _CALLS[name.text](args)


_MARK = Name("MARK")
_EMPTY: Mapping[int, Callable[[], Any]] = {0x5D: list, 0x7D: dict, 0x29: tuple, 0x8F: list}
_CONSTANTS: Mapping[int, Any] = {0x4E: None, 0x88: True, 0x89: False}
_NUMBERS: Mapping[int, str] = {0x4B: "<B", 0x4D: "<H", 0x4A: "<i", 0x47: ">d"}
_TEXTS: Mapping[int, str] = {0x8C: "<B", 0x58: "<I", 0x8D: "<Q", 0x43: "<B", 0x42: "<I", 0x8E: "<Q"}
_BYTES = (0x43, 0x42, 0x8E)
_PUTS: Mapping[int, str] = {0x71: "<B", 0x72: "<I"}
_GETS: Mapping[int, str] = {0x68: "<B", 0x6A: "<I"}
_TUPLES: Mapping[int, int] = {0x85: 1, 0x86: 2, 0x87: 3}


class _Machine:
    """The stack, the memo and the place in the pickle."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.made = data, 0, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        while True:
            code = self.take("<B")
            if code == 0x2E:  # STOP
                return self.pop()
            self.step(code)

    def take(self, kind: str) -> Any:
        size = calcsize(kind)
        if self.at + size > len(self.data):
            raise HeaderError(f"data.pkl ends at its byte {len(self.data)} without an end.")
        (value,) = unpack_from(kind, self.data, self.at)
        self.at += size
        return value

    def raw(self, n_bytes: int) -> bytes:
        if self.at + n_bytes > len(self.data):
            raise HeaderError(f"data.pkl ends at its byte {len(self.data)}, within a text of {n_bytes} bytes.")
        self.at += n_bytes
        return self.data[self.at - n_bytes : self.at]

    def line(self) -> str:
        """The text up to the end of a line."""
        end = self.data.find(b"\n", self.at, self.at + 300)
        if end < 0:
            raise HeaderError("a name of at most 300 bytes was expected in data.pkl.")
        text, self.at = self.data[self.at : end].decode("utf-8", "replace"), end + 1
        return text

    def pop(self) -> Any:
        if not self.stack:
            raise HeaderError("data.pkl takes more values than it gives.")
        return self.stack.pop()

    def marked(self) -> list[Any]:
        """The values behind the last mark."""
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                found = self.stack[place + 1 :]
                del self.stack[place:]
                return found
        raise HeaderError("data.pkl has no mark where it needs one.")

    def step(self, code: int) -> None:
        self.made += code in _EMPTY or code in _TUPLES or code == 0x74
        if self.made > _MOST_MADE:
            raise HeaderError(f"at most {_MOST_MADE} dicts, lists and tuples were expected in data.pkl.")
        if code in _NUMBERS:
            self.stack.append(self.take(_NUMBERS[code]))
        elif code in _TEXTS:
            raw = self.raw(self.take(_TEXTS[code]))
            self.stack.append(raw if code in _BYTES else raw.decode("utf-8", "replace"))
        elif code in _PUTS:
            self.memo[self.take(_PUTS[code])] = self.top()
        elif code in _GETS:
            if (number := self.take(_GETS[code])) not in self.memo:
                raise HeaderError(f"data.pkl takes value {number}, which it never gave.")
            self.stack.append(self.memo[number])
        elif code in _CONSTANTS:
            self.stack.append(_CONSTANTS[code])
        elif code in _EMPTY:
            self.stack.append(_EMPTY[code]())
        elif code in _TUPLES:
            self.stack.append(tuple(reversed([self.pop() for _ in range(_TUPLES[code])])))
        elif code in _OPCODES:
            _OPCODES[code](self)
        else:
            raise HeaderError(f"an opcode of a state dict was expected in data.pkl, found {code:#04x}.")

    def top(self) -> Any:
        """The last value, left where it is."""
        self.stack.append(value := self.pop())
        return value

    def name(self, text: str) -> None:
        """Put a name on the stack; HeaderError for one that no state dict needs."""
        if not _is_allowed(text):
            raise HeaderError(
                f"names that a state dict needs were expected in data.pkl, found {quoted(text.replace(' ', '.'))}: the "
                f"file would run code when it is unpickled. Nothing of it was run."
            )
        self.stack.append(Name(text))

    def stack_name(self) -> None:
        """A name whose module and own part are the last two values."""
        what, module = self.pop(), self.pop()
        if not isinstance(what, str) or not isinstance(module, str):
            raise HeaderError("a name in two texts was expected in data.pkl.")
        self.name(f"{module[:200]} {what[:200]}")

    def items(self, values: list[Any]) -> None:
        """Put keys and values into the last dict; keys that are no texts or numbers are left out."""
        target = self.top()
        if not isinstance(target, dict) or len(values) % 2:
            raise HeaderError("keys and values of a dict were expected in data.pkl.")
        target |= {
            key: value for key, value in zip(values[::2], values[1::2], strict=True) if isinstance(key, str | int)
        }

    def storage(self) -> None:
        """A persistent id: ``('storage', type, key, location, number of values)``."""
        told = self.pop()
        if not isinstance(told, tuple) or len(told) < 4 or told[0] != "storage" or not isinstance(told[1], Name):
            raise HeaderError(f"a storage was expected in data.pkl, found a {type(told).__name__} of another kind.")
        kind = told[1].text.partition(" ")[2].removesuffix("Storage")
        if kind not in _STORAGES or not isinstance(told[2], str):
            raise HeaderError(f"a storage of a known type was expected in data.pkl, found {quoted(told[1].text)}.")
        self.stack.append(Storage(_STORAGES[kind], told[2]))

    def long(self) -> None:
        self.stack.append(int.from_bytes(self.raw(self.take("<B")), "little", signed=True))

    def reduce(self) -> None:
        args = self.pop()
        self.stack.append(_called(self.pop(), args))

    def append(self, values: list[Any]) -> None:
        if not isinstance(target := self.top(), list):
            raise HeaderError("a list was expected in data.pkl.")
        target += values


_OPCODES: Mapping[int, Callable[[_Machine], object]] = {
    0x80: lambda m: m.take("<B"),  # PROTO
    0x95: lambda m: m.take("<Q"),  # FRAME
    0x28: lambda m: m.stack.append(_MARK),
    0x74: lambda m: m.stack.append(tuple(m.marked())),  # TUPLE
    0x63: lambda m: m.name(f"{m.line()} {m.line()}"),  # GLOBAL
    0x93: _Machine.stack_name,  # STACK_GLOBAL
    0x51: _Machine.storage,  # BINPERSID
    0x52: _Machine.reduce,
    0x62: _Machine.pop,  # BUILD: attributes, such as the versions of modules, are left out
    0x73: lambda m: m.items(list(reversed([m.pop(), m.pop()]))),  # SETITEM
    0x75: lambda m: m.items(m.marked()),  # SETITEMS
    0x61: lambda m: m.append([m.pop()]),  # APPEND
    0x65: lambda m: m.append(m.marked()),  # APPENDS
    0x90: lambda m: m.append(m.marked()),  # ADDITEMS
    0x94: lambda m: m.memo.update({len(m.memo): m.top()}),  # MEMOIZE
    0x8A: _Machine.long,  # LONG1
    0x30: _Machine.pop,
}
