"""Row groups that are judged together, by the C extension: the answers are those of the steps."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import IntegrityError, KeyUnavailableError, SecureBloomError
from secure_bloom.kernels import extension
from secure_bloom.reading.pruning.batch import TableSurvivors
from secure_bloom.reading.pruning.file_pruner import FilePruner
from secure_bloom.reading.pruning.filter_reads import (
    ANSWER_UNUSUAL,
    FilterPlaces,
    Hashes,
    ask_together,
    read_filters,
)
from secure_bloom.reading.pruning.steps import bloom_filters
from secure_bloom.storage import InputFile
from testing.quick_cases import examples
from testing.surgery import edit_column, edit_footer, filter_place, flip, opened
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, made_once, write
from testing.thrift.metadata import ColumnMetaData
from tests.reading.lakes import POOLS, Part, expected, parts, predicates, same

ROWS, GROUP = 2000, 250
GROUPS = ROWS // GROUP
PRESENT = "user77@example.com"
#: Between the bounds of every row group, and in no filter.
ABSENT = "user77@nobody.example.com"


#: These tests are about the C extension.
pytestmark = pytest.mark.parametrize("has_extension", [True])


@contextmanager
def steps_only() -> Iterator[None]:
    """Only the steps, without the C extension."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(extension, "native", None)
        yield


def lake(folder: Path, mode: Mode = Mode.ENCRYPTED, **options: Any) -> Path:
    """All distinct e-mails and IBANs with filters, in no order and without dictionaries."""
    if options:
        _write_lake(folder, mode, **options)
    else:
        _write_common_lake(folder, mode)
    return folder / "x.parquet"


def _write_lake(folder: Path, mode: Mode, **options: Any) -> None:
    options = {"use_dictionary": False, "row_group_size": GROUP, **options}
    path = write(folder / "x.parquet", customers(ROWS), mode, **options)
    assert not sb.add_bloom_filters(path, columns=["email", "iban"], keys=KEYRING).failed


_write_common_lake = made_once(_write_lake)


def left(path: Path | str, where: Any, **options: Any) -> list[tuple[str, int, Any]]:
    """The row groups of a plan, with their ranges."""
    plan = sb.plan_read(path, where=where, **{"keys": KEYRING, **options})
    return [(f.path, g.row_group, g.ranges) for f in plan.files for g in f.row_groups]


def failure(path: Path, where: Any, **options: Any) -> tuple[Any, ...]:
    """The class of a read's error, and where it says it is."""
    with pytest.raises(SecureBloomError) as caught:
        left(path, where, **options)
    return type(caught.value), caught.value.row_group, caught.value.column


@pytest.fixture
def checked_by_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many chunks had their filters checked_by_steps by the steps, file by file."""
    counts: list[int] = []
    real = read_filters

    def spy(file: InputFile, chunks: dict[Any, Any]) -> Any:
        counts.append(len(chunks))
        return real(file, chunks)

    monkeypatch.setattr(bloom_filters, "read_filters", spy)
    return counts


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The row groups that were left, each time that some were judged together."""
    found: list[list[int]] = []
    real = FilePruner.keep

    def spy(self: FilePruner, of: Any) -> None:
        found.append(list(of))
        real(self, of)

    monkeypatch.setattr(FilePruner, "keep", spy)
    return found


# --- The same answers ---

_WHOLE = sorted(set(POOLS) - {"flag", "f16", "f32", "f64"})


@st.composite
def _lookups(draw: st.DrawFn, names: list[str]) -> Any:
    name = draw(st.sampled_from(names))
    pool = POOLS[name][1]
    if draw(st.booleans()):
        return name, "=", draw(st.sampled_from(pool))
    return (
        name,
        "in",
        draw(st.lists(st.sampled_from(pool), max_size=4)) * draw(st.sampled_from([1, 20])),
    )


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[Part], Any]:
    names = draw(st.lists(st.sampled_from(_WHOLE), min_size=1, max_size=2, unique=True))
    files = draw(st.lists(parts(names, list(Mode)), min_size=1, max_size=2))
    present = sorted({name for file in files for name in file.table.column_names})
    one = _lookups(present)
    two = st.tuples(st.sampled_from(["and", "and", "or"]), one, one)
    return files, draw(st.one_of(one, two, predicates(present)))


