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
from secure_bloom.parquet.members import ELEMENT

if TYPE_CHECKING:
    from secure_bloom.parquet.members import Member

_Sides = list[dict[str, Any]]
_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: Bytes as a condition, CSV and JSON have them.
_HEX: Final = re.compile("hex:((?:[0-9a-fA-F]{2})*)")


def table_names(node: object) -> Iterator[str]:
    """Yield the table names in a part of a syntax tree, except names that WITH defines."""
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


class HiddenUse:
    """What a query does with the hidden members of one table: it shows them, or computes with them.

    Names are followed through the queries of a query, until no name is found to hold more.  Where
    the tree does not say which columns are meant, a query computes with every hidden member.
    """

    def __init__(
        self, tree: dict[str, Any], hidden: Iterable[Member], other_tables: Collection[str] = ()
    ) -> None:
        self.shown: set[Member] = set()
        self.computed: set[Member] = set()
        self._hidden = frozenset(hidden)
        self._deepest = 2 + max(map(len, self._hidden), default=0)
        self._held: dict[str, set[_Held]] = {}
        for member in self._hidden:
            name, *inside = (part.lower() for part in member if part != ELEMENT)
            self._hold(name, {(member, tuple(inside))})
        # An expression has an alias too, which is no name of rows.
        tables = [part for part in _parts(tree) if "class" not in part]
        defined = {
            it["key"].lower() for part in tables for it in part.get("cte_map", {}).get("map", ())
        }
        others = {name.lower() for name in other_tables} - defined
        names = [(_row_names(part), _path(part) in others) for part in tables]
        self._rows = {name for found, _ in names for name in found}
        own = {name for found, is_other in names for name in found if not is_other}
        self._others = self._rows - own
        before = -1
        while self._hidden and before != (before := sum(map(len, self._held.values()))):
            self._follow(tree)

    def _follow(self, tree: dict[str, Any]) -> None:
        waiting: list[tuple[object, bool]] = [(tree, True)]
        while waiting:
            node, is_shown = waiting.pop()
            if isinstance(node, list):
                waiting += [(part, is_shown) for part in node]
            elif isinstance(node, dict) and "class" in node:
                waiting += [(part, False) for part in self._compute(node)]
            elif isinstance(node, dict):
                items = node.get("select_list") or []
                compared = [*_compared(node), *self._table(node, is_outermost=node is tree)]
                for item in items if is_shown else ():
                    compared += self._show(item, is_outermost=node is tree)
                waiting += [(item, False) for item in (compared if is_shown else compared + items)]
                waiting += [
                    (part, is_shown or name in ("from_table", "cte_map"))
                    for name, part in node.items()
                    if name not in ("select_list", "function")
                ]

    def _compute(self, node: dict[str, Any]) -> Iterable[object]:
        """Note what an expression computes with. Return the parts that are still to be followed."""
        found, others = self._value(node)
        if found is not None:
            self.computed |= {member for member, _ in found}
            return others
        if node["class"] in ("STAR", "POSITIONAL_REFERENCE"):
            self.computed |= self._hidden
        arguments = _arguments(node)
        kind = str(node.get("function_name") or node["type"]).lower()
        if kind in _OF_CONTAINERS and arguments and not node.get("distinct"):
            found, others = self._value(arguments[0])
            if found is not None:
                # Its other members say whether a structure is null, and how long a list is.
                self.computed |= {member for member, inside in found if not inside}
                return [*others, *arguments[1:], node.get("filter"), node.get("order_bys")]
        return list(node.values())

    def _show(self, item: dict[str, Any], *, is_outermost: bool) -> list[dict[str, Any]]:
        """Note what an item of SELECT shows. Return the expressions that compute."""
        if item["class"] == "STAR":
            self.shown |= self._hidden
            if item["alias"] or item.get("rename_list"):
                self.computed |= self._hidden
            self._unpack(self._held.get(str(item.get("relation_name")).lower(), ()))
            return [it for it in _parts(item.get("replace_list")) if "class" in it]
        found, others = self._value(item)
        name = item["alias"] or item.get("column_names", [""])[-1]
        # The name that DuckDB makes of an expression is not known here.
        if found is None or not (name or is_outermost):
            return [item]
        self.shown |= {member for member, _ in found}
        self._unpack(found if item.get("function_name") == "unnest" else ())
        self._hold(name, found)
        return others

    def _table(self, node: dict[str, Any], *, is_outermost: bool) -> list[dict[str, Any]]:
        """Follow the columns that a part of a query renames. Return the items that it compares."""
        kind = node.get("type", "")
        if kind in _UNCLEAR or node.get("ref_type") == "NATURAL":
            self.computed |= self._hidden
        for name in node.get("using_columns", ()):
            self.computed |= {member for member, _ in self._held.get(name.lower(), ())}
        aliases = node.get("column_name_alias") or node.get("aliases") or []
        if kind == "TABLE_FUNCTION":
            found, others = self._value(node["function"])
            if found is None or node["function"]["function_name"] != "unnest":
                return [node["function"]]
            self._unpack(found)
            for name in aliases or [node["alias"], "unnest"]:
                self._hold(name, found)
            return others
        if aliases:
            inner = node.get("subquery") or node.get("query_node") or {}
            self._rename(aliases, _selects(inner.get("node", inner)))
        if kind == "SET_OPERATION_NODE":
            selects = _selects(node)
            if node["modifiers"] or not (
                node["setop_all"] and node["setop_type"].startswith("UNI")
            ):
                return [item for it in selects for item in it.get("select_list", [_STAR])]
            if not is_outermost:
                items = selects[0].get("select_list", [_STAR])
                # A name that is not known here is "".
                names = [it["alias"] or it.get("column_names", [""])[-1] for it in items]
                self._rename(list(map(str, names)), selects)
        return []

    def _rename(self, names: list[str], selects: list[dict[str, Any]]) -> None:
        """Note that columns of queries have new names, in this order."""
        for select in selects or [{}]:
            items = select.get("select_list") or [_STAR]
            if _is_open(items) or "" in names:
                # Which columns * means is not known here.
                for name in names:
                    self._hold(name, self._whole_rows())
                self.computed |= self._hidden if "" in names else set()
                continue
            for name, item in zip(names, items, strict=False):
                self._hold(name, self._value(item)[0] or ())

    def _value(self, node: dict[str, Any]) -> tuple[set[_Held] | None, list[dict[str, Any]]]:
        """Return the hidden members inside of a column, or of a part of it, and the indexes used.

        Return None for an expression that computes.
        """
        steps: list[str] = []
        others: list[dict[str, Any]] = []
        while node["class"] != "COLUMN_REF":
            given = _arguments(node)
            if str(node.get("function_name") or node["type"]).lower() in _PARTS and len(given) == 2:
                literal = given[1].get("literal", {})
                if literal.get("kind") == "STRING":
                    steps.append(literal["text"].lower())
                else:
                    others.append(given[1])
            elif node.get("function_name") != "unnest" or len(given) != 1:
                return None, []
            node = given[0]
        path = [name.lower() for name in node["column_names"]]
        if len(path) > 1 and path[0] in self._others:
            return set(), others
        path += reversed(steps)
        found = _inside(self._whole_rows(), path[1:]) if path[0] in self._rows else set()
        for at, name in enumerate(path):
            found |= _inside(self._held.get(name, ()), path[at + 1 :])
        return found, others

    def _whole_rows(self) -> set[_Held]:
        return {(it, (name, *inside)) for name, held in self._held.items() for it, inside in held}

    def _hold(self, name: str, found: Iterable[_Held]) -> None:
        # Rows inside of rows: some length must be the last one.
        cut = {(member, inside if len(inside) < self._deepest else ()) for member, inside in found}
        self._held.setdefault(name.lower(), set()).update(cut)

    def _unpack(self, found: Iterable[_Held]) -> None:
        """Note that the members of a structure become columns."""
        for member, inside in list(found):
            if inside:
                self._hold(inside[0], {(member, inside[1:])})


