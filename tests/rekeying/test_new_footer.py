"""A footer after a change of keys: sizes and places are those of the new file, nothing leaks."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.surgery import opened
from testing.tables import KEYRING, Mode, customers, write

SIGNED = sb.KeyPolicy(
    footer_key="k_footer",
    footer_mode=FooterMode.SIGNED,
    columns={"email": ColumnRule(path="email", key="k_pii")},
)


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    path = write(tmp_path / "x.parquet", customers(300), Mode.PLAIN, row_group_size=100)
    assert not sb.reencrypt(path, policy=SIGNED, keys=KEYRING).failed
    return path


def test_row_groups_lie_one_behind_the_other_where_the_footer_says(signed: Path) -> None:
    with opened(signed) as it:
        end = 4
        for ordinal, group in enumerate(it.footer.metadata.row_groups):
            assert (group.ordinal, group.file_offset) == (ordinal, end)
            sizes = [chunk.total_compressed_size for chunk in _meta_data(it, ordinal)]
            assert group.total_compressed_size == sum(sizes)
            end += sum(sizes)


def test_the_copy_in_clear_of_a_sealed_column_has_no_value(signed: Path) -> None:
    with opened(signed) as it:
        for group in it.footer.metadata.row_groups:
            shown = {".".join(c.meta_data.path_in_schema): c.meta_data for c in group.columns}
            assert shown["email"].statistics is None
            assert shown["city"].statistics is not None


def test_in_clear_again_nothing_of_the_old_protection_is_left(signed: Path, tmp_path: Path) -> None:
    assert not sb.decrypt(signed, output=tmp_path / "clear", keys=KEYRING).failed
    plain = tmp_path / "clear" / signed.name
    assert pq.read_table(plain).equals(customers(300))
    with opened(plain, None) as it:
        metadata = it.footer.metadata
        assert metadata.encryption_algorithm is metadata.footer_signing_key_metadata is None
        assert all(c.crypto_metadata is None for g in metadata.row_groups for c in g.columns)


def _meta_data(it, row_group: int):
    return [it.chunk(row_group, leaf.name).meta_data for leaf in it.footer.leaves]
