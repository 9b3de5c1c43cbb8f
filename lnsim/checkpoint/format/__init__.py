"""How a checkpoint lies in files: the header of one, byte ranges, dtypes, and which files it consists of.

The other formats beside safetensors are known by the ending of a file's name.
"""

from collections.abc import Callable

from lnsim.checkpoint.format.gguf import FIRST_BYTES, gguf_header
from lnsim.checkpoint.format.header import Header
from lnsim.checkpoint.format.ranges import Ask
from lnsim.checkpoint.format.torch_zip import TAIL_BYTES, torch_header

# Makes a header of what it asks for, the first bytes and the size of a file, and its name for messages.
HeaderReader = Callable[[Ask, bytes, int, str], Header]
_OTHERS: dict[str, tuple[HeaderReader, int]] = {
    ".gguf": (gguf_header, FIRST_BYTES),
    ".bin": (torch_header, 2 * TAIL_BYTES),
}


def other_format(name: str) -> tuple[HeaderReader, int] | None:
    """What reads the header of a file of this name, and how many bytes it wants first; None for safetensors."""
    return next((found for ending, found in _OTHERS.items() if name.endswith(ending)), None)
