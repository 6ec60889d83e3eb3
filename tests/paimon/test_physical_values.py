"""The forms of a value in an index."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import paimon
from secure_bloom.paimon import data_types, physical_values
from secure_bloom.paimon.column_types import leaf_of
from secure_bloom.paimon.data_types import TypeRoot, hashed_form
from tests.paimon.conftest import verdicts


@pytest.mark.parametrize("root", list(TypeRoot))
def test_an_example_is_as_wide_as_any_value(root: TypeRoot) -> None:
    """So that the end of a bitmap's list of values is found, by a stored type as by a given one."""
    data_type = paimon.DataType.parse(root)
    values = {"FLOAT": 1.5, "DOUBLE": 1.5, "TIMESTAMP": (1, 0), "TIMESTAMP_LTZ": (1, 0)}
    is_text = root in (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.STRING)
    is_bytes = root in (TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.BYTES)
    value = values.get(root, "a" if is_text else b"a" if is_bytes else 1)
    form = hashed_form(data_type, value)
    leaf = leaf_of("c", data_type)
    for example in (data_types.example_form(data_type), physical_values.example_form(leaf)):
        assert example is not None
        assert type(example.content) is type(form.content)
        assert isinstance(form.content, bytes) or example.width == form.width


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        ("5.0", ["maybe", "absent"]),
        ("5.", ["maybe", "absent"]),
        ("1e1", ["maybe", "absent"]),
        ("+1.05E2", ["absent", "maybe"]),
        ("0e999", ["maybe", "absent"]),
        ("-0.0", ["maybe", "absent"]),
        ("5.5", ["absent", "absent"]),
        ("1e-1", ["absent", "absent"]),
        ("1e19", ["absent", "absent"]),
        ("-1e999999999", ["absent", "absent"]),
    ],
)
def test_a_whole_number_may_have_other_spellings(
    lake: Path, number: str, wanted: list[str]
) -> None:
    assert verdicts(lake, f"id = {number}") == [*wanted, "no_filter"]
    assert verdicts(lake, f"id in (700, '{number}')") == [*wanted, "no_filter"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.int32()),
        pa.array([1], pa.int64()),
        pa.array(["a"]),
        pa.array([b"a"]),
        pa.array([1.5]),
        pa.array([datetime(2024, 3, 1)]),
        pa.array([253402300800_000], pa.timestamp("ms")),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("operator", ["=", "in"])
def test_values_of_pyarrow_are_values(tmp_path: Path, operator: str, column: pa.Array) -> None:
    pq.write_table(pa.table({"c": column}), tmp_path / "x.parquet")
    paimon.build_indexes(tmp_path, columns=["c"])
    wanted = column if operator == "in" else column[0]
    (file,) = paimon.probe(tmp_path, [("c", operator, wanted)]).files
    assert file.verdict == "maybe"
