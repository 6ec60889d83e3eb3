"""Released readers find the same rows before and after ``add``, in all types and encodings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.columns import CASES, Column
from testing.judges import FOLDER, JUDGES, Judge
from testing.typed_files import add_filter, typed_file


@pytest.fixture(scope="module", params=JUDGES)
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    if JUDGES[request.param] is not None and not (FOLDER / request.param).is_dir():
        pytest.skip("needs other versions of readers: make judges")
    with Judge(request.param) as found:
        yield found


#: What the older readers looked up by other bytes than the format's; all others are slow.
OTHER_BYTES = ("FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY decimal")


def _is_quick(column: Column, encoding: str) -> bool:
    is_bytes = column.name == "BYTE_ARRAY" or column.name.startswith(OTHER_BYTES)
    return is_bytes and encoding in ("PLAIN", "dictionary")


@pytest.mark.parametrize(
    ("column", "encoding"),
    [
        pytest.param(
            *case,
            id=f"{case[0].name}-{case[1]}".replace(" ", "_"),
            marks=[] if _is_quick(*case) else [pytest.mark.slow],
        )
        for case in CASES
    ],
)
def test_what_a_released_reader_finds_it_finds_after_add(
    tmp_path: Path, judge: Judge, column: Column, encoding: str
) -> None:
    file = typed_file(tmp_path, column, encoding)
    asked = [judge.condition(column, number) for number in file.sample(6)]
    before = judge.counts(file.path, asked)
    if column.name.startswith("FIXED_LEN_BYTE_ARRAY decimal") and encoding == "PLAIN":
        assert before is not None
        assert all(before)
    add_filter(file, fpp=0.0001)
    assert judge.counts(file.path, asked) == before
