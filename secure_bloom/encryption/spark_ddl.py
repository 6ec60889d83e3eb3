"""A schema of Spark -> its columns: from DDL, from JSON, or from a ``StructType``.

    id BIGINT NOT NULL, email STRING COMMENT 'of the person', tags ARRAY<STRING>,
    address STRUCT<zip: STRING, `street name`: STRING>, props MAP<STRING, DECIMAL(9, 2)>

The grammar is that of ``StructType.fromDDL``: SQL reference, "Data types".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.errors import PolicyError
from secure_bloom.running.bounded_documents import parsed_json

#: The path of a leaf, from the root's child down.
Path = tuple[str, ...]

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<name>[^\W\d]\w*|`(?:[^`]|``)+`)|(?P<number>-?\d+)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<sign>[<>(),:]))""",
    re.VERBOSE,
)
#: Nested types deeper than this are refused: each level is a call.
_DEEPEST: Final = 100
_HINT: Final = 'wanted for example "id long, email string, tags array<string>", or df.schema.json()'


def schema_columns(schema: object) -> list[tuple[str, str]]:
    """Return the dotted path and the type of each leaf.

    Raises PolicyError for an invalid schema.
    """
    fields = _as_json(schema)
    if not isinstance(fields, Mapping) or fields.get("type") != "struct":
        raise PolicyError("the schema is not a structure of columns", hint=_HINT)
    try:
        return [(".".join(path), kind) for path, kind in spark_leaf_types(fields)]
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise PolicyError("the schema is not one of Spark", hint=_HINT) from None


def spark_leaves(schema: Mapping[str, object]) -> list[Path]:
    """Return the leaves of a Spark schema (``StructType.jsonValue()``) by Parquet path."""
    return [path for path, _ in _leaves(schema, ())]


def spark_leaf_types(schema: Mapping[str, object]) -> list[tuple[Path, str]]:
    """Return the leaves of a Spark schema, and the names of their types."""
    return [(path, str(kind)) for path, kind in _leaves(schema, ())]


def _leaves(node: object, path: Path) -> Iterator[tuple[Path, object]]:
    kind = node.get("type") if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping) or kind not in _INSIDE:
        yield path, node
        return
    for names, inner in _INSIDE[kind](node):
        yield from _leaves(inner, (*path, *names))


def _fields(node: Mapping[str, object]) -> Iterator[tuple[Path, object]]:
    fields = node["fields"]
    for field in fields if isinstance(fields, list) else ():
        yield (field["name"],), field["type"]


#: Nested types of Spark -> what is inside, with its names in Parquet.
_INSIDE: Mapping[object, Callable[[Mapping[str, object]], Iterable[tuple[Path, object]]]] = {
    "struct": _fields,
    "array": lambda node: [(("list", "element"), node["elementType"])],
    "map": lambda node: [
        (("key_value", "key"), node["keyType"]),
        (("key_value", "value"), node["valueType"]),
    ],
    # A user-defined type is stored as its SQL type, without a level of its own.
    "udt": lambda node: [((), node["sqlType"])],
}


def parse_ddl(text: str) -> dict[str, Any]:
    """Return what ``StructType.jsonValue()`` gives for a DDL text.

    Raises PolicyError if it is not DDL.
    """
    parser = _DdlParser(text)
    # A whole type may be given too, as `df.schema.simpleString()` writes it.
    is_type = parser.words() == ["struct", "<"]
    found = parser.type(0) if is_type else {"type": "struct", "fields": parser.fields(0)}
    parser.end()
    return found if isinstance(found, dict) else {}


def _as_json(schema: object) -> object:
    if hasattr(schema, "jsonValue"):
        return schema.jsonValue()
    if not isinstance(schema, str):
        return schema
    if not schema.lstrip().startswith("{"):
        return parse_ddl(schema)
    try:
        found: object = parsed_json(schema, "the schema")
    except (ValueError, RecursionError):
        raise PolicyError("the schema is not JSON", hint=_HINT) from None
    return found


