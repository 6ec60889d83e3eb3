"""Errors about a query, without values of rows: what DuckDB says, with a hint what to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from secure_bloom.errors import FormatError, PolicyError, SecureBloomError
from secure_bloom.parquet.footer.locate import IS_TEXT
from secure_bloom.reading.pruning.plan_table import WITHOUT_CONDITION
from secure_bloom.reading.rows.units import OTHER_COLUMNS

#: Errors of DuckDB that describe the query, and no value of a row.
_ABOUT_THE_QUERY: Final = (
    "BinderException",
    "CatalogException",
    "NotImplementedException",
    "ParserException",
    "PermissionException",
    "SyntaxException",
)
#: Beginnings of the lines in which DuckDB names what the user may have meant.
_ALIKE: Final = ("Candidate bindings", "Did you mean")
#: A name in quotes in an error of DuckDB.  It may be a value that the user meant as a text.
_QUOTED = re.compile(r'"([^"]*)"')
#: How DuckDB names a column that no table has.
_UNKNOWN = re.compile(r'Referenced column "([^"]*)" not found')
#: How DuckDB names parameters of the query without a value.
_LACKING = re.compile(r"not provided for the following parameters: (\w+(?:, \w+)*)")
#: A parameter as a condition may have it, and DuckDB not.
_COLON_NAME: Final = re.compile(r"(?<![:\w])\s:[A-Za-z_]\w*")
_OF_CONDITIONS: Final = "write a parameter as $name"
_ONLY_READS: Final = "tables are only read; WITH NAME AS (SELECT ...) names a part of a query"
_NO_SETTING: Final = "settings of DuckDB are fixed; --table NAME=PATH and tables= name other tables"
_TO_FILE: Final = (
    "--output FILE writes the rows of the query; in Python the answer is an Arrow table"
)
#: Ways out that a query has: the others are for the functions that take conditions and columns.
_IN_SQL: Final = {
    f"; {WITHOUT_CONDITION}": "",
    WITHOUT_CONDITION: "leave the condition out of the query",
    OTHER_COLUMNS: "to leave the column out: missing_keys='drop' (--missing-keys drop)",
}
#: How rows of the caller's own come into a query.
OWN_ROWS: Final = (
    "values to search for are parameters: WHERE email in $wanted, with "
    '{"wanted": ["a@example.com"]} in parameters= (--parameters FILE)'
)
#: Words with which statements begin that are no query, and what to use in place of them.
_INSTEAD: Final = {
    "pivot": "name the values: PIVOT 'TABLE' ON country IN ('it', 'no') USING sum(n)",
    "explain": "secure-bloom read TABLE --where ... --explain says what is read, and why",
    **dict.fromkeys(("copy", "export"), _TO_FILE),
    **dict.fromkeys(("attach", "call", "install", "load", "pragma", "set", "use"), _NO_SETTING),
    **dict.fromkeys(("alter", "create", "delete", "drop", "insert"), _ONLY_READS),
    **dict.fromkeys(("merge", "truncate", "update"), _ONLY_READS),
}
_STATEMENT: Final = re.compile(rf"\b({'|'.join(_INSTEAD)})\b", re.IGNORECASE)
#: The kinds of errors whose text may have a value of a row, and what is said of them instead.
_OF_A_VALUE: Final = re.compile("(Conversion|Invalid Input|Out of Range) Error")
_OF_TYPES: Final = (
    "DESCRIBE 'TABLE' lists the types: compare a column with values of its type; "
    "try_cast(COLUMN AS TYPE) gives null for a value that does not fit"
)
_VALUE_ERRORS: Final = {
    "Conversion": ("a value cannot be converted to a type (DuckDB: Conversion Error)", _OF_TYPES),
    "Invalid Input": (
        "a function or operation does not take a value (DuckDB: Invalid Input Error)",
        "try(EXPRESSION) gives null for a value that it does not take",
    ),
    "Out of Range": (
        "a number is out of the range of its type (DuckDB: Out of Range Error)",
        "cast to a wider type, such as HUGEINT or DOUBLE; try(EXPRESSION) gives null",
    ),
    None: ("a value does not fit an operation or a type", _OF_TYPES),
}
_HINT: Final = (
    "write texts and paths in single quotes, and names of columns in double quotes, "
    "above all those that are words of SQL, such as at, end and order"
)
#: What to do about an error that DuckDB describes with these words.
_BY_WORDS: Final = {
    "must appear in the GROUP BY": "add the column to GROUP BY, or write GROUP BY ALL",
    "Ambiguous reference": "write the table before the column: c.id",
    "Cannot access file": "a table is its path in quotes: FROM 'lake/customers'",
    "No function matches": "cast to a type that it takes: cast(COLUMN AS DATE); epoch(COLUMN) "
    "gives the seconds of an interval",
    "Function with name": "functions are those of DuckDB",
    "does not have a column named": "DESCRIBE 'TABLE' lists the columns of a table",
    "WHERE clause cannot contain aggregates": "conditions on aggregates follow HAVING",
}


def unparsed(text: str, answer: Mapping[str, Any]) -> PolicyError:
    """Return the error for a text that DuckDB cannot parse as a query."""
    if answer["error_type"] == "not implemented":
        word = _STATEMENT.search(text)
        hint = _INSTEAD[word[0].lower()] if word else "write SELECT ... FROM 'TABLE'"
        return PolicyError("the statement is not a query", hint=hint)
    hint = _OF_CONDITIONS if _COLON_NAME.search(text) else _HINT
    return PolicyError(f"the query cannot be parsed: {_shown(answer['error_message'])}", hint=hint)


def refusal(error: Exception, query: str) -> PolicyError:
    """Return an error of DuckDB as an error of this package, without values of rows."""
    # pyarrow, which reads the answer, raises its own error with DuckDB's text.
    kind = type(error).__name__
    if kind in _ABOUT_THE_QUERY:
        first, *others = str(error).partition("\n\nLINE")[0].splitlines()
        hints = [hint for words, hint in _BY_WORDS.items() if words in first]
        hints += [_shown(line) for line in others if line.startswith(_ALIKE)]
        unknown = _UNKNOWN.search(first)
        is_quoted = unknown is not None and f'"{unknown[1]}"' in query
        if is_quoted or not all(map(_is_shown, _QUOTED.findall(first))):
            hints = ["; ".join(["write a text in single quotes", *hints[:1]])]
        return PolicyError(
            f"the query cannot be run: {_shown(first.partition(': ')[2])}",
            hint=hints[0] if hints else _HINT,
        )
    lacking = _LACKING.search(str(error)[:2_000])
    if lacking is not None:
        names = ", ".join(f"${name}" for name in lacking[1].split(", "))
        return PolicyError(
            f"the query has no value for {names}",
            hint="--parameters FILE, or parameters={NAME: value}, gives values by their names",
        )
    if "OutOfMemory" in kind or "Out of Memory" in str(error)[:200]:
        return PolicyError(
            "the query needs more memory than there is",
            hint="select fewer columns or rows; aggregate before a join",
        )
    found = _OF_A_VALUE.match(str(error)[:200])
    reason, hint = _VALUE_ERRORS[found[1] if found else None]
    return PolicyError(f"the query failed while it ran: {reason}", hint=hint)


def _shown(message: str) -> str:
    """Return a message of DuckDB without quoted texts that may be values of rows.

    Names and signs in double quotes stay.
    """
    return _QUOTED.sub(lambda it: it[0] if _is_shown(it[1]) else '"..."', message)


def _is_shown(text: str) -> bool:
    return text.isidentifier() or not any(map(str.isalnum, text))


def with_hints_for_sql(error: SecureBloomError) -> SecureBloomError:
    """Return the error of a table, with a hint that a query in SQL can follow."""
    for advice, own in _IN_SQL.items():
        error.hint = error.hint and error.hint.replace(advice, own)
    if isinstance(error, FormatError) and IS_TEXT in error.message:
        error.hint = f"{error.hint}; {OWN_ROWS}"
    return error