@dataclass(frozen=True, slots=True)
class _Damage:
    """One byte that is changed: in the footer, in a Bloom filter, or anywhere."""

    region: str
    at: int
    flipped: int

    def apply(self, path: Path, file: Part) -> None:
        content = bytearray(path.read_bytes())
        region = slice(len(content) - 8 - int.from_bytes(content[-8:-4], "little"), len(content))
        if self.region == "filter" and file.filters and file.table.num_rows:
            region = filter_place(path, 0, file.filters[0])
        elif self.region == "anywhere":
            region = slice(0, len(content))
        content[region.start + self.at % (region.stop - region.start)] ^= self.flipped
        path.write_bytes(content)


_DAMAGES = st.builds(
    _Damage,
    st.sampled_from(["footer", "filter", "anywhere"]),
    st.integers(0, 2**20),
    st.integers(1, 255),
)


def _write(folder: Path, files: list[Part], *, coarse: bool) -> None:
    for index, file in enumerate(files):
        path = folder / f"{index}.parquet"
        file.write(path)
        if coarse and file.filters:
            # A filter of one block for many values says "maybe" now and then.
            options = dict.fromkeys(file.filters, sb.BloomFilterOptions(fpp=0.5))
            sb.add_bloom_filters(path, columns=options, keys=KEYRING)


def _outcome(folder: Path, where: Any, *, compiled: bool) -> Any:
    """The row groups that one of the two ways leaves, or the class of its error."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(extension, "native", extension.native if compiled else None)
        try:
            return left(folder, where)
        except SecureBloomError as error:
            return type(error)


@examples(25)
@given(_tables(), st.booleans())
def test_both_ways_leave_the_same(table: tuple[list[Part], Any], coarse: bool) -> None:
    files, where = table
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, files, coarse=coarse)
        found = _outcome(folder, where, compiled=True)
        assert found == _outcome(folder, where, compiled=False)
        rows = sb.read_table(folder, where=where, keys=KEYRING)
    whole = pa.concat_tables([file.table for file in files], promote_options="default")
    assert same(rows, expected(whole, where))


@examples(25)
@given(_tables(), _DAMAGES)
def test_both_ways_agree_on_damaged_files(table: tuple[list[Part], Any], damage: _Damage) -> None:
    """They leave the same row groups, or both fail: neither passes over what the other refuses."""
    files, where = table
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The first file stays whole: the C extension reads footers whose schema was seen before.
        _write(folder, [files[0], *files], coarse=False)
        damage.apply(folder / "1.parquet", files[0])
        found = _outcome(folder, where, compiled=True)
        assert found == _outcome(folder, where, compiled=False)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    "where",
    [
        [("email", "=", PRESENT)],
        [("email", "=", "")],
        [("email", "in", [])],
        [("email", "in", [f"user{i}@nobody.example.com" for i in range(1999)] + [PRESENT])],
        [("email", "=", PRESENT), ("iban", "=", f"DE{77:020d}")],
        [("email", "=", PRESENT), ("iban", "=", f"DE{78:020d}")],
        [("email", "in", [PRESENT, ABSENT]), ("email", "in", [PRESENT, "user78@example.com"])],
        [("email", "=", PRESENT), ("city", "=", "rome")],
        [("email", "=", PRESENT), ("id", "=", 77)],
        [[("email", "=", PRESENT)], [("iban", "=", f"DE{78:020d}")]],
    ],
)
def test_every_shape_of_a_lookup(tmp_path: Path, mode: Mode, where: Any) -> None:
    path = lake(tmp_path, mode)
    found = left(path, where)
    with steps_only():
        assert found == left(path, where)
        rows = sb.read_table(path, where=where, keys=KEYRING)
    assert sb.read_table(path, where=where, keys=KEYRING).equals(rows)


def test_files_that_differ_in_type_folder_and_filters(
    tmp_path: Path, kept: list[list[int]]
) -> None:
    for index, of in enumerate([pa.int32(), pa.int64(), pa.int64()]):
        folder = tmp_path / f"day={index}"
        folder.mkdir()
        numbers = pa.array([*range(0, 200, 2), None], of)
        path = write(folder / "x.parquet", pa.table({"a": numbers}), row_group_size=20)
        if index < 2:
            assert not sb.add_bloom_filters(path, columns=["a"]).failed
    where = [("a", "in", [8, 9, 2**40])]
    assert [group for _, group, _ in left(tmp_path, where)] == [0, 0, 0]
    assert [
        Path(p).parent.name for p, _, _ in left(tmp_path, [("a", "=", 8), ("day", "=", 1)])
    ] == ["day=1"]
    assert kept
    assert sb.read_table(tmp_path, where=where).column("a").to_pylist() == [8, 8, 8]


def test_empty_files_and_chunks_of_nulls(tmp_path: Path, kept: list[list[int]]) -> None:
    write(tmp_path / "0.parquet", pa.table({"a": pa.array([], pa.string())}))
    nulls = pa.table({"a": pa.array([None] * 20 + ["x"] * 10, pa.string())})
    path = write(tmp_path / "1.parquet", nulls, row_group_size=10)
    assert not sb.add_bloom_filters(path, columns=["a"]).failed
    assert [group for _, group, _ in left(tmp_path, [("a", "=", "x")])] == [2]
    assert kept == [[], [2]]


def test_floats_and_booleans_are_left_to_the_steps(tmp_path: Path, kept: list[list[int]]) -> None:
    table = pa.table({"f": [1.5, -0.0, float("nan")], "b": [True, False, None]})
    path = write(tmp_path / "x.parquet", table)
    assert not sb.add_bloom_filters(path, columns=["f"]).failed
    assert sb.read_table(path, where=[("f", "=", 0.0)]).num_rows == 1
    assert sb.read_table(path, where=[("b", "=", True)]).num_rows == 1
    assert kept == []


# --- What is checked_by_steps ---


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What was read for the plans so far, without the footers: (requests, bytes)."""
    found: list[tuple[int, int]] = []
    real = FilePruner.plan

    def spy(self: FilePruner) -> Any:
        # A file that is over is not opened.
        file = self._file
        found.append((0, 0) if file is None else (file.requests, file.bytes_read))
        return real(self)

    monkeypatch.setattr(FilePruner, "plan", spy)
    return found


