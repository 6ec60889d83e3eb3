"""Verdicts: never "absent" for what is there, never silent about what could not be asked."""

from __future__ import annotations

import json
import random
import struct
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom import SecureBloomError, Verdict
from secure_bloom.errors import PolicyError
from testing.project import CORPUS, NO_CORPUS
from testing.quick_cases import examples
from testing.surgery import assert_tells_no_secret, filter_of, filter_place
from testing.tables import KEYRING, Mode, customers, write

MODES = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
#: One value of each column, and one that is nowhere.
PROBES: dict[str, tuple[list[Any], list[Any]]] = {
    "email": (["user7@example.com"], ["nobody@example.com"]),
    "id": ([7, "7", 7.0], [-1, "-1"]),
    "city": (["oslo", b"oslo"], ["bern"]),
    "iban": ([f"DE{7:020d}"], ["DE"]),
}


def _filtered(folder: Path, mode: Mode, rows: int = 400, size: int = 100) -> Path:
    path = write(folder / "x.parquet", customers(rows), mode, row_group_size=size)
    tight = sb.BloomFilterOptions(fpp=1e-6)
    sb.add_bloom_filters(path, columns=dict.fromkeys(PROBES, tight), keys=KEYRING)
    return path


@MODES
@pytest.mark.parametrize("column", PROBES)
def test_verdicts_are_membership(tmp_path: Path, mode: Mode, column: str) -> None:
    path = _filtered(tmp_path, mode)
    present, absent = PROBES[column]
    report = sb.probe(path, column, [*present, *absent], keys=KEYRING)
    (file,) = report.files
    cells = customers(400).column(column)
    assert [group.row_group for group in file.row_groups] == [0, 1, 2, 3]
    for group in file.row_groups:
        assert group.filter
        part = cells.slice(group.row_group * 100, 100).to_pylist()
        is_there = (7 if column == "id" else str(PROBES[column][0][0])) in part
        for value in present:
            assert group.verdicts[value] is (Verdict.MAYBE if is_there else Verdict.ABSENT)
        for value in absent:
            assert group.verdicts[value] is Verdict.ABSENT
    assert report.failed == ()


@MODES
def test_every_value_is_maybe_in_its_row_group(tmp_path: Path, mode: Mode) -> None:
    path = _filtered(tmp_path, mode)
    emails = customers(400).column("email").to_pylist()
    (file,) = sb.probe(path, "email", emails, keys=KEYRING).files
    for group in file.row_groups:
        for email in emails[group.row_group * 100 : (group.row_group + 1) * 100]:
            assert group.verdicts[email] is Verdict.MAYBE


def test_a_column_without_a_filter_is_not_absent(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(20), Mode.ENCRYPTED, row_group_size=10)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    report = sb.probe(path, "iban", ["DE", None], keys=KEYRING)
    assert report.verdicts == {Verdict.NO_FILTER}
    assert [group.filter for group in report.files[0].row_groups] == [False, False]


def test_null_and_nan_are_never_absent_and_zero_is_both_zeros(tmp_path: Path) -> None:
    table = pa.table({"x": [-0.0, 1.5]})
    path = write(tmp_path / "x.parquet", table, use_dictionary=False)
    sb.add_bloom_filters(path, columns=["x"])
    values = [0.0, "-0", "nan", None, 2.5]
    verdicts = sb.probe(path, "x", values).files[0].row_groups[0].verdicts
    assert [verdicts[v] for v in values] == [Verdict.MAYBE] * 4 + [Verdict.ABSENT]


def test_a_folder_in_which_one_file_lacks_the_column(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", customers(5))
    write(tmp_path / "b.parquet", customers(5).drop_columns(["email"]))
    sb.add_bloom_filters(tmp_path, columns=["email"])
    first, second = sb.probe(tmp_path, "email", ["user1@example.com"]).files
    assert first.row_groups[0].verdicts == {"user1@example.com": Verdict.MAYBE}
    assert second.row_groups[0].verdicts == {"user1@example.com": Verdict.NO_FILTER}


def test_an_unknown_column_gets_close_matches(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5))
    with pytest.raises(PolicyError, match="no column emial") as caught:
        sb.probe(path, "emial", ["x"])
    assert caught.value.hint == "did you mean email"


