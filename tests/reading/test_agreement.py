"""Whatever is asked of whatever files: exactly the rows that pyarrow.compute finds in them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.reading.table import table_files
from testing.quick_cases import examples
from testing.tables import KEYRING, Mode
from tests.reading.lakes import EVOLVING, POOLS, Part, expected, parts, predicates, same, whole


@st.composite
def lakes(draw: st.DrawFn, modes: list[Mode]) -> tuple[list[Part], Any, bool]:
    """Some files of one table, a predicate on its columns, and whether threads read them."""
    known = st.one_of(st.sampled_from(sorted(POOLS)), st.sampled_from(sorted(EVOLVING)))
    names = draw(st.lists(known, min_size=1, max_size=3, unique=True))
    files = draw(st.lists(parts(names, modes), min_size=1, max_size=3))
    present = sorted({name for file in files for name in file.table.column_names})
    return files, draw(predicates(present)), draw(st.booleans())


def check(files: list[Part], where: Any, in_threads: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        if in_threads:
            patched.setattr(table_files, "TINY", 0)
        for index, file in enumerate(files):
            file.write(Path(folder) / f"{index}.parquet")
        found = sb.read_table(folder, where=where, keys=KEYRING)
    table = whole([file.table for file in files], found.schema)
    assert same(found, expected(table, where))


@examples(15)
@given(lakes([Mode.PLAIN]))
def test_plain_files_give_the_rows_of_a_full_scan(lake: tuple[list[Part], Any, bool]) -> None:
    check(*lake)


@examples(10)
@given(lakes([Mode.PLAIN, Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM]))
def test_encrypted_files_give_the_rows_of_a_full_scan(lake: tuple[list[Part], Any, bool]) -> None:
    check(*lake)


@pytest.mark.slow
@settings(max_examples=3000)
@given(lakes(list(Mode)))
def test_many_more_lakes_give_the_rows_of_a_full_scan(lake: tuple[list[Part], Any, bool]) -> None:
    check(*lake)
