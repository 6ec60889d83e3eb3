"""Lookup: every key with the files that hold it, and no file read that range or filter rule out."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import hudi
from secure_bloom.adding.rewrite_plan import new_tail
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import PolicyError
from secure_bloom.hudi import RecordKeyFilterOptions, key_lookup
from secure_bloom.hudi.key_lookup import LookupStatus
from secure_bloom.hudi.record_keys.footer_entry import KeyRange, with_entry
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys
from secure_bloom.parquet.footer.seal import close_footer
from secure_bloom.spark import hudi as step
from secure_bloom.storage import CountedFile, InputFile, open_input
from testing.hudi_files import KEY_COLUMN, base_file
from testing.project import NO_VECTORS
from testing.surgery import flip, opened
from testing.tables import KEYRING, MASTER_KEYS, Mode, write
from tests.hudi.vectors import SHARED

MODES = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
READ, BY_RANGE, BY_FILTER, FAILED = (
    LookupStatus.READ,
    LookupStatus.SKIPPED_BY_RANGE,
    LookupStatus.SKIPPED_BY_FILTER,
    LookupStatus.FAILED,
)


def keys_from(start: int, stop: int, step: int = 1) -> list[str]:
    return [f"key-{i:06d}" for i in range(start, stop, step)]


@pytest.fixture
def spies() -> Iterator[dict[str, CountedFile]]:
    """The files that a lookup opens, each with a count of the bytes read."""
    opened_files: dict[str, CountedFile] = {}

    def spying(path: str) -> InputFile:
        return opened_files.setdefault(path, CountedFile(open_input(path)))

    with mock.patch.object(key_lookup, "open_input", spying):
        yield opened_files


@MODES
def test_range_then_filter_then_data(
    tmp_path: Path, mode: Mode, spies: dict[str, CountedFile]
) -> None:
    holding = base_file(tmp_path / "a.parquet", keys_from(0, 2000, 2), mode)
    between = base_file(tmp_path / "b.parquet", keys_from(1, 2000, 2), mode)
    behind = base_file(tmp_path / "c.parquet", keys_from(5000, 6000), mode)
    hudi.add_record_key_filter(tmp_path, keys=KEYRING, allow_clear_entry=True)
    wanted = ["key-000100", "key-000102", "absent", "key-1"]
    report = hudi.lookup(tmp_path, wanted, keys=KEYRING)
    assert report.found == {
        "key-000100": (str(holding),),
        "key-000102": (str(holding),),
        "absent": (),
        "key-1": (),
    }
    assert [file.status for file in report.files] == [READ, BY_FILTER, BY_RANGE]
    assert [(f.in_range, f.candidates, f.found) for f in report.files] == [
        (2, 2, 2),
        (2, 0, 0),
        (0, 0, 0),
    ]
    assert report.false_positives == 0
    # Of the files that were ruled out the end was read, once, and nothing else.
    for path in (between, behind):
        assert spies[str(path)].bytes_read == min(path.stat().st_size, 65_536)
    assert spies[str(holding)].bytes_read > min(holding.stat().st_size, 65_536)


def test_of_a_candidate_only_the_key_column_is_read(
    tmp_path: Path, spies: dict[str, CountedFile]
) -> None:
    table = pa.table(
        {
            KEY_COLUMN: keys_from(0, 20_000),
            "payload": [f"{i:0200d}" for i in range(20_000)],
        }
    )
    options = {"compression": "none", "use_dictionary": False, "row_group_size": 5000}
    path = write(tmp_path / "x.parquet", table, **options)
    write(tmp_path / "y.parquet", table.slice(0, 0), **options)
    hudi.add_record_key_filter(tmp_path)
    report = hudi.lookup(tmp_path, ["key-000007", "key-019999x"])
    assert [file.status for file in report.files] == [READ, BY_FILTER]
    with opened(path) as it:
        footer = path.stat().st_size - it.footer.tail.offset
        first = it.chunk(0, KEY_COLUMN).meta_data.total_compressed_size
    # The row group with the key, and none behind it: no other column, no other row group.
    assert spies[str(path)].bytes_read <= 65_536 + footer + first
    assert path.stat().st_size > 4_000_000


def test_only_keys_really_present_count(tmp_path: Path) -> None:
    # A dictionary may hold values that no row has.
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", "b", "unused"]))
    path = write(tmp_path / "x.parquet", pa.table({KEY_COLUMN: keys}))
    assert b"unused" in path.read_bytes()
    report = hudi.lookup(path, ["a", "b", "unused"])
    assert report.found == {"a": (str(path),), "b": (str(path),), "unused": ()}
    # Without a filter nothing is claimed of a key that is not there.
    assert (report.files[0].filter, report.false_positives) == (False, 0)
    hudi.add_record_key_filter(path)
    stored = hudi.read_record_key_filter(path)
    assert stored is not None
    assert stored.max_key == "b"


def test_one_key_in_many_rows_is_one_value_of_python(tmp_path: Path) -> None:
    table = pa.table({KEY_COLUMN: pa.array(["x" * 1_000] * 20_000).dictionary_encode()})
    path = tmp_path / "x.parquet"
    # One page, and so one array.
    pq.write_table(table, path, write_batch_size=20_000)
    hudi.lookup(path, ["y"])
    tracemalloc.start()
    try:
        report = hudi.lookup(path, ["x" * 1_000, "absent"])
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.found == {"x" * 1_000: (str(path),), "absent": ()}
    assert most < 2_000_000


def test_false_positives_are_counted(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", keys_from(0, 5000, 2))
    hudi.add_record_key_filter(path, options=RecordKeyFilterOptions(fpp=0.05))
    absent = keys_from(1, 5000, 2)
    report = hudi.lookup(path, [*absent, "key-000000"])
    stored = hudi.read_record_key_filter(path)
    assert stored is not None
    assert stored.filter is not None
    passing = int(stored.filter.check_many(absent[:-1]).sum())
    assert report.false_positives == passing > 20
    assert report.files[0].found == 1
    assert report.to_dict()["false_positives"] == passing


def test_a_file_without_range_or_filter_is_always_a_candidate(tmp_path: Path) -> None:
    plain = base_file(tmp_path / "a.parquet", keys_from(0, 10))
    made = hudi.SimpleBloomFilter(10, 1e-9)
    made.insert_many(keys_from(0, 10))
    pairs = {"org.apache.hudi.bloomfilter": made.serialize()}
    table = pa.table({KEY_COLUMN: keys_from(0, 10)}).replace_schema_metadata(pairs)
    filtered = write(tmp_path / "b.parquet", table)
    report = hudi.lookup(tmp_path, ["zzz", "key-000003"])
    assert report.found == {"zzz": (), "key-000003": (str(plain), str(filtered))}
    assert [(f.filter, f.candidates) for f in report.files] == [(False, 2), (True, 1)]


def test_ends_of_a_range_belong_to_it_in_java_order(tmp_path: Path) -> None:
    first = base_file(tmp_path / "a.parquet", ["a\U0001f600", "a\ue000"])
    second = base_file(tmp_path / "b.parquet", ["a\uffee", "b"])
    hudi.add_record_key_filter(tmp_path)
    wanted = ["a\U0001f600", "a\ue000", "a\uffee", "b", "a\ud7ff", "a\U0010ffff"]
    report = hudi.lookup(tmp_path, wanted)
    assert [len(report.found[key]) for key in wanted] == [1, 1, 1, 1, 0, 0]
    assert report.found["a\uffee"] == (str(second),)
    assert report.found["a\ue000"] == (str(first),)
    assert [file.in_range for file in report.files] == [3, 2]


def test_a_file_that_fails_stops_no_other(tmp_path: Path) -> None:
    whole = base_file(tmp_path / "a.parquet", ["k1"], Mode.ENCRYPTED)
    broken = base_file(tmp_path / "b.parquet", ["k1"], Mode.ENCRYPTED)
    hudi.add_record_key_filter(tmp_path, keys=KEYRING)
    flip(broken, broken.stat().st_size - 40)
    report = hudi.lookup(tmp_path, ["k1"], keys=KEYRING)
    assert report.found == {"k1": (str(whole),)}
    assert [file.status for file in report.files] == [READ, FAILED]
    assert str(report.failed[0].error).startswith(f"{broken}: ")
    assert "k1" not in repr(report)


def test_an_encrypted_key_column_needs_its_key_for_candidates_alone(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", ["k1"], Mode.ENCRYPTED)
    hudi.add_record_key_filter(path, keys=KEYRING)
    footer_key = Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]})
    (candidate,) = hudi.lookup(path, ["k1"], keys=footer_key).files
    assert "k_pii" in str(candidate.error)
    (ruled_out,) = hudi.lookup(path, ["k2"], keys=footer_key).files
    assert (ruled_out.status, ruled_out.error) == (BY_RANGE, None)


def test_a_changed_page_of_the_key_column_is_an_error(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", ["k1"], Mode.ENCRYPTED)
    hudi.add_record_key_filter(path, keys=KEYRING)
    with opened(path) as it:
        place = it.chunk(0, KEY_COLUMN).meta_data.data_page_offset
    flip(path, place + 20)
    (file,) = hudi.lookup(path, ["k1"], keys=KEYRING).files
    assert "authenticate" in str(file.error)


def test_a_table_of_hudi_is_searched() -> None:
    if not (SHARED / "hudi_parquet").exists():
        pytest.skip(NO_VECTORS)
    key = "c8abbe79-8d89-47ea-b4ce-4d224bae5bfa"
    report = hudi.lookup(SHARED / "hudi_parquet", [key, "5", "zz"])
    assert [len(paths) for paths in report.found.values()] == [1, 0, 0]
    assert [(f.in_range, f.candidates, f.found) for f in report.files] == [(2, 1, 1)]


def test_inside_a_table_lookup_works(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    path = base_file(tmp_path / "x.parquet", ["k1"])
    assert hudi.lookup(tmp_path, ["k1"]).found == {"k1": (str(path),)}


def test_an_empty_key_is_refused(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", ["k1"])
    with pytest.raises(PolicyError, match="is empty"):
        hudi.lookup(path, ["k1", ""])
    assert hudi.lookup(path, "k1").found == {"k1": (str(path),)}


VIRTUAL = pa.table({"email": ["a@x", "k15"]})


def test_the_filter_of_the_record_keys_hid_values_of_another_column(tmp_path: Path) -> None:
    table = VIRTUAL.append_column(KEY_COLUMN, pa.array(["k1", "k2"]))
    path = str(write(tmp_path / "hk.parquet", table))
    hudi.add_record_key_filter(path)
    report = hudi.lookup(path, ["a@x", "k15", "k1"], column="email")
    assert report.found == {"a@x": (path,), "k15": (path,), "k1": ()}
    assert (report.files[0].filter, report.false_positives) == (False, 0)
    hudi.add_record_key_filter(path, column="email", replace=True)
    assert hudi.lookup(path, ["k1", "k2"]).found == {"k1": (path,), "k2": (path,)}
    emails = hudi.lookup(path, ["a@x", "absent"], column="email")
    assert emails.found == {"a@x": (path,), "absent": ()}
    assert (emails.files[0].filter, emails.files[0].candidates) == (True, 1)


def test_a_filter_that_names_no_column_in_a_file_without_record_keys_is_not_trusted(
    tmp_path: Path,
) -> None:
    made = hudi.SimpleBloomFilter(10, 1e-9)
    made.insert("another column's")
    pairs = {
        "org.apache.hudi.bloomfilter": made.serialize(),
        "hoodie_min_record_key": "another",
        "hoodie_max_record_key": "another",
    }
    nested = pa.array([{KEY_COLUMN: "n"}] * 2)
    for name, table in {"a": VIRTUAL, "b": VIRTUAL.append_column("deep", nested)}.items():
        path = str(write(tmp_path / f"{name}.parquet", table.replace_schema_metadata(pairs)))
        assert hudi.lookup(path, ["k15"], column="email").found == {"k15": (path,)}
        with pytest.raises(PolicyError, match="_hoodie_record_key"):
            hudi.lookup(path, ["k15"])


def test_files_that_are_read_without_a_filter_are_counted(tmp_path: Path) -> None:
    base_file(tmp_path / "a.parquet", ["k1", "k3"])
    pairs = {"hoodie_min_record_key": "k5", "hoodie_max_record_key": "k6"}
    table = pa.table({KEY_COLUMN: ["k5", "k6"]}).replace_schema_metadata(pairs)
    write(tmp_path / "b.parquet", table)
    report = hudi.lookup(tmp_path, ["k2"])
    assert [file.status for file in report.files] == [READ, BY_RANGE]
    assert (report.false_positives, report.read_without_filter) == (0, 1)
    assert report.to_dict()["files_read_without_filter"] == 1


def test_a_task_on_spark_does_not_use_the_filter_of_another_column(tmp_path: Path) -> None:
    path = str(base_file(tmp_path / "a.parquet", ["k1", "k2"]))
    hudi.add_record_key_filter(path)
    search = step._GroupSearch([path], "email", KeyResolver(None))
    rows = [*search.take(["user0@example.com", "k1"]), *search.finish()]
    assert rows == [("user0@example.com", path)]


@pytest.mark.parametrize("entry", ["none", "empty", "of the keys"])
def test_rows_without_a_record_key_are_not_nowhere(tmp_path: Path, entry: str) -> None:
    """A Hudi table may leave its meta fields null, and its filters may have the keys or none."""
    keys = keys_from(0, 5)
    path = base_file(tmp_path / "x.parquet", [None] * 5)
    if entry != "none":
        held = RecordKeyFilterOptions().empty_filter(5)
        held.insert_packed(PackedKeys.of(key.encode() for key in keys if entry == "of the keys"))
        bounds = KeyRange(min_key=keys[0], max_key=keys[-1]) if entry == "of the keys" else None
        with opened(path, None) as it:
            plain = with_entry(it.footer.read, held, bounds)
            content = it.file.read_at(0, it.footer.tail.offset)
        path.write_bytes(content + plain + len(plain).to_bytes(4, "little") + b"PAR1")
    report = hudi.lookup(path, keys)
    (failed,) = report.failed
    assert "rows have no record key" in str(failed.error)
    assert hudi.lookup(path, ["user1@example.com"], column="email").found == {
        "user1@example.com": (str(path),)
    }


@MODES
@pytest.mark.parametrize("row_group_size", [2, 6])
@pytest.mark.parametrize("counts_nulls", [True, False])
def test_some_rows_without_a_record_key_are_not_nowhere(
    tmp_path: Path, mode: Mode, row_group_size: int, counts_nulls: bool
) -> None:
    """Older rows have keys; those after the table's meta fields were emptied have none."""
    keys = keys_from(0, 6)
    rows = [*keys[:4], None, None]
    options = {"row_group_size": row_group_size, "write_statistics": counts_nulls}
    path = base_file(tmp_path / "x.parquet", rows, mode, **options)
    held = RecordKeyFilterOptions().empty_filter(4)
    held.insert_packed(PackedKeys.of(key.encode() for key in keys[:4]))
    with opened(path, KEYRING) as it:
        plain = with_entry(it.footer.read, held, KeyRange(min_key=keys[0], max_key=keys[3]))
        kept = it.file.read_at(0, it.footer.tail.offset)
        end = new_tail(close_footer(it.footer.read, plain), len(kept), append=False)
    path.write_bytes(b"".join([kept, *end]))
    (failed,) = hudi.lookup(path, keys[5], keys=KEYRING).failed
    assert "rows have no record key" in str(failed.error)
    assert hudi.lookup(path, keys[1], column="email", keys=KEYRING).failed == ()
