"""A table that is looked up in: many files with filters on ``email``, encrypted and plain twins.

pyarrow writes both.  The e-mails are distinct in the whole table and those of every row group are
spread over all there are, so that statistics tell nothing; other columns stand beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import secure_bloom as sb
from benchmarks.harness.data import add
from testing.tables import KEYRING, Mode, write

FPP = 0.01
#: An odd number: every row gets another number of ten digits.
_SPREAD = 2_654_435_761


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """Two tables of ``files`` files with ``groups`` row groups of ``rows`` rows each."""

    folder: Path
    files: int = 100
    groups: int = 10
    rows: int = 24_000
    note: int = 140
    amounts: int = 5

    @property
    def encrypted(self) -> Path:
        """Footer and three columns are encrypted, AES-GCM."""
        return self.folder / "encrypted"

    @property
    def plain(self) -> Path:
        """The same rows in clear."""
        return self.folder / "plain"

    @property
    def absent(self) -> int:
        """The first row that the table does not have."""
        return self.files * self.groups * self.rows

    @property
    def present(self) -> int:
        """Some row of it."""
        return 7 * self.rows // self.groups + 5

    def write(self) -> None:
        """Both tables and their filters, unless the folder has them already."""
        if (self.folder / "done").exists():
            return
        for table in (self.encrypted, self.plain):
            table.mkdir(parents=True, exist_ok=True)
        for part in range(self.files):
            self._write_file(part)
        for table in (self.encrypted, self.plain):
            add(table, {"email": sb.BloomFilterOptions(fpp=FPP)}, keys=KEYRING)
        (self.folder / "done").touch()

    def _write_file(self, part: int) -> None:
        rows = part_of(part, self.rows * self.groups, note=self.note, amounts=self.amounts)
        for table, mode in ((self.encrypted, Mode.ENCRYPTED), (self.plain, Mode.PLAIN)):
            write(
                table / f"part-{part:03d}.parquet",
                rows,
                mode,
                column_keys={"k_pii": ["email", "iban", "note"]},
                row_group_size=self.rows,
            )

    def few(self, table: Path) -> Path:
        """A tenth of a table's files, by links: all rows of all of them would fill the memory."""
        folder = self.folder / "few" / table.name
        if not folder.exists():
            folder.mkdir(parents=True)
            for path in sorted(table.iterdir())[: max(self.files // 10, 1)]:
                (folder / path.name).hardlink_to(path)
        return folder


def number_of(row: int) -> str:
    """The number that a row of the table has in its texts, or would have."""
    return f"{row * _SPREAD % 2**32:010d}"


def email_of(row: int) -> str:
    """The e-mail of a row of the table, or of one that it does not have."""
    return f"user-{number_of(row)}@somewhere.example.com"


def iban_of(row: int) -> str:
    """The account number of a row."""
    return f"DE{number_of(row).rjust(20, '7')}"


def part_of(part: int, count: int, *, note: int, amounts: int) -> pa.Table:
    """The rows of one file, with texts of ``note`` characters and ``amounts`` numbers."""
    rng = np.random.default_rng(part)
    ids = (np.arange(count) + part * count) * _SPREAD % 2**32
    number = pc.utf8_lpad(pa.array(ids).cast(pa.string()), 10, "0")
    cities = pa.array([f"city-{i:03d}" for i in range(300)])
    return pa.table(
        {
            "email": pc.binary_join_element_wise("user-", number, "@somewhere.example.com", ""),
            "iban": pc.binary_join_element_wise("DE", pc.utf8_lpad(number, 20, "7"), ""),
            "id": ids,
            "city": cities.take(pa.array(rng.integers(0, 300, count))),
            "note": texts(rng, count, note),
            **{f"amount{i}": rng.normal(size=count) for i in range(amounts)},
        }
    )


def texts(rng: np.random.Generator, count: int, length: int) -> pa.Array:
    """Texts that no codec makes smaller."""
    characters = rng.integers(48, 123, size=count * length, dtype=np.uint8)
    offsets = np.arange(0, len(characters) + 1, length, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(characters))
