"""Filters of columns: bounded, missing, saturated."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import secure_bloom as sb
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    Example,
    bloom,
    sound,
    with_rules,
)


def test_a_sample_knows_not_all_columns(tmp_path: Path) -> None:
    sound(tmp_path)
    table = customers(30).append_column("phone", pa.array(["1"] * 30))
    keys = {"k_pii": ["email", "phone"], "k_finance": ["iban"]}
    write(tmp_path / "y.parquet", table, Mode.ENCRYPTED, column_keys=keys)
    example = Example(path=tmp_path, policy=with_rules(phone="k_pii"))
    assert ids(example.audit()) == []
    assert ids(example.audit(sample=1)) == ["unchecked-sample"]


def test_a_filter_that_the_policy_bounds_is_not_saturated(tmp_path: Path) -> None:
    path = sound(tmp_path, table=customers(3000))
    policy = with_rules(email=bloom("email", "k_pii", fpp=0.01, max_bytes=256))
    assert not sb.add_bloom_filters(path, policy=policy, keys=KEYRING).failed
    assert ids(Example(path=path, policy=policy).audit()) == ["filter-saturated"] * 3
    policy = with_rules(email=bloom("email", "k_pii", fpp=0.01, max_bytes=512))
    options = {"policy": policy, "keys": KEYRING, "replace_filters": True}
    assert not sb.add_bloom_filters(path, **options).failed
    fpp = sb.inspect(path, keys=KEYRING).files[0].row_groups[0].columns[0].bloom.fpp
    assert 0.04 < fpp < 0.5
    assert ids(Example(path=path, policy=policy).audit()) == []
    wider = with_rules(email=bloom("email", "k_pii", fpp=0.01))
    assert set(ids(Example(path=path, policy=wider).audit())) == {"filter-saturated"}