def _span(path: Path, *names: str, groups: int = GROUPS) -> int:
    """Bytes from the first filter of the columns to the end of the last."""
    places = [filter_place(path, group, name) for group in range(groups) for name in names]
    start, stop = min(p.start for p in places), max(p.stop for p in places)
    return int(stop - start)


@pytest.mark.parametrize("mode", list(Mode))
def test_filters_are_read_once_in_one_request(
    tmp_path: Path, mode: Mode, requests: list[tuple[int, int]], checked_by_steps: list[int]
) -> None:
    path = lake(tmp_path, mode)
    assert len(left(path, [("email", "in", [PRESENT, ABSENT])])) == 1
    both = [("email", "in", [PRESENT, ABSENT]), ("iban", "=", f"DE{77:020d}")]
    assert len(left(path, both)) == 1
    assert requests == [(1, _span(path, "email")), (1, _span(path, "email", "iban"))]
    # What passed is not checked_by_steps again.
    assert not checked_by_steps


def test_filters_that_stand_apart_are_read_one_by_one(
    tmp_path: Path, requests: list[tuple[int, int]], checked_by_steps: list[int]
) -> None:
    path = lake(tmp_path, Mode.PLAIN)
    far = filter_place(path, 0, "email")
    stored = path.read_bytes()[far]

    def move(it: Any) -> bytes:
        chunk = it.footer.metadata.row_groups[0].columns[0].meta_data
        chunk.bloom_filter_offset = it.footer.tail.offset + 300_000
        return b"\0" * 300_000 + stored

    edit_footer(path, move)
    assert len(left(path, [("email", "=", PRESENT)])) == 1
    assert requests[0][0] == 2
    assert not checked_by_steps


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
def test_filters_of_row_groups_that_bounds_rule_out_are_not_read(
    tmp_path: Path, mode: Mode, requests: list[tuple[int, int]], checked_by_steps: list[int]
) -> None:
    table = customers(ROWS).sort_by("email")
    path = write(tmp_path / "x.parquet", table, mode, row_group_size=GROUP, use_dictionary=False)
    assert not sb.add_bloom_filters(path, columns=["email"], keys=KEYRING).failed
    value = table.column("email")[3 * GROUP + 5].as_py()
    assert [group for _, group, _ in left(path, [("email", "=", value)])] == [3]
    assert [group for _, group, _ in left(path, [("email", "=", value), ("id", "=", -1)])] == []
    place = filter_place(path, 3, "email")
    assert requests == [(1, place.stop - place.start), (0, 0)]
    assert not checked_by_steps


