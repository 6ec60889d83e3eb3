"""Types of columns: of the data file's footer, or as they are given."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import paimon
from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.errors import PolicyError
from secure_bloom.paimon.column_types import describe_type, leaf_of
from secure_bloom.paimon.data_types import DataType, TypeRoot
from secure_bloom.parquet.structures.metadata import Type
from testing.tables import KEYRING, Mode, customers, write


def test_an_index_file_alone_needs_types(lake: Path) -> None:
    alone = (lake / "1.parquet.index").rename(lake / "lone.orc.index")
    (file,) = paimon.probe(alone, "id = 105").failed
    assert "lone.orc" in str(file.error)
    types = {"id": "BIGINT NOT NULL", "name": paimon.DataType.parse("STRING")}
    assert paimon.probe(alone, "id = 105", types=types).verdicts == {Verdict.MAYBE}
    assert paimon.probe(alone, "name = 'n5'", types=types).verdicts == {Verdict.ABSENT}


def test_a_time_that_is_given_a_type_is_found(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([36_000_123], pa.time32("ms"))})
    pq.write_table(table, tmp_path / "data.parquet")
    paimon.build_index(tmp_path / "data.parquet", {"c": paimon.IndexOptions(fpp=1e-9)})
    for types in ({}, {"c": "TIME(3)"}):
        probed = paimon.probe(tmp_path, "c = 10:00:00.123", types=types)
        assert probed.verdicts == {Verdict.MAYBE}
        assert paimon.probe(tmp_path, "c = 10:00:01", types=types).verdicts == {Verdict.ABSENT}


@pytest.mark.parametrize(
    ("paimon_type", "value"),
    [
        ("TINYINT", "-5"),
        ("SMALLINT", "300"),
        ("INT", "70000"),
        ("BIGINT", "-9000000000"),
        ("FLOAT", "1.5"),
        ("DOUBLE", "1e300"),
        ("DATE", "2024-03-01"),
        ("TIMESTAMP(3)", "2024-03-01T10:00:00.123"),
        ("TIMESTAMP(6)", "2024-03-01T10:00:00.123456"),
        ("TIMESTAMP_LTZ(6)", "2024-03-01T10:00:00.123456Z"),
        ("TIMESTAMP(9)", "2024-03-01T10:00:00.123456789"),
        ("VARCHAR(20)", "é"),
        ("BYTES", "hex:00ff"),
    ],
)
def test_a_type_that_is_given_hashes_as_the_file_s_own(
    tmp_path: Path, paimon_type: str, value: str
) -> None:
    """The same question, once with the type from the data file and once with Paimon's name."""
    arrow = {
        "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
        "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "DATE": pa.date32(),
        "TIMESTAMP(3)": pa.timestamp("ms"),
        "TIMESTAMP(6)": pa.timestamp("us"), "TIMESTAMP_LTZ(6)": pa.timestamp("us", "UTC"),
        "TIMESTAMP(9)": pa.timestamp("ns"), "VARCHAR(20)": pa.string(), "BYTES": pa.binary(),
    }[paimon_type]  # fmt: skip
    content = b"\0\xff" if paimon_type == "BYTES" else value
    if pa.types.is_floating(arrow):
        content = float(value)
    array = pa.array([content])
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"c": array if array.type == arrow else array.cast(arrow)}), path)
    paimon.build_index(path, {"c": paimon.IndexOptions(fpp=1e-9)})
    for types in ({}, {"c": paimon_type}):
        assert paimon.probe(path, f"c = '{value}'", types=types).verdicts == {Verdict.MAYBE}
    other = {"FLOAT": "2.5", "DOUBLE": "2.5"}.get(paimon_type)
    if other is not None:
        assert paimon.probe(path, f"c = {other}").verdicts == {Verdict.ABSENT}


@pytest.mark.parametrize(
    ("where", "types"),
    [
        ("id = 1", {"id": "INT"}),
        ("id = 3000000000", {"id": "INT"}),
        ("id = '1'", {"id": "STRING"}),
        ("ts = 1970-01-01T00:00:00.002", {"ts": "TIMESTAMP(3)"}),
        ("real = 2.5", {"real": "FLOAT"}),
        ("real = 2", {"real": "BIGINT"}),
    ],
)
def test_a_type_that_contradicts_the_footer_is_an_error(
    evolved: Path, where: str, types: dict[str, str]
) -> None:
    newer = evolved / "b.parquet"
    for path in (newer, f"{newer}.index"):
        with pytest.raises(PolicyError, match=f"type given is {next(iter(types.values()))[:5]}"):
            paimon.probe(path, where, types=types)
    newer.rename(evolved / "elsewhere")  # then the type given is all that is known
    assert paimon.probe(f"{newer}.index", where, types=types).verdicts <= set(Verdict)


@pytest.mark.parametrize("types", [{"ts": "TIMESTAMP(6)"}, {"ts": "TIMESTAMP_LTZ(9)"}])
def test_types_of_one_form_are_no_contradiction(evolved: Path, types: dict[str, str]) -> None:
    where = "ts = 1970-01-01T00:00:00.002"
    assert paimon.probe(evolved / "b.parquet", where, types=types).verdicts == {Verdict.MAYBE}


def test_an_encrypted_footer_without_its_key_asks_for_types(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    paimon.build_index(path, ["id"], keys=KEYRING)
    (file,) = paimon.probe(path, "id = 5").failed
    assert "keyring" in str(file.hint)
    assert "--type id=BIGINT" in str(file.hint)
    assert paimon.probe(path, "id = 5", keys=KEYRING).verdicts == {Verdict.MAYBE}
    assert paimon.probe(path, "id = 5", types={"id": "BIGINT"}).verdicts == {Verdict.MAYBE}


def test_the_hint_beside_an_orc_file_is_to_give_types(lake: Path) -> None:
    (lake / "1.parquet.index").rename(lake / "1.orc.index")
    (lake / "1.orc").write_bytes(b"ORC" + bytes(20))
    for path in (lake / "1.orc", lake / "1.orc.index"):
        (file,) = paimon.probe(path, "id = 5").failed
        assert str(file.hint).startswith("give the types")
        assert "such as --type id=BIGINT" in str(file.hint)


@pytest.mark.parametrize("root", list(TypeRoot))
def test_every_type_is_stored(root: TypeRoot) -> None:
    leaf = leaf_of("c", DataType(root=root))
    assert leaf.name == "c"
    assert describe_type(leaf)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("INT", Type.INT32),
        ("BIGINT", Type.INT64),
        ("STRING", Type.BYTE_ARRAY),
        ("DATE", Type.INT32),
    ],
)
def test_the_physical_type(text: str, stored: Type) -> None:
    assert leaf_of("c", DataType.parse(text)).type is stored


def test_widths_of_numbers_are_told_apart() -> None:
    words = {describe_type(leaf_of("c", DataType.parse(text))) for text in ("TINYINT", "SMALLINT")}
    assert len(words) == 2
