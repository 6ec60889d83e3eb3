"""The schema of a table: the union of the Arrow schemas of its files, as pyarrow reads them.

A column that a file lacks is null there.  If files differ in a column's type, the table has a type
that holds all their values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import pyarrow as pa

from secure_bloom.errors import PolicyError
from secure_bloom.reading.table.type_promotion import ClashError, common_fields


def unite(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the union of the schemas of files, given with their paths.

    Raises PolicyError, whichever columns the read asks for, if a file has two columns of one name,
    or if no type holds all values of a column.
    """
    known: dict[pa.Schema, str] = {}
    last = None
    for path, schema in schemas:
        # Most files share the schema object; to compare schemas takes long.
        if schema is not last:
            known.setdefault(schema, path)
        last = schema
    if not known:
        raise PolicyError("there are no files, hence no columns")
    for schema, path in known.items():
        if len(set(schema.names)) < len(schema.names):
            twice = next(name for name in schema.names if schema.names.count(name) > 1)
            raise PolicyError("the file has two columns of that name", path=path, column=twice)
    if len(known) == 1:
        return next(iter(known))
    try:
        return pa.schema(common_fields([list(schema) for schema in known]))
    except ClashError as clash:
        raise _clash(clash.path[0], known) from None


def _clash(name: str, known: Mapping[pa.Schema, str]) -> PolicyError:
    """Return an error that names the first two files whose column types have no common type."""
    having = [(schema.field(name), path) for schema, path in known.items() if name in schema.names]
    for one, other in itertools.combinations(having, 2):
        try:
            common_fields([[one[0]], [other[0]]])
        except ClashError as clash:
            types, column = clash.types, ".".join(clash.path)
            break
    else:
        (one, other), column = having[:2], name
        types = [one[0].type, other[0].type]
    return PolicyError(
        f"it is {types[0]} in {one[1]} and {types[1]} here, and no type has all values of both",
        hint="read the files one by one, or write one of them again with the other's type",
        path=other[1],
        column=column,
    )
