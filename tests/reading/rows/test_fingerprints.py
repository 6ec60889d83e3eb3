"""A few values of a member of a structure are found in its pages, without the C extension."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb

ROWS, GROUP = 4000, 500
RANDOM = np.random.default_rng(8)
NUMBERS = RANDOM.integers(0, 10**6, ROWS)


def lake(path: Path, member: pa.Array) -> Path:
    beside = pa.array([f"{n:060d}" for n in RANDOM.integers(0, 10**9, ROWS)])
    rows = pa.StructArray.from_arrays([member, beside], ["m", "beside"])
    options: dict[str, Any] = {
        "row_group_size": GROUP,
        "use_dictionary": False,
        "compression": "none",
    }
    pq.write_table(pa.table({"s": rows}), path, **options)
    return path


@pytest.mark.parametrize(
    "member",
    [
        pa.array(NUMBERS, pa.int64()),
        pa.array(NUMBERS % 1000, pa.int32()),
        pa.array(NUMBERS / 4, pa.float64()),
        pa.array(NUMBERS / 4, pa.float32()),
        pa.array([str(n) for n in NUMBERS]),
        pa.array([b"%06d" % n for n in NUMBERS], pa.binary(6)),
        pa.array([None if n % 3 else str(n) for n in NUMBERS]),
    ],
    ids=lambda array: str(array.type),
)
def test_every_row_with_a_value_is_found(tmp_path: Path, member: pa.Array) -> None:
    path = lake(tmp_path / "a.parquet", member)
    for value in member.drop_null()[:5]:
        wanted = pc.sum(pc.equal(member, value)).as_py()
        assert sb.read_table(path, where=[(("s", "m"), "=", value)]).num_rows == wanted
    many = member.drop_null()[:8].to_pylist()
    wanted = pc.sum(pc.is_in(member, value_set=pa.array(many, member.type))).as_py()
    assert sb.read_table(path, where=[(("s", "m"), "in", many)]).num_rows == wanted


@pytest.mark.usefixtures("both_ways")
def test_what_is_read_does_not_depend_on_the_extension(tmp_path: Path) -> None:
    path = lake(tmp_path / "a.parquet", pa.array([str(n) for n in NUMBERS]))
    found = sb.explain(path, where=[(("s", "m"), "=", "5x")]).bytes_read
    # The member alone was read, and not what stands beside it.
    assert found < path.stat().st_size / 2