#: A hidden member, and the names that lead to it inside of a value: none if all of it is hidden.
_Held = tuple["Member", tuple[str, ...]]
_STAR: Final[dict[str, Any]] = {"class": "STAR", "type": "STAR", "alias": ""}
#: ``addr.zip``, ``addr['zip']`` and what they may be written as.
_PARTS: Final = {"struct_extract", "array_extract", "list_extract", "list_element"}
#: What a structure or list answers without its hidden members.
_OF_CONTAINERS: Final = {"operator_is_null", "operator_is_not_null", "count", "len", "array_length"}
#: Tables whose columns are compared, or named by their place.
_UNCLEAR: Final = {"PIVOT", "SHOW_REF", "RECURSIVE_CTE_NODE"}


def _inside(found: Iterable[_Held], path: Sequence[str]) -> set[_Held]:
    """Return what is hidden in a part of a value. All parts of a hidden value are hidden."""
    return {
        (member, inside[len(path) :])
        for member, inside in found
        if all(map(str.__eq__, inside, path))
    }


def _arguments(node: dict[str, Any]) -> list[dict[str, Any]]:
    # Some versions of DuckDB have arguments with their names, others have children.
    given = node.get("arguments") or node.get("children") or ()
    return [it.get("expression", it) for it in given]


def _row_names(table: dict[str, Any]) -> set[str]:
    return {str(table.get(it)).lower() for it in ("alias", "table_name") if table.get(it)}


def _path(table: dict[str, Any]) -> str:
    names = map(table.get, ("catalog_name", "schema_name", "table_name"))
    return ".".join(str(it) for it in names if it).lower()


def _is_open(items: Iterable[dict[str, Any]]) -> bool:
    return any(it["class"] == "STAR" for it in items)


def _selects(query: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the SELECTs whose rows UNION and the like put together."""
    if query.get("type") != "SET_OPERATION_NODE":
        return [query]
    return [it for child in query["children"] for it in _selects(child)]


def _compared(query: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items of SELECT that DISTINCT, GROUP BY or ORDER BY compares, by place or all."""
    items = query.get("select_list") or []
    modifiers = query.get("modifiers", ())
    keys = [it["expression"] for modifier in modifiers for it in modifier.get("orders", ())]
    keys += query.get("group_expressions", ())
    for modifier in modifiers:
        keys += modifier.get("distinct_on_targets", ())
        if modifier["type"] == "DISTINCT_MODIFIER" and not modifier.get("distinct_on_targets"):
            return items
    places = [_number(it) for it in keys if it["class"] == "CONSTANT"]
    by_all = _is_open(keys) or query.get("aggregate_handling", "STANDARD_HANDLING") != (
        "STANDARD_HANDLING"
    )
    if by_all or (places and _is_open(items)):
        return items
    return [items[place - 1] for place in places if place and place <= len(items)]


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
    """Yield each UUID column with a list of values. Each row of the answer has one of the values.

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
