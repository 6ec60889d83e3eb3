"""pyarrow reads what we wrote as before, in every mode; of its own filters we say what they say."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from testing.columns import CASE_IDS, CASES, COLUMNS, DICTIONARY, PLAIN, Column
from testing.compatibility import Claim, Compatibility, Shown
from testing.tables import ArrowKms, Mode, crypto_factory, customers, read, write
from testing.typed_files import (
    ROWS_PER_GROUP,
    add_filter,
    filters_of,
    folded_to,
    our_verdicts,
    typed_file,
)
from tests.interop.conftest import Modes, Pairs


@pytest.mark.parametrize(("column", "encoding"), CASES, ids=CASE_IDS)
def test_pyarrow_reads_the_same_rows(
    pairs: Pairs, compatibility: Compatibility, modes: Modes, column: Column, encoding: str
) -> None:
    for mode in modes(column, encoding):
        before, after = pairs(column, encoding, mode)
        is_encrypted = mode is not Mode.PLAIN
        rows = read(before.path, encrypted=is_encrypted)
        assert read(after.path, encrypted=is_encrypted).equals(rows)
        for verdicts in our_verdicts(after, after.sample(5), keys=ArrowKms()):
            assert "maybe" in verdicts
        compatibility.record(Claim(column.name, encoding, mode.value, "pyarrow", Shown.ROWS))


@pytest.mark.parametrize(("version", "mode"), [("1.0", Mode.UNIFORM), ("2.0", Mode.PLAIN)])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_every_codec_and_page_version(tmp_path: Path, codec: str, version: str, mode: Mode) -> None:
    for dictionary in (True, False):
        path = write(
            tmp_path / "x.parquet",
            customers(),
            mode,
            compression=codec,
            data_page_version=version,
            use_dictionary=dictionary,
            data_page_size=1000,
        )
        before = read(path, encrypted=mode is not Mode.PLAIN)
        report = sb.add_bloom_filters(path, columns=before.column_names, keys=ArrowKms())
        assert not report.failed
        assert read(path, encrypted=mode is not Mode.PLAIN).equals(before)
        for name in before.column_names:
            values = [v for v in before[name].to_pylist()[:20] if v is not None]
            assert _found(path, name, values) == set(values)


def _found(path: Path, name: str, values: list[Any]) -> set[Any]:
    """The values that some row group may hold."""
    groups = sb.probe(path, name, values, keys=ArrowKms()).files[0].row_groups
    return {v for group in groups for v, said in group.verdicts.items() if said == "maybe"}


def _as_shown(value: bytes) -> bytes:
    (shown,) = duckdb.execute("SELECT ?::BLOB::VARCHAR", [value]).fetchall()[0]
    return str(shown).encode()


def _as_int128(value: Decimal) -> bytes:
    return int(value.scaleb(2)).to_bytes(16, "big", signed=True)


#: Columns of which ours hold a second form beside the format's, and that form of a value.
SECOND_FORMS: dict[str, Callable[[Any], bytes]] = {
    "FIXED_LEN_BYTE_ARRAY": _as_shown,
    "BYTE_ARRAY": _as_shown,
    "BYTE_ARRAY BSON": _as_shown,
    "FIXED_LEN_BYTE_ARRAY decimal(9, 2)": _as_int128,
    "FIXED_LEN_BYTE_ARRAY decimal(18, 2)": _as_int128,
}
#: Of FLOAT16 and padded decimals pyarrow's verdicts differ from ours already.
RICHER = ("FLOAT16", "padded")
PLAIN_TYPES = [c for c in COLUMNS if not any(word in c.name for word in RICHER)]


@pytest.mark.parametrize("column", PLAIN_TYPES, ids=lambda c: c.name.replace(" ", "_"))
def test_pyarrows_filters_hold_the_bits_that_we_would_write(tmp_path: Path, column: Column) -> None:
    asked = {column.leaf: {"ndv": ROWS_PER_GROUP, "fpp": 0.1}}
    file = typed_file(tmp_path, column, PLAIN, row_groups=8, bloom_filter_options=asked)
    theirs = filters_of(file.path, column.leaf)
    absent = column.values(0, 24, absent=True)
    said = [verdict for verdicts in our_verdicts(file, absent) for verdict in verdicts]
    assert 0 < said.count("maybe") < len(said) / 4
    for verdicts in our_verdicts(file, file.sample(24)):
        assert "maybe" in verdicts
    options = {column.leaf: sb.BloomFilterOptions(fpp=1e-4)}
    sb.add_bloom_filters(file.path, columns=options, replace_filters=True)
    second_form = SECOND_FORMS.get(column.name)
    if second_form is not None:
        parquet = pq.ParquetFile(file.path)
        for row_group, their in enumerate(theirs):
            for value in parquet.read_row_group(row_group)["x"].drop_null().to_pylist():
                their.insert(second_form(value))
    # Every bit of pyarrow's, those of the second form, and no other.
    assert folded_to(theirs, filters_of(file.path, column.leaf)) == theirs


def test_pyarrows_zeros_are_kept_apart_and_ours_are_not(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"x": [-0.0, 1.5]})
    pq.write_table(
        table, path, use_dictionary=False, bloom_filter_options={"x": {"ndv": 8, "fpp": 0.01}}
    )
    (theirs,) = filters_of(path)
    sb.add_bloom_filters(path, columns={"x": sb.BloomFilterOptions(fpp=1e-6)}, replace_filters=True)
    (ours,) = folded_to([theirs], filters_of(path))
    zero = bytes(8)
    assert not theirs.check(zero)
    assert ours.check(zero)
    theirs.insert(zero)
    assert ours == theirs


def test_pyarrows_filters_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(
        customers(), path, row_group_size=1000, bloom_filter_options={"email": {"ndv": 1000}}
    )
    theirs = filters_of(path, "email")
    report = sb.add_bloom_filters(path, columns=["email", "iban"])
    actions = {(done.column, done.action) for done in report.files[0].filters}
    assert actions == {("email", "kept"), ("iban", "added")}
    assert filters_of(path, "email") == theirs
    metadata = pq.ParquetFile(path).metadata
    for row_group in range(metadata.num_row_groups):
        for column in (0, 1):
            chunk = metadata.row_group(row_group).column(column)
            assert chunk.bloom_filter_offset > 0
            assert chunk.bloom_filter_length > 0


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM])
def test_pyarrow_opens_an_encrypted_file_with_our_filters_in_every_way(
    tmp_path: Path, mode: Mode
) -> None:
    path = write(tmp_path / "x.parquet", customers(), mode)
    sb.add_bloom_filters(path, columns=["email", "iban", "id"], keys=ArrowKms())
    properties = crypto_factory().file_decryption_properties(pe.KmsConnectionConfig())
    file = pq.ParquetFile(path, decryption_properties=properties, pre_buffer=True)
    assert file.read_row_groups([1], columns=["email"]).equals(
        customers().slice(1000, 1000).select(["email"])
    )
    wanted = customers().slice(5, 1)
    filtered = pq.read_table(
        path,
        decryption_properties=properties,
        filters=[("email", "=", wanted["email"][0])],
    )
    assert filtered.equals(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c.name.replace(" ", "_"))
def test_very_many_values_are_found(tmp_path: Path, column: Column) -> None:
    file = typed_file(tmp_path, column, DICTIONARY, Mode.UNIFORM, row_groups=200)
    add_filter(file, fpp=0.01)
    for verdicts in our_verdicts(file, file.sample(2000)):
        assert "maybe" in verdicts
