"""What holds for any types, values and footers, from the table to the probe of the file on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.bloom.build import build_filter
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.cipher import ModuleType, decrypt_gcm, module_aad
from secure_bloom.parquet.column_values import read_entries
from testing.quick_cases import examples
from testing.surgery import Opened, filter_of, opened
from testing.tables import KEYRING, Mode, write
from testing.thrift import trees
from testing.thrift.metadata import FileMetaData
from tests.bloom.test_build import TYPES

MODES = st.sampled_from(list(Mode))
FPPS = st.floats(1e-6, 0.5)
LAYOUTS = st.fixed_dictionaries(
    {
        "use_dictionary": st.booleans(),
        "row_group_size": st.sampled_from([3, 20, 1000]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "data_page_size": st.sampled_from([16, 1 << 20]),
        "compression": st.sampled_from(["none", "zstd"]),
    }
)


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[pa.DataType, list[Any]]:
    kind = draw(st.sampled_from(list(TYPES)))
    return kind, draw(st.lists(st.none() | TYPES[kind], min_size=1, max_size=40))


@contextmanager
def _file(kind: pa.DataType, values: list[Any], mode: Mode, layout: dict) -> Iterator[Path]:
    stored = [v.bytes for v in values if v] if kind == pa.uuid() else values
    array = (
        pa.array(stored, pa.binary(16)).cast(kind) if kind == pa.uuid() else pa.array(stored, kind)
    )
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table({"x": array})
        yield write(Path(folder) / "x.parquet", table, mode, column_keys={"k_pii": ["x"]}, **layout)


def _add(path: Path, fpp: float, *, in_place: bool = False) -> None:
    columns = {"x": sb.BloomFilterOptions(fpp=fpp)}
    report = sb.add_bloom_filters(path, columns=columns, keys=KEYRING, in_place=in_place)
    assert not report.failed


@examples(15)
@given(typed_values(), MODES, LAYOUTS, FPPS, st.booleans())
def test_no_false_negative_for_any_type_and_any_values(
    typed: tuple[pa.DataType, list[Any]], mode: Mode, layout: dict, fpp: float, in_place: bool
) -> None:
    kind, values = typed
    values = [v for v in values if v is not None] if kind == pa.uuid() else values
    with _file(kind, values, mode, layout) as path:
        _add(path, fpp, in_place=in_place)
        (probed,) = sb.probe(path, "x", values, keys=KEYRING).files
    for row, value in enumerate(values):
        group = probed.row_groups[row // layout["row_group_size"]]
        assert group.verdicts[value] is sb.Verdict.MAYBE


@examples(15)
@given(typed_values(), MODES, LAYOUTS, FPPS, st.lists(st.binary(max_size=16), max_size=50))
def test_a_filter_written_and_read_is_the_one_in_memory(
    typed: tuple[pa.DataType, list[Any]], mode: Mode, layout: dict, fpp: float, others: list[bytes]
) -> None:
    with _file(*typed, mode, layout) as path:
        built = _built(path, fpp)
        _add(path, fpp)
        read = [filter_of(path, row_group, "x") for row_group in range(len(built))]
    assert read == built
    for ours, theirs in zip(built, read, strict=True):
        assert list(map(ours.check, others)) == list(map(theirs.check, others))


def _built(path: Path, fpp: float) -> list[SplitBlockBloomFilter]:
    """The filters of all row groups, built without being written."""
    options = sb.BloomFilterOptions(fpp=fpp)
    with opened(path) as it:
        chunks = [it.chunk(row_group, "x") for row_group in range(len(it.footer.row_groups))]
        return [build_filter(c.leaf, read_entries(it.file, c), options).filter for c in chunks]


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="."), min_size=1)
KINDS = st.recursive(
    st.sampled_from(list(TYPES)),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(
            lambda fields: pa.struct(list(fields.items()))
        ),
    ),
    max_leaves=4,
)
SCHEMAS = st.builds(
    lambda fields, metadata: pa.schema(list(fields.items()), metadata),
    st.dictionaries(NAMES, KINDS, min_size=1, max_size=4),
    st.dictionaries(NAMES, NAMES, max_size=3),
)


@examples(15)
@given(SCHEMAS, st.sampled_from([Mode.PLAIN, Mode.UNIFORM]), st.integers(0, 3))
def test_footers_reencode_byte_identically(schema: pa.Schema, mode: Mode, rows: int) -> None:
    table = pa.table([pa.nulls(rows, field.type) for field in schema], schema=schema)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "x.parquet", table, mode, store_schema=False)
        with opened(path) as it:
            stored = _stored_metadata(it)
            assert it.footer.metadata.encode() == stored
            assert FileMetaData(trees.decode(stored)[0]).num_rows == rows


def _stored_metadata(it: Opened) -> bytes:
    """FileMetaData as it stands in the file, decrypted."""
    footer = it.footer
    if footer.tail.mode is not FooterMode.ENCRYPTED:
        return footer.tail.clear
    assert footer.key is not None
    aad = module_aad(footer.file_aad, ModuleType.FOOTER)
    return decrypt_gcm(footer.tail.sealed, footer.key.key, aad)
