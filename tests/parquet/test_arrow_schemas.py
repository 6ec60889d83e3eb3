"""What a serialized Arrow schema takes is known before Arrow decodes it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.auditing.checks.writer_schemas import texts_inside
from secure_bloom.errors import FormatError
from secure_bloom.parquet.arrow_schemas import check_arrow_texts, message_size
from secure_bloom.parquet.metadata_rows import metadata_rows
from secure_bloom.running.memory_budget import VARIABLE, DecodedBytes, MemoryBudgetError
from testing.arrow_bombs import parquet_with, shared_children

_PREFIX = 8


def size(schema: pa.Schema) -> int:
    return message_size(schema.serialize().to_pybytes()[_PREFIX:])


def test_fields_count_as_often_as_they_are_decoded() -> None:
    assert message_size(shared_children(3)[_PREFIX:]) // 1_000 == 2**4 - 1
    assert message_size(shared_children(60)[_PREFIX:]) > 1 << 60
    with pytest.raises(FormatError, match="nests deeper"):
        message_size(shared_children(120)[_PREFIX:])


@pytest.mark.parametrize(
    "field",
    [
        pa.field("x" * 5_000, pa.int8()),
        pa.field("a", pa.timestamp("us", "x" * 5_000)),
        pa.field("a", pa.int8(), metadata={"k": "x" * 5_000}),
        pa.field("a", pa.struct([pa.field("b", pa.int8(), metadata={"x" * 5_000: ""})])),
    ],
    ids=["name", "zone", "metadata", "key of a member"],
)
def test_texts_count(field: pa.Field) -> None:
    assert 5_000 < size(pa.schema([field])) < 8_000
    assert size(pa.schema([pa.field("a", pa.int8())], metadata={"k": "x" * 5_000})) > 5_000


def test_wide_schemas_of_usual_types_are_small() -> None:
    kinds = [
        pa.int64(), pa.string(), pa.timestamp("us", "UTC"), pa.decimal128(38, 9),
        pa.list_(pa.date32()), pa.dictionary(pa.int32(), pa.string()), pa.binary(7),
        pa.map_(pa.string(), pa.int8()),
        pa.sparse_union([pa.field("x", pa.int8())]), pa.duration("ns"), pa.time64("us"),
    ]  # fmt: skip
    schema = pa.schema([(f"c{n}", kinds[n % len(kinds)]) for n in range(2_000)])
    assert 2_000_000 < size(schema) < 6_000_000


@pytest.mark.parametrize("cut", range(8, 400, 16))
def test_damaged_tables_are_an_error_and_nothing_else(cut: int) -> None:
    message = shared_children(4)
    for damaged in (message[:cut], message[:cut] + b"\xff" * 8 + message[cut + 8 :]):
        try:
            assert message_size(damaged[_PREFIX:]) >= 0
        except FormatError as error:
            assert "Arrow schema" in error.message  # noqa: PT017
    check_arrow_texts([None, ""])


@pytest.mark.parametrize(
    "form",
    [
        lambda message: base64.b64encode(message).decode(),
        lambda message: base64.b64encode(message).decode() + "=A!",
        lambda message: base64.b64encode(message + b"xx").decode().rstrip("=") + "AA",
        lambda message: base64.b64encode(message[4:]).decode(),
    ],
    ids=["message", "other characters after it", "odd length", "without a mark"],
)
def test_a_schema_is_found_in_each_form_that_arrow_takes(
    form: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    with pytest.raises(MemoryBudgetError):
        check_arrow_texts([form(shared_children(15, 20_000))])


def read_checkpoint(content: bytes, _: Path) -> object:
    return list(metadata_rows("x", content, DecodedBytes("the checkpoint"), lambda _: ["a"]))


def read_rows(content: bytes, folder: Path) -> object:
    (folder / "x.parquet").write_bytes(content)
    return sb.read_table(folder / "x.parquet")


@pytest.mark.parametrize("read", [read_rows, read_checkpoint], ids=["rows", "metadata of a table"])
def test_a_small_file_with_a_large_arrow_schema_is_refused(
    read: Callable[[bytes, Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    content = parquet_with(shared_children(15, 20_000))
    assert len(content) < 40_000
    before = pa.total_allocated_bytes()
    with pytest.raises(MemoryBudgetError, match="the writer's Arrow schema"):
        read(content, tmp_path)
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_an_audit_says_that_it_cannot_look_into_such_a_schema(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    with pytest.raises(MemoryBudgetError):
        texts_inside(base64.b64encode(shared_children(15, 20_000)))


@pytest.mark.parametrize("length", range(1, 7))
def test_the_last_bytes_of_a_schema_count_whatever_its_length(tmp_path: Path, length: int) -> None:
    pl = pytest.importorskip("polars")
    # Polars has no padding after the last text, which is the name.
    pl.DataFrame({"x" * length: ["a"]}).write_parquet(tmp_path / "x.parquet")
    assert sb.read_table(tmp_path).num_rows == 1