def test_a_dictionary_smaller_than_the_filter_is_read_instead(
    tmp_path: Path, requests: list[tuple[int, int]], kept: list[list[int]]
) -> None:
    table = pa.table({"a": ["a", "c"] * 1000})
    path = write(tmp_path / "x.parquet", table, row_group_size=500)
    assert not sb.add_bloom_filters(path, columns=["a"]).failed
    assert left(path, [("a", "=", "b")]) == []
    assert kept == [[0, 1, 2, 3]]
    place = filter_place(path, 0, "a")
    with opened(path) as it:
        meta_data = it.chunk(0, "a").meta_data
    dictionary = meta_data.data_page_offset - (meta_data.dictionary_page_offset or 0)
    assert dictionary < place.stop - place.start
    # One for each row group, with its pages' headers, and none of filters.
    assert requests == [(4, 4 * meta_data.total_compressed_size)]


def test_an_explained_read_goes_through_the_steps(tmp_path: Path, kept: list[list[int]]) -> None:
    report = sb.explain(lake(tmp_path), where=[("email", "=", PRESENT)], keys=KEYRING)
    assert report.skipped == {"Bloom filter": GROUPS - 1}
    assert kept == []


# --- Errors ---


def _same_failure(path: Path, where: Any, **options: Any) -> tuple[Any, ...]:
    found = failure(path, where, **options)
    with steps_only():
        assert failure(path, where, **options) == found
    return found


EMAIL = [("email", "=", PRESENT)]
BOTH = [("email", "=", PRESENT), ("iban", "=", f"DE{77:020d}")]


@pytest.mark.parametrize("where", [EMAIL, BOTH])
@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM])
@pytest.mark.parametrize("place", [2, 20, -1])
def test_a_tampered_module_is_an_error(tmp_path: Path, mode: Mode, place: int, where: Any) -> None:
    path = lake(tmp_path, mode)
    found = filter_place(path, 3, "email")
    flip(path, (found.start if place >= 0 else found.stop) + place)
    error, row_group, column = _same_failure(path, where)
    assert (row_group, column) == (3, "email")
    assert place == 2 or error is IntegrityError


def test_exchanged_filters_are_an_error(tmp_path: Path) -> None:
    path = lake(tmp_path)
    one, other = (filter_place(path, group, "email") for group in (2, 5))
    content = bytearray(path.read_bytes())
    content[one], content[other] = content[other], content[one]
    path.write_bytes(content)
    assert _same_failure(path, EMAIL) == (IntegrityError, 2, "email")


def _no_length(meta_data: ColumnMetaData) -> None:
    del meta_data.bloom_filter_length


def _set(**values: int) -> Callable[[ColumnMetaData], None]:
    def change(meta_data: ColumnMetaData) -> None:
        for name, value in values.items():
            setattr(meta_data, name, value)

    return change


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
@pytest.mark.parametrize(
    "change",
    [
        _set(bloom_filter_length=0),
        _set(bloom_filter_length=-1),
        _set(bloom_filter_length=40),
        _set(bloom_filter_length=1),
        _set(bloom_filter_length=2**31 - 1),
        _set(bloom_filter_length=-(2**31)),
        _set(bloom_filter_offset=-1),
        _set(bloom_filter_offset=2**40),
        _set(bloom_filter_offset=2**62 - 1),
        _set(bloom_filter_offset=-(2**62)),
        _set(bloom_filter_offset=4),
    ],
)
@pytest.mark.parametrize("where", [EMAIL, BOTH])
def test_impossible_offsets_and_lengths_of_filters_are_errors(
    tmp_path: Path, mode: Mode, change: Callable[[ColumnMetaData], None], where: Any
) -> None:
    path = lake(tmp_path, mode)
    edit_column(path, 4, "email", change)
    _same_failure(path, where)


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
def test_a_length_that_is_not_said_is_found_out(
    tmp_path: Path, mode: Mode, checked_by_steps: list[int]
) -> None:
    path = lake(tmp_path, mode)
    edit_column(path, 4, "email", _no_length)
    with steps_only():
        wanted = left(path, EMAIL)
    assert left(path, EMAIL) == wanted
    assert checked_by_steps == [GROUPS, 1]


