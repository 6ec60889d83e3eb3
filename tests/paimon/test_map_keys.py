"""The values of one key of a map: found beside it, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError
from secure_bloom.paimon.map_keys import read_map_values
from tests.surgery import opened
from tests.tables import Mode, write

MAPS = pa.table(
    {
        "m": pa.array(
            [[("a", "1"), ("b", "2")], [], None, [("b", None), ("a", "3")], [("a", "1")]],
            pa.map_(pa.string(), pa.string()),
        )
    }
)
KEY, VALUE = "m.key_value.key", "m.key_value.value"


def values(path: Path, key: str) -> list[bytes]:
    with opened(path) as it:
        found = read_map_values(it.file, it.chunk(0, KEY), it.chunk(0, VALUE), key)
        return [value for part in found for value in part.to_pylist()]


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.UNIFORM], ids=lambda mode: mode.name)
def test_values_stand_beside_their_key(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", MAPS, mode)
    assert values(path, "a") == [b"1", b"3", b"1"]
    assert values(path, "b") == [b"2"]
    assert values(path, "c") == []


def test_keys_and_values_that_are_not_as_many_are_refused(tmp_path: Path) -> None:
    table = pa.table({"k": [["x", "y"]], "v": [["1"]]})
    with opened(write(tmp_path / "x.parquet", table)) as it:
        key, value = (it.chunk(0, leaf.name) for leaf in it.footer.leaves)
        with pytest.raises(FormatError, match="a map has 2 keys and 1 values") as caught:
            list(read_map_values(it.file, key, value, "x"))
    assert (caught.value.row_group, caught.value.column) == (0, value.leaf.name)
