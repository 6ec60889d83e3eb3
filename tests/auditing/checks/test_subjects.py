"""What a check looks at: the columns that are to be secret, and where a finding of one stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.auditing.checks.subjects import (
    AuditRequest,
    AuditRun,
    ChunkSubject,
    FileSubject,
    FooterSubject,
)
from secure_bloom.auditing.rules.contradiction_rules import IMPOSSIBLE_COUNTS
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import read_unverified, unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.storage import open_input
from testing.surgery import opened
from testing.tables import KEYRING, Mode, customers, write

#: The files encrypt email and iban.  This policy knows neither, and has a key for another column.
POLICY = sb.KeyPolicy(footer_key="k_footer", columns={"city": ColumnRule(path="city", key="k_pii")})


@contextmanager
def subjects(path: Path, *, with_keys: bool = True) -> Iterator[FooterSubject]:
    with open_input(str(path)) as file:
        resolver = KeyResolver(KEYRING if with_keys else None)
        keys = file_keys(resolver, file)
        run = AuditRun(request=AuditRequest(policy=POLICY), resolver=resolver)
        of = FileSubject(file=file, tail=read_tail(file), keys=keys, run=run)
        footer = unlock(of.tail, keys) if with_keys else read_unverified(of.tail, keys)
        chunks = tuple(
            ChunkSubject(
                of=of,
                row_group=row_group,
                leaf=leaf,
                wanted=wanted,
                column_chunk=footer.column_chunks[row_group][column],
                chunk=footer.chunk(row_group, column) if with_keys else None,
            )
            for row_group in range(len(footer.row_groups))
            for column, (leaf, wanted) in enumerate(
                zip(footer.leaves, run.request.wanted(footer.leaves), strict=True)
            )
        )
        yield FooterSubject(of=of, footer=footer, chunks=chunks)


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        (Mode.PLAIN, {"city"}),
        (Mode.ENCRYPTED, {"city", "email", "iban"}),
        (Mode.SIGNED, {"city", "email", "iban"}),
    ],
)
def test_a_column_is_sensitive_by_the_policy_or_by_the_file(
    tmp_path: Path, mode: Mode, names: set[str]
) -> None:
    path = write(tmp_path / "x.parquet", customers(30), mode)
    with subjects(path) as found:
        assert found.sensitive().keys() == names


def test_without_keys_a_check_sees_what_an_outsider_sees(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(30), Mode.SIGNED)
    for with_keys in (True, False):
        with subjects(path, with_keys=with_keys) as found:
            email = next(it for it in found.chunks if it.leaf.name == "email")
            assert email.meta_data is not None
            assert (email.meta_data.statistics is not None) is with_keys


def test_only_an_encrypted_footer_cannot_be_read_by_anyone(tmp_path: Path) -> None:
    for mode in (Mode.PLAIN, Mode.SIGNED, Mode.ENCRYPTED):
        with subjects(write(tmp_path / "x.parquet", customers(30), mode)) as found:
            assert found.of.is_readable is (mode is not Mode.ENCRYPTED)


def test_a_finding_names_the_place_of_its_subject(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(30), row_group_size=10)
    with subjects(path) as found:
        last = found.chunks[-1]
        told = [it.finding(IMPOSSIBLE_COUNTS, "counts") for it in (found.of, found, last)]
    assert {it.path for it in told} == {str(path)}
    assert [(it.row_group, it.column) for it in told] == [
        (None, None),
        (None, None),
        (2, last.leaf.name),
    ]


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
