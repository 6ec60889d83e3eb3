"""`add_bloom_filters` takes files or one table, and refuses options of the other kind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.api.add import add_bloom_filters
from secure_bloom.errors import PolicyError


@pytest.mark.parametrize("options", [{"branch": "b"}, {"since": 1}, {"where": "a = 1"}])
def test_files_have_no_options_of_tables(tmp_path: Path, options: dict[str, object]) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "f.parquet")
    with pytest.raises(PolicyError, match=next(iter(options))):
        add_bloom_filters(tmp_path, columns=["a"], **options)


def test_a_table_of_a_catalog_is_given_alone(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="given alone"):
        add_bloom_filters([str(tmp_path), "iceberg://lake/db.t"], columns=["a"])
