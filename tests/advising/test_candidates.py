"""Columns that never have a filter say why, before their values are looked at."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.kms import Keyring
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, write


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("types")
    moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "flag": [True, False],
            "old": pa.array([moment, moment], pa.timestamp("ns")),
            "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
            "pairs": [[{"a": 1}], []],
            "length": pa.array([1, 2], pa.duration("us")),
            "x": [0.5, 1.5],
        }
    )
    (folder / "country=it").mkdir()
    pq.write_table(table, folder / "country=it" / "a.parquet", use_deprecated_int96_timestamps=True)
    return folder


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("flag", "BOOLEAN"),
        ("old", "INT96"),
        ("map.key_value.key", "repeated"),
        ("pairs.list.element.a", "repeated"),
        ("length", "duration"),
        ("country", "partition"),
        ("x", "ranges only"),
    ],
)
def test_a_column_says_why_it_has_no_filter(types: Path, column: str, reason: str) -> None:
    [advice] = sb.advise(types, columns=column).columns
    assert advice.column == column
    assert str(advice.verdict) == "no"
    assert advice.reason.startswith(f"{reason}:")


def test_a_column_whose_key_is_missing_says_so_and_the_others_are_tried(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", customers(), Mode.ENCRYPTED)
    keys = {name: MASTER_KEYS[name] for name in ("k_footer", "k_pii")}
    advice = sb.advise(tmp_path, columns=["iban", "email"], keys=Keyring(master_keys=keys))
    found = {it.column: it for it in advice.columns}
    assert found["iban"].reason.startswith("its key is missing")
    assert found["iban"].trial is None
    assert found["email"].trial is not None
    [iban] = sb.advise(tmp_path, columns="iban", keys=KEYRING).columns
    assert iban.trial is not None


def test_elements_of_a_list_are_looked_up_by_the_list(tmp_path: Path) -> None:
    tags = [[f"t{7 * row}", f"u{7 * row}"] for row in range(20_000)]
    table = pa.table({"tags": tags, "in": [{"them": row} for row in tags]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2000, use_dictionary=False)
    advice = sb.advise(tmp_path)
    assert {column.column for column in advice.gaining} == {
        "tags.list.element",
        "in.them.list.element",
    }
