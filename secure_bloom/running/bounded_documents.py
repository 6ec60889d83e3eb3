"""Read and parse documents that others wrote, within the memory budget: JSON, TOML, texts of keys.

    parsed_json(text, "the key material")     what json.loads returns
    parsed_toml(text, "the policy")           what tomllib.loads returns
    with path.open("rb") as file: text = read_bounded(file, "the policy")

A document is refused for what it becomes in memory, before it is parsed.  A file is refused before
it is read whole: a sparse file can claim any size, and a device has no end.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Final

from secure_bloom.running.memory_budget import json_size, refuse_beyond

#: A text is in memory twice: its bytes, and its characters.
_TIMES: Final = 2
_PIECE: Final = 1 << 20
#: What tomllib takes for a table, for a value, and for each pair of the parts of a dotted key: it
#: builds the names of all tables around each part.
_TABLE, _VALUE, _PAIR = 1_000, 128, 6


def parsed_json(text: bytes | str, what: str, **options: Any) -> Any:
    """Return what :func:`json.loads` returns.

    Raises MemoryBudgetError for a text that takes more than the budget, and what json raises.
    """
    content = text.encode("utf-8", "replace") if isinstance(text, str) else text
    # json itself refuses anything that is neither bytes nor a text.
    if isinstance(content, bytes):
        refuse_beyond(json_size(content), what)
    return json.loads(text, **options)


def parsed_toml(text: str, what: str) -> dict[str, Any]:
    """Return what :func:`tomllib.loads` returns.

    Raises MemoryBudgetError for a text that takes more than the budget, and what tomllib raises.
    """
    import tomllib

    refuse_beyond(toml_size(text), what)
    return tomllib.loads(text)


def toml_size(text: str) -> int:
    """Return about how many bytes a TOML text takes while it is parsed.

    Characters inside of values count too, so that no parsing is needed.
    """
    size = _TIMES * len(text) + _TABLE * text.count("[")
    size += _VALUE * (text.count("=") + text.count(",") + text.count("{"))
    return size + sum(_PAIR * line.count(".") ** 2 for line in text.split("\n") if "." in line)


def read_bounded(file: BinaryIO, what: str) -> bytes:
    """Return all bytes of an open file.

    Raises MemoryBudgetError if the file has more bytes than the budget allows, or no end.
    """
    pieces, size = [], 0
    while piece := file.read(_PIECE):
        size += len(piece)
        refuse_beyond(_TIMES * size, what)
        pieces.append(piece)
    return b"".join(pieces)
