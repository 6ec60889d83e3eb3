"""A table of many types, written by Spark in every footer mode, whose values are known.

Row ``i`` holds the value of the even number ``2 i`` in each column; odd numbers are absent, and lie
between the others, so that no minimum or maximum excludes them.
"""

from __future__ import annotations

import enum
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from secure_bloom.encryption.kms import KmsClient
from secure_bloom.encryption.policy import KeyPolicy
from testing.spark.cluster import POLICY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class KeyringForPyarrow(pe.KmsClient):  # type: ignore[misc]
    """The Python keyring serving pyarrow, as the Java class serves parquet-java."""

    def __init__(self, keyring: KmsClient) -> None:
        super().__init__()
        self.keyring = keyring

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return self.keyring.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return self.keyring.unwrap_key(wrapped_key, master_key_identifier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: Spark's expression of ``{n}``, the value in Python, and the physical value."""

    sql: str
    value: Callable[[int], Any]
    stored: Callable[[int], int | float | str | bytes]

    def of(self, n: int | str) -> str:
        """The expression for a number, or for a column of numbers."""
        return self.sql.format(n=n)


def _cents(n: int) -> int:
    return 100 * n + 25


def _decimal(precision: int, stored: Callable[[int], int | bytes] = _cents) -> Column:
    return Column(
        sql=f"cast(concat({{n}}, '.25') AS decimal({precision}, 2))",
        value=lambda n: Decimal(_cents(n)).scaleb(-2),
        stored=stored,
    )


def _same(sql: str, value: Callable[[int], int | float | str]) -> Column:
    return Column(sql=sql, value=value, stored=value)


COLUMNS = {
    "text": _same("concat('user', {n}, '@example.com')", "user{}@example.com".format),
    "i64": _same("{n} * 1000003L", lambda n: n * 1000003),
    "i32": _same("cast({n} * 7 AS int)", lambda n: n * 7),
    "f64": _same("cast({n} AS double) / 8", lambda n: n / 8),
    "f32": _same("cast({n} AS float) / 4", lambda n: n / 4),
    "dec_int32": _decimal(9),
    "dec_int64": _decimal(18),
    "dec_fixed": _decimal(30, lambda n: _cents(n).to_bytes(13, "big")),
    "day": Column(
        sql="date_add(date'1970-01-01', cast({n} AS int))",
        value=lambda n: date(1970, 1, 1) + timedelta(days=n),
        stored=int,
    ),
    "stamp": Column(
        sql="timestamp_micros({n} * 1000001L)",
        value=lambda n: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=n * 1000001),
        stored=lambda n: n * 1000001,
    ),
}
#: Half of the columns come without dictionary, so that values are taken from pages there.
_NO_DICTIONARY = ("text", "i32", "f64", "dec_int64", "stamp")


class Mode(enum.Enum):
    """How Spark encrypts a table: the options of its write."""

    ENCRYPTED = "false"
    SIGNED = "true"
    UNIFORM = "uniform"

    @property
    def options(self) -> dict[str, str]:
        if self is Mode.UNIFORM:
            return {
                "parquet.encryption.footer.key": "",
                "parquet.encryption.column.keys": "",
                "parquet.encryption.uniform.key": "k_pii",
            }
        return {
            "parquet.encryption.footer.key": "k_footer",
            "parquet.encryption.column.keys": "k_pii:text,i64,dec_fixed;k_finance:dec_int32,f64",
            "parquet.encryption.plaintext.footer": self.value,
        }


def write(
    spark: SparkSession,
    folder: Path,
    *,
    mode: Mode = Mode.ENCRYPTED,
    rows: int = 6000,
    files: int = 2,
    **options: str,
) -> Path:
    """Write the table; several row groups a file."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    numbers = spark.range(0, 2 * rows, 2, files).withColumnRenamed("id", "n")
    table = numbers.selectExpr(*(f"{column.of('n')} AS {name}" for name, column in COLUMNS.items()))
    plain_values = {f"parquet.enable.dictionary#{name}": "false" for name in _NO_DICTIONARY}
    small = {"parquet.block.size": str(128 * 1024)}
    table.write.options(**mode.options, **plain_values, **small, **options).parquet(str(folder))
    return folder


def copy(table: Path, target: Path) -> Path:
    """The table again, its checksum files included."""
    return Path(shutil.copytree(table, target))


def data_files(table: Path | str) -> list[Path]:
    return sorted(Path(table).glob("*.parquet"))


def open_with_pyarrow(path: Path) -> pq.ParquetFile:
    """A file of any mode, opened with pyarrow's own decryption."""
    factory = pe.CryptoFactory(lambda _: KeyringForPyarrow(KeyPolicy.load(POLICY).kms_client()))
    keys = factory.file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    )
    return pq.ParquetFile(path, decryption_properties=keys)


def read_with_pyarrow(table: Path) -> pa.Table:
    return pa.concat_tables(open_with_pyarrow(path).read() for path in data_files(table))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """One row group, and the numbers whose values it holds."""

    path: Path
    ordinal: int
    numbers: range


def row_groups(table: Path) -> Iterator[RowGroup]:
    """The row groups in the order of the rows, as pyarrow counts them."""
    start = 0
    for path in data_files(table):
        metadata = open_with_pyarrow(path).metadata
        for ordinal in range(metadata.num_row_groups):
            end = start + 2 * metadata.row_group(ordinal).num_rows
            yield RowGroup(path=path, ordinal=ordinal, numbers=range(start, end, 2))
            start = end


def footer_start(path: Path) -> int:
    """Where the footer of a file begins: all before it must stay as it is."""
    content = path.read_bytes()
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")
