"""Released readers answer the same before and after ``add``, in all types and encodings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.columns import CASE_IDS, CASES, COLUMNS, Column
from testing.compatibility import Compatibility, Ruling, Shown
from testing.judges import JUDGES, Answer, Judge, is_there
from testing.tables import Mode
from testing.typed_files import typed_file
from tests.interop.conftest import Pairs


def _judge(name: str) -> Judge:
    if not is_there(name):
        pytest.skip("needs other versions of readers: make judges")
    return Judge(name)


@pytest.fixture(scope="module", params=JUDGES)
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    with _judge(request.param) as found:
        yield found


#: What older readers looked up by other bytes than the format's; all others are slow.
OTHER_BYTES = ("FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY decimal")


def _quick_cases() -> list[tuple[Column, str]]:
    """Every such type, in turns plain and in a dictionary."""
    found = [it for it in COLUMNS if it.name == "BYTE_ARRAY" or it.name.startswith(OTHER_BYTES)]
    return [(it, ("PLAIN", "dictionary")[turn % 2]) for turn, it in enumerate(found)]


QUICK_CASES = _quick_cases()


@pytest.mark.parametrize(
    ("column", "encoding"),
    [
        pytest.param(*case, id=case_id, marks=[] if case in QUICK_CASES else [pytest.mark.slow])
        for case, case_id in zip(CASES, CASE_IDS, strict=True)
    ],
)
def test_a_released_reader_answers_the_same_after_add(
    pairs: Pairs, compatibility: Compatibility, judge: Judge, column: Column, encoding: str
) -> None:
    before, after = pairs(column, encoding, Mode.PLAIN)
    numbers = before.sample(6)
    found = judge.ask(before, numbers)
    assert judge.ask(after, numbers) == found
    compatibility.record(
        Ruling(judge.kind.title, judge.name, judge.version, column.name, encoding, _shown(found))
    )


def _shown(answer: Answer) -> Shown:
    if answer.rows is None:
        return Shown.NOT_READ
    # A lookup that finds nothing in a file without filters shows nothing.
    return Shown.LOOKUPS if answer.counts and all(answer.counts) else Shown.ROWS


def test_hyparquet_loses_the_text_of_bytes_that_are_no_text_unless_utf8_is_off(
    tmp_path: Path,
) -> None:
    """docs/compatibility.md says so: hyparquet looks for the text that it shows."""
    (binary,) = (column for column in COLUMNS if column.name == "BYTE_ARRAY")
    file = typed_file(tmp_path, binary, "PLAIN", row_groups=1)
    values = pa.array([b"\xff\xfe", b"\xc3\x28", b"text"], pa.binary())
    pq.write_table(pa.table({"x": values}), file.path)
    asked = [0, 1, 2]
    with _judge("hyparquet") as as_bytes, Judge("hyparquet", HYPARQUET_UTF8="1") as as_text:
        assert as_bytes.ask(file, asked).counts == as_text.ask(file, asked).counts == [1, 1, 1]
        sb.add_bloom_filters(file.path, columns=["x"])
        assert as_bytes.ask(file, asked).counts == [1, 1, 1]
        assert as_text.ask(file, asked).counts == [0, 0, 1]
