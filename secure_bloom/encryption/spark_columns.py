"""Find columns that Spark cannot encrypt as a policy says, before Spark writes.

Spark's properties can name only leaves without dots in their names.  Spark reports other columns
only when a task writes, 40 seconds into a job, or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Final

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.spark_ddl import Path
from secure_bloom.errors import PolicyError

#: The end of the hint about a rule that other writers can follow.
_SPARK_ALONE: Final = "this is for Spark's writer alone: reencrypt, add and audit take the rule"


def check_spark_columns(policy: KeyPolicy, leaves: Collection[Path] | None = None) -> None:
    """Raise the first of :func:`spark_problems`."""
    for problem in spark_problems(policy, leaves):
        raise problem


def spark_problems(
    policy: KeyPolicy, leaves: Collection[Path] | None = None
) -> Iterator[PolicyError]:
    """Yield an error for each part of the policy that Spark cannot write.

    ``leaves`` are the leaves of the table, if known. Without them only problems of the policy
    itself are found.
    """
    if policy.tables:
        # Each table is written by properties of its own.
        for one in policy.tables.values():
            yield from spark_problems(one, leaves)
        return
    policy = policy if leaves is None else policy.for_columns(leaves)
    try:
        if policy.footer_key is not None:
            policy.spark_properties()
    except PolicyError as error:
        yield error
    keyed = [path for path, rule in policy.columns.items() if rule.key is not None]
    known = SparkColumns(map(_split, keyed) if leaves is None else leaves)
    for column in keyed:
        problem = known.problem(column)
        if problem is not None:
            yield problem


class SparkColumns:
    """The leaves of a table, as Spark encrypts them by name."""

    def __init__(self, leaves: Iterable[Path]) -> None:
        self._leaves = {".".join(leaf): leaf for leaf in leaves}
        self._below: dict[str, list[str]] = {}
        for name, leaf in self._leaves.items():
            for depth in range(1, len(leaf)):
                self._below.setdefault(".".join(leaf[:depth]), []).append(name)

    @cached_property
    def _names(self) -> CloseNames:
        return CloseNames(self._leaves)

    def __contains__(self, column: str) -> bool:
        return column in self._leaves or column in self._below

    def problem(self, column: str) -> PolicyError | None:
        """Return why Spark cannot encrypt ``column`` by name, or None."""
        if column not in self:
            return PolicyError(
                f"there is no column {column}",
                hint=close_match(column, self._names),
                column=column,
            )
        below = self._below.get(column)
        if below:
            return PolicyError(
                f"{column} has columns inside: Spark encrypts leaves, each under its own name",
                hint=f"name instead: {', '.join(below)}; {_SPARK_ALONE}",
                column=column,
            )
        if any("." in name for name in self._leaves[column]):
            return PolicyError(
                f"column {column} has a dot in its own name: parquet-java takes it for a nested "
                "one",
                hint=f"rename the column, for example to {column.replace('.', '_')}; "
                f"{_SPARK_ALONE}",
                column=column,
            )
        return None


def _split(column: str) -> Path:
    return tuple(column.split("."))