class _DdlParser:
    """Recursive descent over the tokens of a DDL text."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def words(self) -> list[str]:
        """Return the next two tokens, in lower case."""
        return [text.lower() for _, text in self._tokens[self._at : self._at + 2]]

    def fields(self, depth: int) -> list[dict[str, Any]]:
        """Parse ``name [:] type [NOT NULL] [COMMENT 'text'], ...``."""
        found = [self._field(depth)]
        while self._take(","):
            found.append(self._field(depth))
        return found

    def type(self, depth: int) -> object:
        """Parse one type."""
        if depth > _DEEPEST:
            raise PolicyError("the schema is nested too deep")
        name = self._name("a type").lower()
        if name == "struct" and self._take("<"):
            fields = [] if self._peek() == ">" else self.fields(depth + 1)
            return self._closed({"type": "struct", "fields": fields})
        if name == "array" and self._take("<"):
            return self._closed({"type": "array", "elementType": self.type(depth + 1)})
        if name == "map" and self._take("<"):
            key = self.type(depth + 1)
            self._expect(",")
            value = self.type(depth + 1)
            return self._closed({"type": "map", "keyType": key, "valueType": value})
        if name not in _TYPES:
            close = CloseNames(_TYPES).close(name, 1)
            hint = f"did you mean {close[0]}?" if close else f"types are {', '.join(_TYPES)}"
            raise PolicyError(
                f"the schema has the type {name}, which Spark does not have", hint=hint
            )
        return self._simple(name)

    def end(self) -> None:
        """Raise PolicyError if any text is left."""
        if self._at < len(self._tokens):
            raise self._unexpected("a comma or the end")

    def _field(self, depth: int) -> dict[str, Any]:
        name = self._name("the name of a column")
        self._take(":")
        field = {"name": name, "type": self.type(depth)}
        if self._take("not"):
            self._expect("null")
        if self._take("comment"):
            self._at += 1
        return field

    def _simple(self, name: str) -> str:
        if self._take("("):
            numbers = [self._next()]
            while self._take(","):
                numbers.append(self._next())
            self._expect(")")
            return f"{name}({','.join(numbers)})"
        # Intervals and timestamps have types of several words.
        words = [name]
        while (word := self._peek()) in _MORE_WORDS:
            words.append(word)
            self._at += 1
        return " ".join(words)

    def _closed(self, found: object) -> object:
        self._expect(">")
        return found

    def _name(self, wanted: str) -> str:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind != "name":
            raise self._unexpected(wanted)
        self._at += 1
        return text[1:-1].replace("``", "`") if text.startswith("`") else text

    def _next(self) -> str:
        text = self._peek()
        self._at += 1
        return text

    def _peek(self) -> str:
        return self._tokens[self._at][1].lower() if self._at < len(self._tokens) else ""

    def _take(self, sign: str) -> bool:
        is_next = self._peek() == sign
        self._at += is_next
        return is_next

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._unexpected(repr(sign))

    def _unexpected(self, wanted: str) -> PolicyError:
        found = repr(self._peek()) if self._peek() else "the end"
        return PolicyError(f"the schema has {found}, wanted {wanted}", hint=_HINT)


#: The types of Spark's DDL, by their first words.
_TYPES: Final = (
    "bigint", "binary", "boolean", "byte", "char", "character", "date", "dec", "decimal", "double",
    "float", "geography", "geometry", "int", "integer", "interval", "long", "numeric", "real",
    "short", "smallint", "string", "time", "timestamp", "timestamp_ltz", "timestamp_ntz", "tinyint",
    "varchar", "variant", "void", "struct", "array", "map",
)  # fmt: skip
_MORE_WORDS: Final = frozenset(
    {"year", "month", "day", "hour", "minute", "second", "to", "interval", "precision"}
    | {"with", "without", "local", "time", "zone", "collate"}
)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise PolicyError(f"the schema has {text[at:].strip()[:1]!r} at {at}", hint=_HINT)
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()