def test_a_column_with_several_leaves_asks_for_one(tmp_path: Path) -> None:
    table = pa.table({"address": [{"zip": "1", "city": "oslo"}], "tags": [["a"]]})
    path = write(tmp_path / "x.parquet", table)
    sb.add_bloom_filters(path, columns=["address.*", "tags"])
    with pytest.raises(PolicyError, match="column address: the column has 2 leaves") as caught:
        sb.probe(path, "address", ["1"])
    assert caught.value.hint == "name one of address.zip, address.city"
    assert sb.probe(path, "tags", ["a"]).verdicts == {Verdict.MAYBE}


def test_a_value_that_cannot_be_is_an_error_without_the_value(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5))
    with pytest.raises(PolicyError, match="whole number") as caught:
        sb.probe(path, "id", ["s3cret"])
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
    assert (caught.value.path, caught.value.column) == (str(path), "id")


def test_a_broken_file_is_reported_and_stops_no_other(tmp_path: Path) -> None:
    _filtered(tmp_path, Mode.ENCRYPTED)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but no more")
    (tmp_path / "b.parquet").write_bytes(b"")
    report = sb.probe(tmp_path, "email", ["user7@example.com"], keys=KEYRING)
    assert [Path(file.path).name for file in report.failed] == ["a.parquet", "b.parquet"]
    assert Verdict.MAYBE in report.verdicts
    document = report.to_dict()
    json.dumps(document)
    assert document["files"][0]["row_groups"] == []
    assert "a.parquet" in document["files"][0]["error"]
    assert_tells_no_secret(json.dumps([f["error"] for f in document["files"][:2]]))


def test_json_spells_values_as_they_were_given(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5))
    sb.add_bloom_filters(path, columns=["id"])
    (file,) = sb.probe(path, "id", ["3", "77"]).to_dict()["files"]
    assert file["row_groups"] == [
        {"row_group": 0, "filter": True, "verdicts": {"3": "maybe", "77": "absent"}}
    ]


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
@pytest.mark.parametrize("name", ["encoding_stats", "encoding_with_length"])
def test_filters_of_the_public_corpus(name: str) -> None:
    path = CORPUS / f"data_index_bloom_{name}.parquet"
    bloom_filter = filter_of(path, 0, "String")
    report = sb.probe(path, "String", ["Hello", "This is", "a", "test", "nothing like it"])
    verdicts = report.files[0].row_groups[0].verdicts
    assert [str(v) for v in verdicts.values()] == ["maybe"] * 4 + ["absent"]
    assert sum(bloom_filter.check(str(i).encode()) for i in range(1000)) <= 50


def _absent_where_present(path: Path) -> bool:
    """Whether a probe says "absent" of the e-mail that stands in row group 0."""
    email = customers(40).column("email")[0].as_py()
    with suppress(SecureBloomError):
        (file,) = sb.probe(path, "email", [email], keys=KEYRING).files
        return file.error is None and file.row_groups[0].verdicts[email] is not Verdict.MAYBE
    return False


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED], ids=lambda mode: mode.name)
def test_no_flipped_byte_makes_a_present_value_absent(tmp_path: Path, mode: Mode) -> None:
    path = _filtered(tmp_path, mode, 40, 40)
    good = path.read_bytes()
    module = filter_place(path, 0, "email")
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    places = [
        *range(module.start, module.stop, 3),
        *range(footer, len(good), 11),
        *random.Random(3).sample(range(len(good)), 100),
    ]
    assert not _absent_where_present(path)
    for place in places:
        damaged = bytearray(good)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        assert not _absent_where_present(path), f"byte {place} of {len(good)}"


def _everything(path: Path) -> Iterator[Any]:
    yield sb.probe(path, "email", ["user1@example.com"], keys=KEYRING)
    yield sb.inspect(path, keys=KEYRING)
    yield sb.inspect(path)
    columns = ["email", "score"]
    yield sb.add_bloom_filters(path, columns=columns, keys=KEYRING, dry_run=True)
    yield sb.add_bloom_filters(
        path, columns=columns, keys=KEYRING, dry_run=True, replace_filters=True
    )