#: Behind `numBytes`: algorithm, hash and compression, a union of an empty structure each.
_REST = bytes.fromhex("1c1c0000 1c1c0000 1c1c0000 00".replace(" ", ""))


def _replace_header(path: Path, row_group: int, header: Callable[[int], bytes]) -> None:
    """Put a filter with another header, made of its size, before the footer."""
    place = filter_place(path, row_group, "email")
    stored = path.read_bytes()[place]
    size = len(stored) // 32 * 32
    new = header(size) + stored[-size:]

    def move(it: Any) -> bytes:
        chunk = it.footer.metadata.row_groups[row_group].columns[0].meta_data
        chunk.bloom_filter_offset = it.footer.tail.offset
        chunk.bloom_filter_length = len(new)
        return new

    edit_footer(path, move)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def test_the_rest_of_a_header_is_what_is_written() -> None:
    header = b"\x15" + _varint(2 * 32) + _REST
    assert encode_bloom_filter(SplitBlockBloomFilter(1), None)[:-32] == header


@pytest.mark.parametrize(
    "header",
    [
        # A field that no reader knows, and headers of fields in their long form.
        lambda size: b"\x15" + _varint(2 * size) + _REST[:-1] + b"\x65\x0e\x00",
        lambda size: b"\x05\x02" + _varint(2 * size) + _REST,
        lambda size: b"\x15" + _varint(2 * size) + b"\x0c\x04" + _REST[1:],
    ],
)
def test_headers_in_other_forms_are_understood(
    tmp_path: Path, header: Callable[[int], bytes]
) -> None:
    path = lake(tmp_path, Mode.PLAIN)
    wanted = left(path, EMAIL)
    for group in range(GROUPS):
        _replace_header(path, group, header)
    assert left(path, EMAIL) == wanted
    assert len(wanted) == 1


@pytest.mark.parametrize(
    "header",
    [
        lambda size: b"\x15" + _varint(2 * (size - 32)) + _REST,
        lambda size: b"\x15" + _varint(2 * (size + 32)) + _REST,
        lambda size: b"\x15" + _varint(2 * size - 2) + _REST,
        lambda size: b"\x15" + _varint(2 * size - 1) + _REST,
        lambda _size: b"\x15" + b"\xff" * 9 + b"\x01" + _REST,
        lambda _size: b"\x15" + b"\xff" * 40 + _REST,
        lambda _size: b"\x15\x00" + _REST,
        lambda size: b"\x15" + _varint(2 * size) + _REST.replace(b"\x1c\x1c", b"\x1c\x2c", 1),
        lambda size: b"\x15" + _varint(2 * size) + _REST[:4] + b"\x1c\x2c\0\0" + _REST[8:],
        lambda size: b"\x15" + _varint(2 * size) + _REST[:8] + b"\x1c\x2c\0\0\0",
    ],
)
def test_other_headers_are_errors(tmp_path: Path, header: Callable[[int], bytes]) -> None:
    path = lake(tmp_path, Mode.PLAIN)
    _replace_header(path, 6, header)
    assert _same_failure(path, EMAIL)[1:] == (6, "email")


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED])
def test_a_key_that_is_missing(tmp_path: Path, mode: Mode) -> None:
    path = lake(tmp_path, mode)
    known = Keyring(master_keys={k: v for k, v in MASTER_KEYS.items() if k != "k_finance"})
    error, _, column = failure(path, BOTH, keys=known, columns=["email"])
    assert issubclass(error, KeyUnavailableError)
    with steps_only():
        # The row group is the first that is looked at.
        assert failure(path, BOTH, keys=known, columns=["email"])[::2] == (error, column)
    assert column == "iban"
    some: Any = {"keys": known, "columns": ["email"], "without_filter_keys": True}
    found = left(path, BOTH, **some)
    with steps_only():
        assert left(path, BOTH, **some) == found
    assert len(found) == 1
    assert sb.read_table(path, where=BOTH, **some).column("email").to_pylist() == [PRESENT]


