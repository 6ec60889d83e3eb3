"""What the syntax tree of a query says: its tables, what it does with columns, which rows it needs.

DuckDB gives the tree as JSON (``json_serialize_sql``).  What its optimizer does not push down to a
table is recognised here: LIMIT, and equalities with a UUID.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa

from secure_bloom.errors import PolicyError

if TYPE_CHECKING:
    from secure_bloom.parquet.members import Member

_Sides = list[dict[str, Any]]
_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: Bytes as a condition, CSV and JSON have them.
_HEX: Final = re.compile("hex:((?:[0-9a-fA-F]{2})*)")


def table_names(node: object) -> Iterator[str]:
    """Yield the names of tables in a part of a syntax tree, without those that WITH defines."""
    # Without recursion, here and in `_parts`: 1 + 1 + ... is as deep as it has signs.
    waiting: list[tuple[object, Set[str]]] = [(node, frozenset())]
    while waiting:
        node, defined = waiting.pop()
        parts: list[tuple[object, Set[str]]] = []
        if isinstance(node, list):
            parts = [(part, defined) for part in node]
        elif isinstance(node, dict):
            if node.get("type") == "BASE_TABLE":
                path = map(node.get, ("catalog_name", "schema_name", "table_name"))
                name = ".".join(filter(None, path))
                if name.lower() not in defined:
                    yield name
            # A query of WITH sees the names before it, and its own one only if it is recursive.
            if node.get("type") == "RECURSIVE_CTE_NODE":
                defined = {*defined, node["cte_name"].lower()}
            for entry in node.get("cte_map", {}).get("map", ()):
                parts.append((entry["value"], defined))
                defined = {*defined, entry["key"].lower()}
            parts += [(part, defined) for name, part in node.items() if name != "cte_map"]
        waiting += reversed(parts)


def check_parameters(tree: dict[str, Any], values: Mapping[str, object]) -> None:
    """Raise PolicyError for a given value that the query does not use.

    If the query also uses a parameter without a value, nothing is raised: DuckDB reports that.
    """
    used = {it["identifier"].lower() for it in expressions(tree) if it["type"] == "VALUE_PARAMETER"}
    unused = [f"${name}" for name in values if name.lower() not in used]
    if unused and used <= set(map(str.lower, values)):
        raise PolicyError(
            f"the query has no parameter {', '.join(unused)}, for which a value was given",
            hint="use it in the query, or leave the value out",
        )


def given_bytes(
    tree: dict[str, Any], values: Mapping[str, object], schemas: Iterable[pa.Schema]
) -> dict[str, bytes]:
    """Return the parameters written as ``hex:00ff`` that are compared with a BLOB, as bytes.

    Raises PolicyError if the query has a text of this form: DuckDB would take its letters as the
    bytes.
    """
    fields = [(field.name.lower(), _is_bytes(field.type)) for it in schemas for field in it]
    blobs = {name for name, is_bytes in fields if is_bytes}
    blobs -= {name for name, is_bytes in fields if not is_bytes}
    found = {}
    for node in expressions(tree) if blobs else ():
        if not node["type"].startswith("COMPARE_"):
            continue
        sides = [
            it for part in node.values() for it in (part if isinstance(part, list) else [part])
        ]
        sides = [it for it in sides if isinstance(it, dict)]
        if not any(it.get("column_names", [""])[-1].lower() in blobs for it in sides):
            continue
        for side in sides:
            if _HEX.fullmatch(str(side.get("literal", {}).get("text"))):
                raise PolicyError(
                    "the condition compares bytes with a text that begins with hex:",
                    hint="write from_hex('00ff'), or give the bytes as a parameter",
                )
            name = side.get("identifier", "")
            given = _HEX.fullmatch(str(values.get(name)))
            if given is not None:
                found[name] = bytes.fromhex(given[1])
    return found


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def only_shows(tree: dict[str, Any], hidden: Collection[Member]) -> bool:
    """Return whether a query uses hidden columns for nothing but its output.

    It is ``SELECT columns FROM table WHERE ... ORDER BY ... LIMIT ...``, and names no hidden column
    after FROM.
    """
    orders = [it for modifier in tree["modifiers"] for it in modifier.get("orders", ())]
    is_plain = (
        tree["type"] == "SELECT_NODE"
        and tree["from_table"]["type"] == "BASE_TABLE"
        and not tree["from_table"]["column_name_alias"]
        and not tree["cte_map"]["map"]
        and all(map(_is_column, tree["select_list"]))
        and not any(tree[it] for it in ("group_sets", "having", "qualify", "sample"))
        and tree["aggregate_handling"] == "STANDARD_HANDLING"
        and {it["type"] for it in tree["modifiers"]} <= {"ORDER_MODIFIER", "LIMIT_MODIFIER"}
        # A number is the position of a column of the output.
        and all(it["expression"]["class"] != "CONSTANT" for it in orders)
    )
    table = tree["from_table"] if is_plain else {}
    rows = {str(table.get(it)).lower() for it in ("alias", "table_name")}
    return is_plain and not any(
        node["class"] in ("STAR", "SUBQUERY", "POSITIONAL_REFERENCE")
        or _may_mean(node.get("column_names", ()), hidden, rows)
        for node in expressions([tree["where_clause"], orders])
    )


def may_use(tree: dict[str, Any], hidden: Collection[Member]) -> bool:
    """Return whether a query may use a hidden column, or a hidden member of a structure.

    An expression that takes all columns of a table, without naming them, may use a hidden column.
    """
    columns = {member[0].lower() for member in hidden}
    parts = list(_parts(tree))
    # An expression has an alias too, which is no name of rows.
    tables = [part for part in parts if "class" not in part]
    rows = {str(part.get(it)).lower() for part in tables for it in ("alias", "table_name")}
    return any(
        part.get("type") in ("PIVOT", "SHOW_REF")
        or part.get("ref_type") == "NATURAL"
        or bool(part.get("column_name_alias"))
        or not columns.isdisjoint(map(str.lower, part.get("using_columns", ())))
        or part.get("class") in ("STAR", "POSITIONAL_REFERENCE")
        or _may_mean(part.get("column_names", ()), hidden, rows)
        for part in parts
    )


def _is_column(item: dict[str, Any]) -> bool:
    """Return whether an item of SELECT is a column under its own name, or all columns."""
    if item["class"] == "STAR":
        return not (item["columns"] or item["expr"] or item["replace_list"] or item["rename_list"])
    return bool(item["class"] == "COLUMN_REF" and not item["alias"])


def _may_mean(names: Sequence[str], hidden: Collection[Member], rows: Set[str]) -> bool:
    """Return whether a name may be that of a hidden column, or of a structure that contains one."""
    path = [name.lower() for name in names]
    if len(path) == 1 and path[0] in rows:
        return True
    for member in hidden:
        wanted = [name.lower() for name in member]
        starts = (at for at, name in enumerate(path) if name == wanted[0])
        if any(all(map(str.__eq__, path[at:], wanted)) for at in starts):
            return True
    return False


def first_rows(tree: dict[str, Any]) -> int | None:
    """Return the number of rows of a table that a query reads at most, or None for all.

    DuckDB does not push LIMIT down.  So ``SELECT columns FROM table LIMIT n`` is recognised here,
    because it is how a person looks at a table first.
    """
    kinds = {item["class"] for item in tree.get("select_list", ({"class": ""},))}
    is_plain = (
        tree["type"] == "SELECT_NODE"
        and tree["from_table"]["type"] == "BASE_TABLE"
        and kinds <= {"COLUMN_REF", "STAR"}
        and not any(
            tree[it] for it in ("where_clause", "group_sets", "having", "qualify", "sample")
        )
        and [it["type"] for it in tree["modifiers"]] == ["LIMIT_MODIFIER"]
    )
    if not is_plain:
        return None
    bounds = [tree["modifiers"][0][it] for it in ("limit", "offset")]
    numbers = [_number(it) for it in bounds if it is not None]
    return None if None in numbers or bounds[0] is None else sum(filter(None, numbers))


def _number(expression: dict[str, Any]) -> int | None:
    text = expression.get("literal", {}).get("text", "")
    return int(text) if text.isdecimal() else None


def wanted_uuids(
    tree: dict[str, Any], parameters: Mapping[str, object], schema: pa.Schema
) -> Iterator[tuple[str, list[UUID]]]:
    """Yield UUID columns, each with its wanted values: every row of the answer has one of them.

    For DuckDB a UUID is a cast of bytes, and DuckDB pushes no condition on a cast down. So ``u =
    ...`` and ``u IN (...)`` are recognised here if a query reads one table once.
    """
    table = tree.get("from_table", {})
    is_plain = (
        tree["type"] == "SELECT_NODE"
        and table["type"] == "BASE_TABLE"
        and not table["column_name_alias"]
        and not tree["cte_map"]["map"]
        # A sample is taken before the rows are looked at.
        and not (tree["sample"] or table["sample"])
        and len(list(table_names(tree))) == 1
    )
    if not is_plain:
        return
    columns: dict[tuple[str, ...], str] = {
        (field.name.lower(),): field.name for field in schema if isinstance(field.type, pa.UuidType)
    }
    of_table = (table["alias"] or table["table_name"]).lower()
    if of_table not in map(str.lower, schema.names):
        columns |= {(of_table, *path): name for path, name in columns.items()}
    for left, right in _equalities(tree["where_clause"]):
        name = columns.get(tuple(map(str.lower, left.get("column_names", ()))))
        values = [_uuid(it, parameters) for it in right]
        if name is not None and None not in values:
            yield name, [it for it in values if it is not None]


def _equalities(where: dict[str, Any] | None) -> Iterator[tuple[dict[str, Any], _Sides]]:
    """Yield the sides of ``=``, and of IN, that must hold for each row."""
    if where is None:
        return
    if where["type"] == "CONJUNCTION_AND":
        for part in where["children"]:
            yield from _equalities(part)
    elif where["type"] == "COMPARE_EQUAL":
        yield where["left"], [where["right"]]
        yield where["right"], [where["left"]]
    elif where["type"] == "COMPARE_IN":
        yield where["children"][0], where["children"][1:]


def _uuid(expression: dict[str, Any], parameters: Mapping[str, object]) -> UUID | None:
    """Return the UUID that an expression writes in the usual spelling, else None."""
    if expression["type"] == "OPERATOR_CAST":
        is_uuid = expression["type_expr"].get("type_name", "").lower() == "uuid"
        expression = expression["child"] if is_uuid else expression
    literal = expression.get("literal", {})
    value = literal["text"] if literal.get("kind") == "STRING" else None
    if expression["type"] == "VALUE_PARAMETER":
        value = parameters.get(expression["identifier"])
    if isinstance(value, str) and _UUID.fullmatch(value):
        value = UUID(value)
    return value if isinstance(value, UUID) else None


def expressions(node: object) -> Iterator[dict[str, Any]]:
    """Yield all expressions of a part of a syntax tree."""
    return (part for part in _parts(node) if "class" in part)


def _parts(node: object) -> Iterator[dict[str, Any]]:
    """Yield all parts of a syntax tree."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            node = list(node.values())
        if isinstance(node, list):
            waiting += reversed(node)