def _survives(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        path.write_bytes(content)
        for step in range(5):
            with suppress(SecureBloomError):
                next(item for i, item in enumerate(_everything(path)) if i == step)
        assert path.read_bytes() == content


@examples(15)
@given(
    content=st.binary(max_size=200),
    magic=st.sampled_from([b"", b"PAR1", b"PARE"]),
    length=st.none() | st.integers(0, 250),
)
def test_random_bytes_are_refused_by_name(content: bytes, magic: bytes, length: int | None) -> None:
    stated = b"" if length is None else struct.pack("<I", length)
    _survives(magic + content + stated + magic)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[Mode, bytes]:
    folder = tmp_path_factory.mktemp("samples")
    return {mode: _filtered(folder, mode, 20, 10).read_bytes() for mode in Mode}


@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mode=st.sampled_from([Mode.PLAIN, Mode.PLAIN, Mode.SIGNED, Mode.ENCRYPTED]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=3),
    in_footer=st.booleans(),
)
def test_mutated_files_are_refused_by_name_or_read(
    samples: dict[Mode, bytes],
    mode: Mode,
    changes: list[tuple[float, int]],
    in_footer: bool,
) -> None:
    content = bytearray(samples[mode])
    end = len(content) - 8
    start = end - int.from_bytes(content[-8:-4], "little") if in_footer else 0
    for place, byte in changes:
        content[start + int(place * (end - 1 - start))] = byte
    _survives(bytes(content))


@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mode=st.sampled_from(Mode), share=st.floats(0, 1))
def test_truncated_files_are_refused_by_name(
    samples: dict[Mode, bytes], mode: Mode, share: float
) -> None:
    _survives(samples[mode][: int(share * len(samples[mode]))])


@pytest.mark.parametrize("value", ["a@example.com", b"a@example.com"])
def test_a_single_text_is_one_value(tmp_path: Path, value: object) -> None:
    pq.write_table(pa.table({"email": ["a@example.com"]}), tmp_path / "x.parquet")
    sb.add_bloom_filters(tmp_path, columns="email")
    (file,) = sb.probe(tmp_path, "email", value).files
    assert file.row_groups[0].verdicts == {value: sb.Verdict.MAYBE}


def test_values_of_pyarrow_are_values(tmp_path: Path) -> None:
    table = pa.table({"email": ["a@example.com", None]})
    pq.write_table(table, tmp_path / "x.parquet")
    sb.add_bloom_filters(tmp_path, columns="email")
    wanted = sb.probe(tmp_path, "email", ["a@example.com", None])
    assert sb.probe(tmp_path, "email", table["email"]) == wanted
    (file,) = sb.probe(tmp_path, "email", pa.scalar("nobody")).files
    assert file.row_groups[0].verdicts == {"nobody": sb.Verdict.ABSENT}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2**62 + 5], pa.timestamp("ns")),
        pa.array([1, 2**62 + 5], pa.timestamp("ns", "Europe/Rome")),
        pa.array([2**40], pa.timestamp("ms", "UTC")),
        pa.array([253402300800_000], pa.timestamp("ms", "UTC")),
        pa.array([5], pa.time64("ns")),
        pa.array([2**31 - 1], pa.date32()),
    ],
    ids=lambda column: str(column.type),
)
def test_dates_and_times_that_python_lacks_are_asked_for(tmp_path: Path, column: pa.Array) -> None:
    pq.write_table(pa.table({"at": column}), tmp_path / "x.parquet")
    sb.add_bloom_filters(tmp_path, columns={"at": 0.001})
    (file,) = sb.probe(tmp_path, "at", column).files
    assert set(file.row_groups[0].verdicts.values()) == {sb.Verdict.MAYBE}


def test_numpys_instants_are_values(tmp_path: Path) -> None:
    instants = np.array(["2024-03-01T10:00:00.000000001"], "datetime64[ns]")
    pq.write_table(pa.table({"at": instants}), tmp_path / "x.parquet")
    sb.add_bloom_filters(tmp_path, columns={"at": 0.001})
    (file,) = sb.probe(tmp_path, "at", instants).files
    assert set(file.row_groups[0].verdicts.values()) == {sb.Verdict.MAYBE}


