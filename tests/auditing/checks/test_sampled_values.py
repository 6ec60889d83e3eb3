"""Values of a column, looked up in its filter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.tables import KEYRING, Mode, write
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    Example,
    put_filter,
    some_filter,
)


def test_an_entry_of_a_dictionary_that_no_row_has_need_not_be_in_the_filter(tmp_path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 20), ["rome", "oslo", "nowhere"])
    path = write(tmp_path / "x.parquet", pa.table({"city": words}))
    put_filter(path, "city", some_filter(b"rome", b"oslo", blocks=64))
    assert ids(Example(path=path, policy=KeyPolicy()).audit(check_values=True)) == []


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
def test_filters_of_lists_are_sampled_too(tmp_path: Path, mode: Mode) -> None:
    table = pa.table({"tags": [[f"t{i}", f"u{i}"] for i in range(50)]})
    leaf = "tags.list.element"
    path = write(tmp_path / "x.parquet", table, mode, column_keys={"k_pii": [leaf]})
    sb.add_bloom_filters(path, columns=["tags"], keys=KEYRING)
    columns = {} if mode is Mode.PLAIN else {"tags": ColumnRule(path="tags", key="k_pii")}
    policy = KeyPolicy(footer_key=None if mode is Mode.PLAIN else "k_footer", columns=columns)
    assert ids(Example(path=path, policy=policy).audit(check_values=True)) == []


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["dictionary", "plain"])
def test_a_value_of_the_last_page_that_the_filter_lacks_is_found(
    tmp_path: Path, options: dict[str, bool]
) -> None:
    keys = [f"key{number}" for number in range(3000)]
    written = {"data_page_size": 512, "write_batch_size": 10, "write_statistics": False}
    path = write(
        tmp_path / "x.parquet", pa.table({"k": keys}), row_group_size=3000, **written, **options
    )
    put_filter(path, "k", some_filter(*(key.encode() for key in keys[:-1]), blocks=512))
    example = Example(path=path, policy=KeyPolicy())
    assert ids(example.audit()) == []
    assert ids(example.audit(check_values=True)) == ["filter-wrong"]
