"""A column that no file has is an error of the run; other errors are those of single files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.encryption.access import Access
from secure_bloom.errors import PolicyError
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.schema import select, unknown_column
from secure_bloom.runs.column_check import require_in_one


def has_email(footer: Footer) -> None:
    if not select(footer.leaves, "email"):
        raise unknown_column("email", [leaf.name for leaf in footer.leaves])


def test_one_file_with_the_column_is_enough(tmp_path: Path) -> None:
    resolver = Access.of(None, None).resolver()
    (tmp_path / "0").write_bytes(b"PAR1 damaged")
    for number, name in enumerate(("id", "e_mail", "email"), 1):
        pq.write_table(pa.table({name: [1]}), tmp_path / str(number))
    files = [str(tmp_path / str(number)) for number in range(4)]
    require_in_one(files, resolver, has_email)
    require_in_one(files[:1], resolver, has_email)
    with pytest.raises(PolicyError, match="there is no column email"):
        require_in_one(files[:3], resolver, has_email)
