"""Read a log of queries, and count how often each column is looked up, and how often by ranges.

Each line is a condition or a statement.  Only the parser looks at literals: none is kept, shown or
put into an error, and a line that is not SQL is named by its number.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any

from secure_bloom.errors import PolicyError, imported_for
from secure_bloom.storage.paths import as_path

#: A longer line is no query that somebody wrote; to parse it could take minutes.
_LONGEST = 1024 * 1024
#: Queries of a log that are parsed once.
_REMEMBERED = 1024
#: The dialect that the lines are parsed in.
_DIALECT = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUse:
    """How many conditions of a log on a column use ``=`` or ``in``, ranges, or others."""

    equal: int = 0
    range: int = 0
    other: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLog:
    """The uses of a table's columns in a log. ``not_parsed`` has numbers of lines, from 1."""

    lines: int
    not_parsed: tuple[int, ...] = ()
    columns: Mapping[str, ColumnUse] = field(default_factory=dict)

    def use(self, column: str) -> ColumnUse:
        """Return the use of one column."""
        return self.columns.get(column, ColumnUse())

    def share(self, column: str) -> float:
        """Return the column's share of all ``=`` and ``in`` conditions."""
        return self.use(column).equal / max(1, sum(use.equal for use in self.columns.values()))


def load_query_log(path: str | PathLike[str], columns: Sequence[str]) -> QueryLog:
    """Return the log in a file of UTF-8. Raises PolicyError if it cannot be read."""
    try:
        with open(as_path(path), encoding="utf-8", errors="replace") as lines:  # noqa: PTH123 - a path or a name
            # A line that is too long is cut, and then is no query.
            return read_query_log(iter(partial(lines.readline, _LONGEST + 1), ""), columns)
    except OSError as error:
        reason = error.strerror or "it failed"
        raise PolicyError(f"the queries cannot be read: {reason}", path=str(path)) from None


def read_query_log(lines: Iterable[str], columns: Sequence[str]) -> QueryLog:
    """Return the log in lines. ``columns`` are the dotted names of the table's columns.

    Empty lines and lines that start with ``--`` or ``#`` do not count.  Raises MissingExtraError if
    sqlglot is not installed.
    """
    known = {name.lower(): name for name in columns}
    counts: Counter[tuple[str, str]] = Counter()
    total, not_parsed = 0, []
    # A log has few queries, each of them many times, and the parser takes most of the time.  By
    # their digests: no literal is kept.
    parsed: dict[bytes, list[tuple[tuple[str, ...], str]] | None] = {}
    with _quiet():
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith(("--", "#")):
                continue
            total += 1
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            found = parsed[digest] if digest in parsed else _conditions(text)
            if len(parsed) < _REMEMBERED:
                parsed[digest] = found
            if found is None:
                not_parsed.append(number)
            else:
                counts.update((name, kind) for name, kind in _table_names(found, known))
    names = dict.fromkeys(name for name, _ in counts)
    return QueryLog(
        lines=total,
        not_parsed=tuple(not_parsed),
        columns={
            name: ColumnUse(
                equal=counts[name, "equal"],
                range=counts[name, "range"],
                other=counts[name, "other"],
            )
            for name in names
        },
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Switch sqlglot's own log off in the block, because it quotes what it does not understand."""
    with imported_for("a log of queries", "advise"):
        import sqlglot  # noqa: F401
    logger = logging.getLogger("sqlglot")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def _conditions(text: str) -> list[tuple[tuple[str, ...], str]] | None:
    """Return the columns that a line has conditions on, by their parts, and the kind of each.

    Return None for a line that is no query.
    """
    import sqlglot

    if len(text) > _LONGEST:
        return None
    # Whatever the parser raises may quote a literal.
    try:
        trees = [tree for tree in sqlglot.parse(text, read=_DIALECT) if tree is not None]
        if not trees or not all(map(_is_query, trees)):
            return None
        roots = [root for tree in trees for root in _filters(tree)]
        return [found for root in roots for found in _uses(root)]
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError, AttributeError):
        return None


def _is_query(tree: Any) -> bool:
    """Return whether a tree is a condition, or a statement that may have a condition."""
    from sqlglot import exp

    conditions = (exp.Predicate, exp.Connector, exp.Not, exp.Paren, exp.Func)
    return isinstance(tree, conditions if isinstance(tree, exp.Condition) else exp.Expr) and (
        not isinstance(tree, exp.Command | exp.Alias)
    )


def _filters(tree: Any) -> Iterator[Any]:
    """Yield the conditions of a statement (of WHERE, joins and HAVING), or the line itself."""
    from sqlglot import exp

    if isinstance(tree, exp.Condition) and not isinstance(tree, exp.Subquery):
        yield tree
    for clause in tree.find_all(exp.Where, exp.Having, exp.Qualify):
        yield clause.this
    for join in tree.find_all(exp.Join):
        if join.args.get("on") is not None:
            yield join.args["on"]


def _uses(root: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each comparison of a column with values below ``root``, as the column and the kind.

    The time is linear in the number of nodes.
    """
    from sqlglot import exp

    equal = (exp.EQ, exp.NullSafeEQ, exp.In)
    ranges = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
    nodes = list(_negations(root))
    asked = _asking(node for node, _ in nodes)
    for node, is_negated in nodes:
        if not isinstance(node, exp.Predicate) or isinstance(node, exp.Query):
            continue
        kind = "equal" if isinstance(node, equal) else "range" if isinstance(node, ranges) else ""
        if kind == "equal" and (is_negated or node.args.get("query") is not None):
            kind = "other"
        columns = [it for it in _sides(node, asked) if it is not None]
        if len(columns) == 1:
            yield tuple(part.name for part in columns[0].parts), kind or "other"


def _negations(root: Any) -> Iterator[tuple[Any, bool]]:
    """Yield each node below ``root``, parents first, and whether it is negated.

    Does not descend into queries.
    """
    from sqlglot import exp

    pending = [(root, False)]
    while pending:
        node, is_negated = pending.pop()
        yield node, is_negated
        if not isinstance(node, exp.Query):
            below = is_negated ^ isinstance(node, exp.Not)
            pending += [(child, below) for child in node.iter_expressions(reverse=True)]


def _asking(nodes: Iterable[Any]) -> frozenset[int]:
    """Return the ids of the nodes that are, or contain, a column or a query.

    ``nodes`` has each parent before its children.
    """
    from sqlglot import exp

    found = set[int]()
    for node in reversed(list(nodes)):
        if isinstance(node, exp.Column | exp.Query) or id(node) in found:
            found |= {id(node), id(node.parent)}
    return frozenset(found)


def _sides(node: Any, asking: frozenset[int]) -> Iterator[Any]:
    """Yield each side of a comparison: a column, or None for an expression that no filter answers.

    These expressions are functions of a column, and queries. Constants are left out.
    """
    from sqlglot import exp

    for side in node.iter_expressions():
        inner = side.this if isinstance(side, exp.Paren) else side
        if isinstance(inner, exp.Column | exp.Dot):
            yield inner
        elif id(inner) in asking:
            yield None


def _table_names(
    found: Iterable[tuple[tuple[str, ...], str]], known: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the columns by the table's own names.

    Table names and aliases before a column's name are removed.
    """
    for parts, kind in found:
        for start in range(len(parts)):
            name = known.get(".".join(parts[start:]).lower())
            if name is not None:
                yield name, kind
                break
