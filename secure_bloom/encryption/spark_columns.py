"""The columns of a policy that parquet-java's properties can name: leaves without dots in names.

Spark reports the others when a task writes, 40 seconds into a job, or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.spark_ddl import Path
from secure_bloom.errors import PolicyError


def check_spark_columns(policy: KeyPolicy, leaves: Collection[Path] | None = None) -> None:
    """Raise the first of :func:`spark_problems`."""
    for problem in spark_problems(policy, leaves):
        raise problem


def spark_problems(
    policy: KeyPolicy, leaves: Collection[Path] | None = None
) -> Iterator[PolicyError]:
    """Yield the parts of the policy that Spark cannot write; ``leaves`` are the table's, if known.

    Without them only problems of the policy itself are found.
    """
    try:
        policy.spark_properties()
    except PolicyError as error:
        yield error
    keyed = [path for path, rule in policy.columns.items() if rule.key is not None]
    known = {".".join(leaf): leaf for leaf in (map(_split, keyed) if leaves is None else leaves)}
    for column in keyed:
        problem = column_problem(column, known)
        if problem is not None:
            yield problem


def column_problem(column: str, leaves: Mapping[str, Path]) -> PolicyError | None:
    """Return why Spark cannot encrypt ``column`` by name; ``leaves`` are by their dotted names."""
    below = [name for name, leaf in leaves.items() if _is_below(leaf, column)]
    if below:
        return PolicyError(
            f"{column} has columns inside: Spark encrypts leaves, each under its own name",
            hint=f"name instead: {', '.join(below)}",
            column=column,
        )
    leaf = leaves.get(column)
    if leaf is None:
        return PolicyError(
            f"there is no column {column}", hint=close_match(column, leaves), column=column
        )
    if any("." in name for name in leaf):
        return PolicyError(
            f"column {column} has a dot in its own name: parquet-java takes it for a nested one",
            hint=f"rename the column, for example to {column.replace('.', '_')}",
            column=column,
        )
    return None


def _split(column: str) -> Path:
    return tuple(column.split("."))


def _is_below(leaf: Path, column: str) -> bool:
    return any(".".join(leaf[:depth]) == column for depth in range(1, len(leaf)))
