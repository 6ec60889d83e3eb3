"""The forms of values in indexes: by Paimon's types, or by the leaves of a Parquet file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from secure_bloom.paimon import DataType, typed_forms
from secure_bloom.paimon.physical_values import StoredForms
from testing.surgery import opened
from testing.tables import write


def test_a_null_has_no_form() -> None:
    assert typed_forms({"k": DataType.parse("INT")})("k", None) is None


def test_only_columns_with_a_type_have_an_example() -> None:
    forms = typed_forms({"k": DataType.parse("INT")})
    assert forms.example("k") is not None
    assert forms.example("other") is None


def test_both_ways_give_one_hash(tmp_path: Path) -> None:
    with opened(write(tmp_path / "x.parquet", pa.table({"k": pa.array([7], pa.int32())}))) as it:
        stored = StoredForms({leaf.name: leaf for leaf in it.footer.leaves})
        typed = typed_forms({"k": DataType.parse("INT")})
        assert [form.hash() for form in stored("k", 7) or ()] == [
            form.hash() for form in typed("k", 7) or ()
        ]
        assert stored("other", 7) is None
        assert stored.example("other") is None
