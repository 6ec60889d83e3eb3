"""Expected values of Paimon's own code, and their values and predicates as we write them."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

from secure_bloom.paimon import And, Comparison, DataType, Operator, Or
from secure_bloom.paimon.index_readers import Predicate
from testing import project
from testing.project import VECTORS

FOLDER = VECTORS / "paimon"
SHARED = project.SHARED / "vectors"


def load(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    return json.loads((folder / f"paimon_{name}.json").read_text(encoding="utf-8"))


def value_of(data_type: DataType, written: Any) -> Any:
    """A value of the vectors as ``hash_value`` takes it."""
    if written is None:
        return None
    match str(data_type.root):
        case "FLOAT":
            return struct.unpack(">f", bytes.fromhex(written))[0]
        case "DOUBLE":
            return struct.unpack(">d", bytes.fromhex(written))[0]
        case "BINARY" | "VARBINARY" | "BYTES":
            return base64.b64decode(written)
    return written


def types_of(schema: list[list[str]]) -> dict[str, DataType]:
    """The types of all columns, two keys of each map included, that have one here."""
    types = {}
    for name, text in schema:
        if text.startswith("MAP"):
            types |= {f"{name}[{key}]": DataType.parse("STRING") for key in "ab"}
        else:
            types[name] = DataType.parse(text)
    return types


_OPERATORS = {
    "in_leaf": Operator.IN,
    "notin": Operator.NOT_IN,
    "startswith": Operator.STARTS_WITH,
    "isnull": Operator.IS_NULL,
    "isnotnull": Operator.IS_NOT_NULL,
}


def predicate_of(written: list[Any], types: dict[str, DataType]) -> Predicate:
    """A predicate of the vectors."""
    name, *rest = written
    if name in ("and", "or"):
        parts = tuple(predicate_of(part, types) for part in rest)
        return And(parts) if name == "and" else Or(parts)
    column, *values = rest
    if name in ("in", "in_leaf", "notin"):
        (values,) = values
    return Comparison(
        column=column,
        operator=_OPERATORS.get(name) or Operator(name),
        values=tuple(value_of(types[column], value) for value in values),
    )