def test_no_cipher_is_used_for_a_plain_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake(tmp_path, column_keys={"k_pii": ["iban"]})
    monkeypatch.setattr(ColumnCipher, "decrypt", None)
    with opened(path) as it:
        is_plain = it.chunk(0, "email").cipher is None
    assert is_plain
    assert len(left(path, EMAIL)) == 1


# --- Bounds ---


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-5, -1, 0, 3], pa.int8()),
        pa.array([-(2**31), -1, 0, 2**31 - 1], pa.int32()),
        pa.array([-(2**63), -1, 0, 2**63 - 1], pa.int64()),
        pa.array([0, 1, 2**31, 2**32 - 1], pa.uint32()),
        pa.array([0, 1, 2**63, 2**64 - 1], pa.uint64()),
        pa.array(["", "a", "é", "\U0010ffff"], pa.string()),
        pa.array([b"", b"\0", b"\x7f", b"\x80"], pa.binary()),
        pa.array([b"\0" * 16, b"\x7f" * 16, b"\x80" * 16, b"\xff" * 16], pa.uuid()),
        pa.array(POOLS["date"][1], pa.date32()),
        pa.array(POOLS["time"][1], pa.time64("us")),
        pa.array(POOLS["ts"][1], pa.timestamp("us")),
        pa.array(POOLS["d9"][1], pa.decimal128(9, 2)),
        pa.array(POOLS["d30"][1], pa.decimal128(30, 4)),
    ],
)
@pytest.mark.parametrize("as_integer", [False, True])
def test_bounds_alone_exclude(
    tmp_path: Path, values: pa.Array, as_integer: bool, kept: list[list[int]]
) -> None:
    """Each row group has one value, and no filter: what is left has the value sought."""
    path = write(
        tmp_path / "x.parquet",
        pa.table({"a": values}),
        row_group_size=1,
        use_dictionary=False,
        store_decimal_as_integer=as_integer,
    )
    for index, value in enumerate(values):
        assert [group for _, group, _ in left(path, [("a", "=", value)])] == [index]
    assert kept == [[index] for index in range(len(values))]


def _statistics(**values: bytes | int | None) -> Callable[[ColumnMetaData], None]:
    def change(meta_data: ColumnMetaData) -> None:
        for name, value in values.items():
            if value is None:
                delattr(meta_data.statistics, name)
            else:
                setattr(meta_data.statistics, name, value)

    return change


_SEVEN, _NINE, _MINUS = ((n).to_bytes(8, "little", signed=True) for n in (7, 9, -1))
_NO_NEW: dict[str, bytes | int | None] = {"min_value": None, "max_value": None}


@pytest.mark.parametrize(
    ("changed", "is_left"),
    [
        ({}, False),
        ({"min_value": _SEVEN, "max_value": _NINE}, True),
        ({"min_value": _NINE, "max_value": _NINE}, False),
        ({"min_value": _NINE, "max_value": _SEVEN}, True),
        ({"min_value": _MINUS, "max_value": _NINE}, True),
        ({"min_value": _SEVEN[:4], "max_value": _SEVEN[:4]}, True),
        ({"min_value": b"", "max_value": b""}, True),
        ({**_NO_NEW}, True),
        ({**_NO_NEW, "min": _NINE, "max": _NINE}, False),
        ({**_NO_NEW, "min": _MINUS, "max": _NINE}, True),
        ({**_NO_NEW, "min": _NINE}, True),
        ({"min_value": None, "min": _NINE, "max": _NINE}, False),
        ({"null_count": 10}, False),
        ({**_NO_NEW, "null_count": 11}, True),
    ],
)
@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
def test_what_statistics_say(
    tmp_path: Path, changed: dict[str, Any], is_left: bool, mode: Mode, kept: list[list[int]]
) -> None:
    table = pa.table({"a": list(range(10, 20)), "b": ["x"] * 10})
    path = write(
        tmp_path / "x.parquet", table, mode, column_keys={"k_pii": ["a"]}, use_dictionary=False
    )
    edit_column(path, 0, "a", _statistics(min=None, max=None))
    edit_column(path, 0, "a", _statistics(**changed))
    with steps_only():
        assert bool(left(path, [("a", "=", 8)])) is is_left
    assert bool(left(path, [("a", "=", 8)])) is is_left
    assert kept == [[0] if is_left else []]


