"""Lookups: row groups that have none of the values are left before they are decoded."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import IntegrityError
from secure_bloom.kernels import extension
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.reading.pruning.steps import dictionaries
from secure_bloom.reading.rows import value_scan
from secure_bloom.reading.rows.column_decoder import ColumnDecoder
from secure_bloom.reading.rows.stored_column import StoredColumn
from secure_bloom.reading.table import table_files
from secure_bloom.storage.inputs import covered
from testing.quick_cases import examples
from testing.surgery import flip, opened
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, write
from tests.reading.lakes import POOLS, Part, expected, parts, predicates, same

ROWS, GROUP = 3000, 250
ABSENT = [f"user{i}@nobody.example.com" for i in range(200)]
PRESENT = "user77@example.com"


#: These tests are about the C extension.
pytestmark = pytest.mark.parametrize("has_extension", [True])


@pytest.fixture(autouse=True)
def _no_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a large table: dictionaries are not searched."""
    monkeypatch.setattr(dictionaries, "_MAX_WORK", 0)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns whose values were held against a list, in order."""
    columns: list[str] = []
    real = StoredColumn.find

    def spy(self: StoredColumn, sought: Any) -> Any:
        columns.append(self._chunk.leaf.name)
        return real(self, sought)

    monkeypatch.setattr(StoredColumn, "find", spy)
    return columns


def lake(path: Path, mode: Mode = Mode.ENCRYPTED, **options: Any) -> Path:
    return write(path / "x.parquet", customers(ROWS), mode, row_group_size=GROUP, **options)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
def test_only_row_groups_with_a_value_are_decoded(
    tmp_path: Path, mode: Mode, dictionary: bool
) -> None:
    path = lake(tmp_path, mode, use_dictionary=dictionary)
    wanted = [*ABSENT, PRESENT]
    where = [("email", "in", wanted)]
    found = sb.read_table(path, where=where, keys=KEYRING)
    assert found.equals(customers(ROWS).filter(pc.field("email").isin(wanted)))
    report = sb.explain(path, where=where, keys=KEYRING)
    assert report.skipped == {"values": ROWS // GROUP - 1}
    assert report.row_groups_read == 1


def test_what_filters_let_pass_is_left(tmp_path: Path) -> None:
    path = lake(tmp_path)
    options = sb.BloomFilterOptions(fpp=0.2)
    assert not sb.add_bloom_filters(path, columns={"email": options}, keys=KEYRING).failed
    report = sb.explain(path, where=[("email", "in", ABSENT)], keys=KEYRING)
    assert report.skipped == {"values": ROWS // GROUP}


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM])
def test_no_page_of_another_column_is_opened_for_what_is_left(tmp_path: Path, mode: Mode) -> None:
    path = lake(tmp_path, mode, use_dictionary=False)
    with opened(path) as it:
        ibans = [chunk_extent(it.chunk(group, "iban")) for group in range(ROWS // GROUP)]
    for start, length in ibans:
        flip(path, start + length - 5)
    assert sb.read_table(path, where=[("email", "in", ABSENT)], keys=KEYRING).num_rows == 0
    with pytest.raises(IntegrityError, match="iban"):
        sb.read_table(path, where=[("email", "=", PRESENT)], keys=KEYRING)


def test_no_arrow_array_is_made_of_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake(tmp_path)
    where = [("email", "in", ABSENT)]
    plan = sb.plan_read(path, where=where, keys=KEYRING)
    assert len(plan.files[0].row_groups) == ROWS // GROUP
    monkeypatch.setattr(ColumnDecoder, "_whole", None)
    assert sb.read_table(path, where=where, keys=KEYRING).num_rows == 0
    assert not sum(b.num_rows for b in sb.read_row_groups(plan, plan.files[0], keys=KEYRING))


def test_what_is_read_for_it_counts(tmp_path: Path) -> None:
    path = lake(tmp_path, use_dictionary=False)
    with opened(path) as it:
        chunks = [chunk_extent(it.chunk(group, "email")) for group in range(ROWS // GROUP)]
    skipped = sb.explain(path, where=[("email", "in", ABSENT), ("id", "<", 0)], keys=KEYRING)
    held = sb.explain(path, where=[("email", "in", ABSENT)], keys=KEYRING)
    size = path.stat().st_size
    # What stands in the end of the file came with the footer.
    pages = [(start, min(start + length, size - skipped.bytes_read)) for start, length in chunks]
    assert held.bytes_read == skipped.bytes_read + covered(pages) > skipped.bytes_read


def test_a_list_that_matches_everywhere_is_given_up(tmp_path: Path, scanned: list[str]) -> None:
    path = lake(tmp_path, Mode.PLAIN)
    wanted = [f"user{i}@example.com" for i in range(0, ROWS, 2)]
    assert sb.read_table(path, where=[("email", "in", wanted)]).num_rows == len(wanted)
    assert len(scanned) == 3


def test_a_list_that_matches_now_and_then_is_scanned_on(tmp_path: Path, scanned: list[str]) -> None:
    path = lake(tmp_path, Mode.PLAIN)
    assert sb.read_table(path, where=[("email", "in", [*ABSENT, PRESENT])]).num_rows == 1
    assert scanned == ["email"] * (ROWS // GROUP)


@pytest.mark.parametrize("operator", ["not in", "!=", "<"])
def test_other_operators_are_not_scanned(tmp_path: Path, scanned: list[str], operator: str) -> None:
    path = lake(tmp_path, Mode.PLAIN)
    value = ABSENT if operator == "not in" else ABSENT[0]
    sb.read_table(path, where=[("email", operator, value)])
    assert scanned == []


@pytest.mark.parametrize("where", [("email", "=", ABSENT[0]), ("email", "in", ABSENT[:2])])
def test_a_single_value_is_scanned_for_too(tmp_path: Path, scanned: list[str], where: Any) -> None:
    assert sb.read_table(lake(tmp_path), where=[where], keys=KEYRING).num_rows == 0
    assert set(scanned) == {"email"}


def test_without_the_extension_single_columns_are_not_scanned(
    tmp_path: Path, scanned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "native", None)
    assert (
        sb.read_table(lake(tmp_path), where=[("email", "=", PRESENT)], keys=KEYRING).num_rows == 1
    )
    assert scanned == []


IBANS = [f"XX{i:020d}" for i in range(100)]
HERE = [f"DE{i:020d}" for i in range(100)]


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ([("email", "in", ABSENT), ("iban", "in", HERE)], ["email"]),
        ([("iban", "in", HERE), ("email", "in", ABSENT)], ["iban", "email"]),
        ([("email", "in", ABSENT), ("score", "<", 0.5)], ["email"]),
        (("or", ("email", "in", ABSENT), ("iban", "in", IBANS)), ["email", "iban"]),
        (("or", ("email", "in", [PRESENT] * 40), ("iban", "in", IBANS)), ["email", "iban"]),
        (("or", ("email", "in", ABSENT), ("score", "<", 0.5)), []),
    ],
    ids=["first", "second", "one", "both", "hit", "hopeless"],
)
def test_nothing_is_scanned_that_could_not_help(
    tmp_path: Path, scanned: list[str], where: Any, columns: list[str]
) -> None:
    table = customers(ROWS)
    path = write(tmp_path / "x.parquet", table, row_group_size=ROWS, write_statistics=False)
    found = sb.read_table(path, where=where)
    assert scanned == columns
    whole = where if isinstance(where, tuple) else ("and", *where)
    assert found.equals(expected(table, whole))


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("name", sorted(set(POOLS) - {"flag"}))
def test_every_type(tmp_path: Path, scanned: list[str], name: str, dictionary: bool) -> None:
    of, pool = POOLS[name]
    missing, *values = pool
    table = pa.table({"a": pa.array([*values, None] * 20, of)})
    options = {"write_statistics": False, "use_dictionary": dictionary}
    path = write(tmp_path / "x.parquet", table, **options)
    has_it = missing in values
    found = sb.read_table(path, where=[("a", "in", [missing] * 40)])
    # Either zero is the other, though not by its bytes.
    assert (found.num_rows > 0) is has_it
    for value in values:
        found = sb.read_table(path, where=[("a", "in", [value] * 40)])
        assert same(found, expected(table, ("a", "in", [value])))
    assert scanned


def test_nan_equals_nothing_and_zeros_each_other(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([math.nan, -0.0, 1.0])})
    path = write(tmp_path / "x.parquet", table, write_statistics=False)
    wanted = [math.nan] * 40 + [0.0] * 40
    assert repr(sb.read_table(path, where=[("a", "in", wanted)]).to_pydict()) == "{'a': [-0.0]}"


def test_timestamps_that_are_cut_when_they_are_read(tmp_path: Path, scanned: list[str]) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"a": pa.array([1001, 5000], pa.timestamp("ns"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, use_dictionary=False)
    wanted = [pa.scalar(1, pa.timestamp("us"))] * 40
    assert sb.read_table(path, where=[("a", "in", wanted)]).num_rows == 1
    assert scanned == []


def test_members_of_structures_below_nulls(tmp_path: Path, scanned: list[str]) -> None:
    rows = [None, {"b": None}, {"b": "x"}, {"b": "y"}] * 10
    table = pa.table({"a": pa.array(rows, pa.struct({"b": pa.string()}))})
    path = write(tmp_path / "x.parquet", table, write_statistics=False, use_dictionary=False)
    assert sb.read_table(path, where=[("a.b", "in", ["x"] * 40)]).num_rows == 10
    assert sb.read_table(path, where=[("a.b", "in", ["z"] * 40)]).num_rows == 0
    assert scanned == ["a.b"] * 2


def test_files_of_other_types_are_scanned_in_their_own(tmp_path: Path, scanned: list[str]) -> None:
    for index, of in enumerate([pa.int32(), pa.int64()]):
        table = pa.table({"a": pa.array([7, 8], of)})
        write(tmp_path / f"{index}.parquet", table, write_statistics=False)
    wanted = [2**40 + i for i in range(50)]
    assert sb.read_table(tmp_path, where=[("a", "in", [*wanted, 9])]).num_rows == 0
    assert sb.read_table(tmp_path, where=[("a", "in", [*wanted, 7])]).num_rows == 2
    assert scanned == ["a"] * 4


def test_a_folders_name_counts_and_not_the_files_column(tmp_path: Path) -> None:
    folder = tmp_path / "k=1"
    folder.mkdir()
    pq.write_table(pa.table({"k": [5, 5], "x": [1, 2]}), folder / "x.parquet")
    wanted = list(range(100, 150))
    assert sb.read_table(tmp_path, where=[("k", "in", [*wanted, 1])]).num_rows == 2
    assert sb.read_table(tmp_path, where=[("k", "in", [*wanted, 5])]).num_rows == 0


def test_a_condition_without_its_key_is_not_scanned(tmp_path: Path, scanned: list[str]) -> None:
    keys = {"k_finance": ["iban"], "k_pii": ["email"]}
    path = lake(tmp_path, column_keys=keys)
    known = Keyring(master_keys={k: v for k, v in MASTER_KEYS.items() if k != "k_finance"})
    found = sb.read_table(
        path,
        where=[("iban", "in", IBANS), ("email", "in", [*ABSENT, PRESENT])],
        columns=["email"],
        keys=known,
        without_filter_keys=True,
    )
    assert found.column("email").to_pylist() == [PRESENT]
    assert set(scanned) == {"email"}


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_page_that_was_tampered_with_is_an_error(tmp_path: Path, dictionary: bool) -> None:
    path = lake(tmp_path, use_dictionary=dictionary)
    with opened(path) as it:
        meta_data = it.chunk(3, "email").meta_data
        start = meta_data.dictionary_page_offset or meta_data.data_page_offset
    # Behind the header's module, in that of the page.
    flip(path, start + 500)
    with pytest.raises(IntegrityError, match=r"row group 3, column email: .*authenticate"):
        sb.read_table(path, where=[("email", "in", ABSENT)], keys=KEYRING)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_other_encodings_are_decoded(tmp_path: Path, encoding: str) -> None:
    options = {"use_dictionary": False, "column_encoding": {"email": encoding}}
    path = lake(tmp_path, Mode.PLAIN, **options)
    where = [("email", "in", [*ABSENT, PRESENT])]
    assert sb.read_table(path, where=where).num_rows == 1
    assert sb.explain(path, where=where).skipped == {}


@st.composite
def lakes(draw: st.DrawFn) -> tuple[list[Part], Any]:
    names = draw(st.lists(st.sampled_from(sorted(POOLS)), min_size=1, max_size=2, unique=True))
    files = draw(st.lists(parts(names, list(Mode)), min_size=1, max_size=2))
    present = sorted({name for file in files for name in file.table.column_names})
    values = {name: st.lists(st.sampled_from(POOLS[name][1]), max_size=3) for name in present}
    lists = [st.tuples(st.just(name), st.just("in"), values[name]) for name in present]
    ones = [st.tuples(st.just(n), st.just("="), st.sampled_from(POOLS[n][1])) for n in present]
    lookups = st.one_of(*lists, *ones)
    both = st.tuples(
        st.sampled_from(["and", "or"]), lookups, st.one_of(lookups, predicates(present))
    )
    return files, draw(st.one_of(lookups, both))


@examples(20)
@given(lakes())
def test_lookups_give_the_rows_of_a_full_scan(lake: tuple[list[Part], Any]) -> None:
    files, where = lake
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(value_scan, "_WORTH", 0)
        if len(files) > 1:  # in threads, however tiny they are
            patched.setattr(table_files, "TINY", 0)
        for index, file in enumerate(files):
            file.write(Path(folder) / f"{index}.parquet")
        whole = pa.concat_tables([file.table for file in files], promote_options="default")
        found = sb.read_table(folder, where=where, keys=KEYRING)
    assert same(found, expected(whole, where))
