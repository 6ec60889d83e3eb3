"""The container of indexes: byte for byte there and back, and nothing hostile gets through."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.paimon import ColumnIndexes, FileIndex, Index
from secure_bloom.paimon.container import MAGIC
from secure_bloom.running.memory_budget import MemoryBudgetError
from tests.paimon.vectors import load

CASES = {case["name"]: case for case in load("container")["cases"]}
WRITTEN = {name: case for name, case in CASES.items() if "columns" in case}
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INDEXES = st.dictionaries(NAMES, st.none() | st.binary(min_size=1, max_size=20), max_size=3)


def file_of(name: str) -> bytes:
    return base64.b64decode(CASES[name]["file"])


@pytest.mark.parametrize("case", WRITTEN.values(), ids=WRITTEN)
def test_what_java_wrote_is_read_and_written_byte_for_byte(case: dict[str, Any]) -> None:
    content = base64.b64decode(case["file"])
    read = FileIndex.from_bytes(content)
    found = [[c.name, [[i.type, i.body] for i in c.indexes]] for c in read.columns]
    wanted = [
        [name, [[kind, body and base64.b64decode(body)] for kind, body in indexes]]
        for name, indexes in case["columns"]
    ]
    assert found == wanted
    assert read.to_bytes() == content


@pytest.mark.parametrize("name", ["redundant bytes in the header", "trailing bytes after the body"])
def test_bytes_that_nobody_knows_are_carried_along(name: str) -> None:
    assert FileIndex.from_bytes(file_of(name)).to_bytes() == file_of(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("wrong magic", "magic"),
        ("version 2", "version 2"),
        ("cut in the header", "header takes 147 bytes, the file has 138"),
        ("cut in the body", "takes bytes 147..175"),
        ("cut in the magic", "magic"),
    ],
)
def test_what_java_cannot_read_is_an_error(name: str, told: str) -> None:
    with pytest.raises(SecureBloomError, match=told):
        FileIndex.from_bytes(file_of(name))


def test_an_index_takes_the_place_of_its_own_kind_and_leaves_the_others() -> None:
    before = FileIndex.from_bytes(file_of("bloom and bitmap on one column"))
    new = Index(type="bloom-filter", body=b"\0\0\0\1\xff")
    after = before.with_indexes([("k", new), ("z", Index(type="bloom-filter", body=None))])
    read = FileIndex.from_bytes(after.to_bytes())
    assert read.indexes("k") == (before.indexes("k")[0], new)
    assert read.indexes("z") == (Index(type="bloom-filter", body=None),)


@given(st.dictionaries(NAMES, INDEXES, max_size=4), st.binary(max_size=9), st.binary(max_size=9))
def test_any_indexes_come_back(
    columns: dict[str, dict[str, bytes | None]], redundant: bytes, trailing: bytes
) -> None:
    written = FileIndex(
        columns=tuple(
            ColumnIndexes(
                name=name, indexes=tuple(Index(type=kind, body=b) for kind, b in indexes.items())
            )
            for name, indexes in columns.items()
        ),
        redundant=redundant,
        trailing=trailing,
    )
    assert FileIndex.from_bytes(written.to_bytes()) == written


@given(st.sampled_from(sorted(WRITTEN)), st.data())
def test_a_damaged_container_is_read_or_refused(name: str, data: st.DataObject) -> None:
    content = bytearray(file_of(name))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    for damaged in (bytes(content), bytes(content[:cut])):
        try:
            FileIndex.from_bytes(damaged).to_bytes()
        except SecureBloomError:
            continue


def _container(*columns: bytes, count: int | None = None, body: bytes = b"") -> bytes:
    inner = b"".join(columns)
    length = 16 + 4 + len(inner) + 4
    number = len(columns) if count is None else count
    head = struct.pack(">qiii", 1493475289347502, 1, length, number)
    return head + inner + struct.pack(">i", 0) + body


def _column(name: bytes, *places: tuple[int, int], count: int | None = None) -> bytes:
    indexes = b"".join(b"\0\1t" + struct.pack(">ii", *place) for place in places)
    number = len(places) if count is None else count
    return struct.pack(">H", len(name)) + name + struct.pack(">i", number) + indexes


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (_container()[:15], "ends inside its header"),
        (_container(count=1 << 30), "number of columns is 1073741824"),
        (_container(count=-1), "number of columns is -1"),
        (_container(_column(b"c", count=1 << 28)), "number of indexes"),
        (_container(_column(b"c", (0, 20)), body=b"x"), "takes bytes 0..20"),
        (_container(_column(b"c", (42, -1)), body=b"x"), "takes bytes 42..41"),
        (_container(_column(b"c", (-1, 3)), body=b"x"), "takes bytes -1..2"),
        (_container(_column(b"c", (42, 1 << 30)), body=b"x"), "takes bytes 42.."),
        (_container(_column(b"c", (-1, 0), (-1, 0))), "two indexes of the type 't'"),
        (_container(_column(b"\xc0\x81")), "modified UTF-8"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_hostile_container_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        FileIndex.from_bytes(content)


def test_indexes_that_share_bytes_cannot_grow_beyond_the_file() -> None:
    columns = [_column(b"c%d" % i, (0, 0)) for i in range(10)]
    start = len(_container(*columns))
    shared = [_column(b"c%d" % i, (start, 1000)) for i in range(10)]
    with pytest.raises(FormatError, match="overlap"):
        FileIndex.from_bytes(_container(*shared, body=bytes(1000)))


def test_all_indexes_of_a_column_that_is_listed_twice_are_kept() -> None:
    first, second = Index(type="bitmap", body=b"a"), Index(type="future", body=b"b")
    listed = FileIndex(
        columns=(
            ColumnIndexes(name="c", indexes=(first,)),
            ColumnIndexes(name="c", indexes=(second,)),
        )
    )
    read = FileIndex.from_bytes(listed.to_bytes())
    new = Index(type="bloom-filter", body=None)
    assert read.with_indexes([("c", new)]).indexes("c") == (first, second, new)


@pytest.mark.parametrize("column", [bytes(6), bytes(2) + b"\0\0\0\1" + bytes(10)])
def test_a_header_of_many_columns_stays_within_the_memory_budget(
    column: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file of a gigabyte would become ten gigabytes of columns."""
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "1MiB")
    columns = 10_000
    length = 8 + 4 + 4 + 4 + columns * len(column) + 4
    start = MAGIC + b"".join(it.to_bytes(4, "big") for it in (1, length, columns))
    with pytest.raises(MemoryBudgetError, match="a file index takes"):
        FileIndex.from_bytes(start + columns * column + bytes(4))
