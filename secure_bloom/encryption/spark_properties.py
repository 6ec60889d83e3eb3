"""The Hadoop properties, as parquet-java reads them, that make Spark write as a policy says.

The properties can name only leaves without dots in their names.  Spark reports other columns only
when a task writes, 40 seconds into a job, or not at all, so :func:`check_spark_columns` finds them
before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.encryption.spark_ddl import Path
from secure_bloom.errors import PolicyError

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy

#: The Java package of our KMS clients.
JVM_PACKAGE = "secure_bloom.spark"
#: The property that names the class by which parquet-java encrypts and decrypts, and the class that
#: does it by properties. A reader needs no more: footers say which keys they want.
FACTORY_CLASS = "parquet.crypto.factory.class"
CRYPTO_FACTORY = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
#: parquet-java splits `parquet.encryption.column.keys` at these characters.
_SPARK_SEPARATORS = ",;:"


def spark_properties(
    footer_key: str,
    footer_mode: FooterMode,
    columns: Mapping[str, ColumnRule],
    encryption: EncryptionOptions,
    *,
    uniform: bool,
) -> dict[str, str]:
    """Return the properties, by names without the ``spark.hadoop.`` prefix.

    Raises PolicyError for rules that the properties cannot express.
    """
    # parquet-java takes the footer's key as it is: only spaces around it are lost.
    _check_spark_trims("the footer key", footer_key)
    return {
        FACTORY_CLASS: CRYPTO_FACTORY,
        **_keys(footer_key, columns, uniform=uniform),
        "parquet.encryption.plaintext.footer": _flag(footer_mode is FooterMode.SIGNED),
        "parquet.encryption.algorithm": str(encryption.algorithm),
        "parquet.encryption.data.key.length.bits": str(encryption.data_key_bits),
        "parquet.encryption.double.wrapping": _flag(encryption.double_wrapping),
        **_storage(encryption),
    }


def _storage(encryption: EncryptionOptions) -> dict[str, str]:
    # Inside is parquet-java's default.
    name = "parquet.encryption.key.material.store.internally"
    return {} if encryption.internal_storage else {name: _flag(False)}


def _keys(footer_key: str, columns: Mapping[str, ColumnRule], *, uniform: bool) -> dict[str, str]:
    # parquet-java refuses uniform.key together with footer.key or column.keys.
    if uniform and all(rule.key is None for rule in columns.values()):
        return {"parquet.encryption.uniform.key": footer_key}
    return {
        "parquet.encryption.footer.key": footer_key,
        "parquet.encryption.column.keys": _column_keys(columns),
        **({"parquet.encryption.complete.columns": "true"} if uniform else {}),
    }


def _column_keys(columns: Mapping[str, ColumnRule]) -> str:
    """Return ``k1:a,b;k2:c``, with keys and columns in alphabetical order."""
    paths: dict[str, list[str]] = {}
    # Sorted, so that one policy always gives one text: job configurations can be compared.
    for path, rule in sorted(columns.items()):
        if rule.key is not None:
            _check_spark_name("column", path)
            _check_spark_name("key", rule.key)
            paths.setdefault(rule.key, []).append(path)
    if not paths:
        raise PolicyError(
            "Spark cannot write an encrypted footer without an encrypted column",
            hint="give at least one column a key, or remove [footer]",
        )
    return ";".join(f"{key}:{','.join(paths[key])}" for key in sorted(paths))


def _check_spark_name(kind: str, name: str) -> None:
    if any(separator in name for separator in _SPARK_SEPARATORS):
        raise PolicyError(
            f"{kind} {name!r} cannot be named in parquet.encryption.column.keys, which is cut at "
            f"{' '.join(_SPARK_SEPARATORS)}",
            hint="an AWS key can go by its id or alias instead of its ARN",
        )
    _check_spark_trims(kind, name)


def _check_spark_trims(kind: str, name: str) -> None:
    if name != name.strip():
        raise PolicyError(f"{kind} {name!r} begins or ends with a space, which Spark cuts off")


def _flag(value: bool) -> str:
    return "true" if value else "false"


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

    def __contains__(self, column: str) -> bool:
        return column in self._leaves or column in self._below

    def problem(self, column: str) -> PolicyError | None:
        """Return why Spark cannot encrypt ``column`` by name, or None."""
        if column not in self:
            return PolicyError(
                f"there is no column {column}",
                hint=close_match(column, self._leaves),
                column=column,
            )
        below = self._below.get(column)
        if below:
            return PolicyError(
                f"{column} has columns inside: Spark encrypts leaves, each under its own name",
                hint=f"name instead: {', '.join(below)}",
                column=column,
            )
        if any("." in name for name in self._leaves[column]):
            return PolicyError(
                f"column {column} has a dot in its own name: parquet-java takes it for a nested "
                "one",
                hint=f"rename the column, for example to {column.replace('.', '_')}",
                column=column,
            )
        return None


def _split(column: str) -> Path:
    return tuple(column.split("."))
