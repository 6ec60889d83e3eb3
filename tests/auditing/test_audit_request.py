"""What an audit wants for each leaf of a file: a key, a filter, both or none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from secure_bloom.auditing.audit_request import AuditRequest
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.surgery import opened
from testing.tables import write

NESTED = pa.table({"a": [{"b": 1, "c": "x"}], "d": [1]})


def request(*rules: ColumnRule, **policy: object) -> AuditRequest:
    columns = {rule.path: rule for rule in rules}
    return AuditRequest(policy=KeyPolicy(footer_key="kf", columns=columns, **policy))  # type: ignore[arg-type]


def test_leaves_have_the_key_of_their_parent_and_filters_of_their_own(tmp_path: Path) -> None:
    wanted = request(
        ColumnRule(path="a", key="k"), ColumnRule(path="a.c", bloom=BloomFilterOptions())
    )
    with opened(write(tmp_path / "x.parquet", NESTED)) as it:
        found = wanted.wanted(it.footer.leaves)
    assert [(leaf.key, leaf.bloom is not None) for leaf in found] == [
        ("k", False),
        ("k", True),
        (None, False),
    ]


def test_all_leaves_of_a_uniform_policy_have_a_key(tmp_path: Path) -> None:
    with opened(write(tmp_path / "x.parquet", NESTED)) as it:
        found = request(uniform=True).wanted(it.footer.leaves)
    assert {leaf.key for leaf in found} == {"kf"}


def test_a_policy_has_secrets_if_a_column_has_a_key() -> None:
    assert request(ColumnRule(path="a", key="k")).has_secrets
    assert not request(ColumnRule(path="a", bloom=BloomFilterOptions())).has_secrets