@pytest.mark.parametrize("of", [pa.uint64(), pa.string()])
def test_older_bounds_in_signed_order_are_not_believed(tmp_path: Path, of: pa.DataType) -> None:
    value = 8 if of == pa.uint64() else "8"
    table = pa.table({"a": pa.array([value], of)})
    path = write(tmp_path / "x.parquet", table, use_dictionary=False)
    edit_column(path, 0, "a", _statistics(**_NO_NEW, min=_NINE, max=_NINE))
    assert sb.read_table(path, where=[("a", "=", value)]).num_rows == 1


def test_bounds_without_an_order_are_not_believed(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"a": ["m"] * 5}), use_dictionary=False)
    assert left(path, [("a", "=", "b")]) == []

    def forget(it: Any) -> None:
        del it.footer.metadata.column_orders

    edit_footer(path, forget)
    edit_column(path, 0, "a", _statistics(min=None, max=None))
    assert len(left(path, [("a", "=", "b")])) == 1


def test_bounds_of_texts_may_be_cut(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"a": ["bbb", "ccc"]}), use_dictionary=False)
    edit_column(path, 0, "a", _statistics(min_value=b"b", max_value=b"cd", min=None, max=None))
    for value, is_left in {"b": 1, "ba": 1, "a": 0, "cd": 1, "cda": 0, "é": 0}.items():
        assert len(left(path, [("a", "=", value)])) == is_left


@pytest.mark.parametrize("count", [1, 31, 32, 33, 500])
def test_few_and_many_values_give_the_same(tmp_path: Path, count: int) -> None:
    path = lake(tmp_path)
    many = [f"user{i}@nobody.example.com" for i in range(count)]
    found = [left(path, [("email", "in", values)]) for values in (many, [*many, PRESENT])]
    with steps_only():
        wanted = [left(path, [("email", "in", values)]) for values in (many, [*many, PRESENT])]
    assert found == wanted
    assert len(found[0]) < GROUPS


def test_filters_outside_of_the_file_are_not_checked_together(tmp_path: Path) -> None:
    path = lake(tmp_path, Mode.PLAIN)
    hashes = Hashes.of([PRESENT.encode()]).array
    with opened(path) as it:
        size = it.file.size

        def asked(offset: int, length: int) -> Any:
            places = FilterPlaces(np.array([[offset, length]]), None, np.array([0]))
            return ask_together(it.file, [places], [(hashes, np.array([[0, 1]]))])

        for offset, length in [(size, 1), (size - 1, 2), (-1, 5), (0, 0), (2**62, 2**62), (5, -5)]:
            assert asked(offset, length) is None
        ((answer,),) = asked(size - 8, 8)
        assert answer == ANSWER_UNUSUAL


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
def test_a_damaged_filter_is_an_error_where_another_column_rules_the_row_group_out(
    tmp_path: Path, mode: Mode
) -> None:
    path = lake(tmp_path, mode)
    flip(path, filter_place(path, 3, "email").start)
    _same_failure(path, [("email", "=", PRESENT), ("iban", "=", f"DE{77:020d}5")])


@pytest.mark.parametrize(
    ("asked", "left", "wanted"),
    [
        (set(), {}, [0, 1, 2, 3]),
        ({0, 1, 2, 3}, {}, []),
        ({0, 1, 2, 3}, {2: {0: frozenset({0})}}, [2]),
        ({1, 2}, {2: {0: frozenset()}}, [0, 2, 3]),
    ],
)
def test_files_are_planned_that_may_match_or_were_not_asked(
    asked: set[int], left: dict[int, dict[int, frozenset[int]]], wanted: list[int]
) -> None:
    assert TableSurvivors(asked=asked, left=left).ordinals(4) == wanted