@pytest.mark.parametrize(
    "value", [5, 5.0, True, [5], {"a": 5}, bytearray(b"5"), np.array(5), (5, [])]
)
@pytest.mark.parametrize("column", ["u", "f", "missing here"])
def test_values_of_no_column_are_errors_of_ours(tmp_path: Path, column: str, value: object) -> None:
    uuids = pa.array([UUID(int=5)], pa.uuid())
    pq.write_table(pa.table({"u": uuids, "f": [1.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"missing here": ["x"]}), tmp_path / "2.parquet")
    sb.add_bloom_filters(tmp_path / "1.parquet", columns=["u", "f"])
    with suppress(PolicyError):
        sb.probe(tmp_path, column, [value])


def test_a_single_number_is_one_value(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [7]}), tmp_path / "x.parquet")
    sb.add_bloom_filters(tmp_path, columns={"id": 0.001})
    (file,) = sb.probe(tmp_path, "id", 7).files
    assert file.row_groups[0].verdicts == {7: sb.Verdict.MAYBE}


def test_a_column_that_is_no_name_is_an_error_of_ours(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5), Mode.PLAIN)
    with pytest.raises(PolicyError, match="column is of type int, wanted a text"):
        sb.probe(path, 5, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "away",
    [
        timedelta(minutes=19, seconds=32),
        -timedelta(hours=4, minutes=56, seconds=2),
        timedelta(microseconds=250_000),
        timedelta(hours=1),
    ],
    ids=str,
)
def test_an_offset_from_utc_may_have_seconds(tmp_path: Path, away: timedelta) -> None:
    """Local mean times, as time zones had before they were agreed on."""
    path = tmp_path / "x.parquet"
    instant = datetime(1890, 5, 1, 12, tzinfo=UTC)
    rows = pa.table({"at": pa.array([instant], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, path)
    sb.add_bloom_filters(path, columns=["at"])
    local = instant.astimezone(timezone(away))
    for value in (local, local.isoformat(), local.isoformat(" ")):
        found = sb.read_table(path, where=[("at", "=", value)])
        assert found.num_rows == 1
        assert sb.read_table(path, where=[("at", ">", value)]).num_rows == 0
        assert sb.probe(path, "at", [value]).verdicts != {sb.Verdict.ABSENT}
    assert sb.read_table(path, where=f"at = '{local.isoformat()}'").num_rows == 1
    assert sb.read_table(path, where=f"at = {local.isoformat()}").num_rows == 1


@pytest.mark.parametrize("opened", [False, True], ids=["probe", "open table"])
@pytest.mark.parametrize(
    ("narrow", "wide", "value"),
    [
        (pa.int32(), pa.int64(), 2**40),
        (pa.int8(), pa.int32(), "1000"),
        (pa.decimal128(9, 2), pa.decimal128(9, 3), Decimal("0.125")),
        (pa.timestamp("ms"), pa.timestamp("us"), "2024-03-01T10:00:00.000001"),
    ],
    ids=["int32", "int8", "decimal", "timestamp"],
)
def test_a_value_that_a_file_cannot_hold_is_absent_there(
    tmp_path: Path, narrow: pa.DataType, wide: pa.DataType, value: object, opened: bool
) -> None:
    """As in a table whose column got a wider type."""
    held = pa.array([str(value)]).cast(wide) if isinstance(value, str) else pa.array([value], wide)
    pq.write_table(pa.table({"a": pa.nulls(1, narrow)}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": held}), tmp_path / "1.parquet")
    sb.add_bloom_filters(tmp_path, columns=["a"])
    with sb.open_table(tmp_path) as table:
        report = table.probe("a", [value]) if opened else sb.probe(tmp_path, "a", [value])
    verdicts = [[group.verdicts[value] for group in file.row_groups] for file in report.files]
    assert verdicts == [[Verdict.ABSENT], [Verdict.MAYBE]]
