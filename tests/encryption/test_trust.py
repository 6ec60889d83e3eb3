"""Files that say what is not so: forged footers, exchanged algorithms, protection left away."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom import hudi, paimon
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter, read_bloom_filter
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.cipher import LENGTH_SIZE, NONCE_SIZE, TAG_SIZE
from secure_bloom.encryption.policy_tables import Algorithm, ColumnRule, EncryptionOptions
from secure_bloom.encryption.trust import Trust
from secure_bloom.hudi.filter_reader import show as hudi_show
from secure_bloom.parquet.footer.locate import MAGIC_ENCRYPTED
from secure_bloom.parquet.pages import read_pages
from testing.surgery import filter_place, forged_signed, opened
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift import trees
from testing.thrift.metadata import AesGcmCtrV1, EncryptionAlgorithm, FileCryptoMetaData

POLICY = sb.KeyPolicy(
    footer_key="k_footer",
    columns={"email": ColumnRule(path="email", key="k_pii")},
)
SIGNED_POLICY = sb.KeyPolicy(
    footer_key="k_footer", footer_mode=FooterMode.SIGNED, columns=POLICY.columns
)


def _row_group_of(value: int) -> int:
    return customers(2000).column("id").to_pylist().index(value) // 1000


VERBS: dict[str, Callable[..., Any]] = {
    "probe": lambda path, **given: _raised(sb.probe(path, "id", [7], **given).failed),
    "read": lambda path, **given: sb.read_table(path, where="id = 7", columns=["id"], **given),
    "explain": lambda path, **given: sb.explain(path, where="id = 7", columns=["id"], **given),
    "plan_read": lambda path, **given: sb.plan_read(path, where="id = 7", columns=["id"], **given),
    "hudi show": lambda path, **given: _raised(hudi_show(path, **given).failed),
    "hudi lookup": lambda path, **given: _raised(
        hudi.lookup(path, ["rome"], column="city", **given).failed
    ),
    "hudi filter": lambda path, **given: hudi.read_record_key_filter(path, **given),
    "paimon build": lambda path, **given: paimon.build_index(path, ["id"], **given),
}


def _raised(failed: Any) -> None:
    for file in failed:
        raise sb.SecureBloomError(file.error, hint=file.hint)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "given", [{"keys": KEYRING}, {"policy": SIGNED_POLICY}], ids=["keys", "policy"]
)
def test_a_signature_that_cannot_be_checked_is_an_error(
    tmp_path: Path, verb: str, given: dict[str, Any]
) -> None:
    path = forged_signed(tmp_path / "x.parquet")
    with pytest.raises(sb.SecureBloomError, match="signature cannot be checked") as caught:
        VERBS[verb](path, **given)
    assert "--allow-unverified" in str(caught.value.hint)
    with pytest.warns(sb.UnverifiedFileWarning, match="may be forged"):
        VERBS[verb](path, **given, allow_unverified=True)


@pytest.mark.parametrize("verb", VERBS)
def test_without_keys_it_is_read_and_said_every_time(tmp_path: Path, verb: str) -> None:
    path = forged_signed(tmp_path / "x.parquet")
    for _ in range(2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("default")
            VERBS[verb](path)
        assert [warning.category for warning in told] == [sb.UnverifiedFileWarning]


def test_filters_are_not_added_to_it(tmp_path: Path) -> None:
    path = forged_signed(tmp_path / "x.parquet")
    before = path.read_bytes()
    (report,) = sb.add_bloom_filters(path, columns=["city"], keys=KEYRING).files
    assert "k_elsewhere" in str(report.error)
    assert path.read_bytes() == before


def test_the_forged_file_lies(tmp_path: Path) -> None:
    """What the tests above are about: a value that is there is not found."""
    path = forged_signed(tmp_path / "x.parquet")
    with pytest.warns(sb.UnverifiedFileWarning):
        rows = sb.read_table(path, where="id = 7", columns=["id"]).num_rows
    with pytest.warns(sb.UnverifiedFileWarning):
        report = sb.probe(path, "id", [7])
    assert rows == 0
    group = report.files[0].row_groups[_row_group_of(7)]
    assert group.verdicts[7] is sb.Verdict.ABSENT


def test_encrypted_columns_of_an_unverified_file_are_read_without_a_signature_of_ours(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "x.parquet", customers(2000), Mode.SIGNED)
    few = sb.Keyring(master_keys={"k_pii": KEYRING.master_keys["k_pii"]})
    with pytest.warns(sb.UnverifiedFileWarning):
        found = sb.read_table(path, columns=["email", "id"], keys=few, allow_unverified=True)
    assert found.equals(customers(2000).select(["email", "id"]))


def _downgraded(folder: Path) -> Path:
    """A file of AES_GCM_V1 that now says AES_GCM_CTR_V1, its third value changed from 50.

    A CTR module starts its counter one block before a GCM module's text: with a block of anything
    before it, and without its tag, the text decrypts, and nothing authenticates it.
    """
    path = folder / "x.parquet"
    table = pa.table({"v": pa.array([50] * 8, pa.int64())}, schema=pa.schema([REQUIRED]))
    options = {"compression": "none", "use_dictionary": False, "column_keys": {"k_pii": ["v"]}}
    write(path, table, Mode.ENCRYPTED, **options)
    with opened(path) as it:
        chunk = it.chunk(0, "v")
        tail = it.footer.tail
        (page,) = read_pages(it.file, chunk)
        module = bytes(page.stored)
    text = bytearray(module[LENGTH_SIZE + NONCE_SIZE : -TAG_SIZE])
    for at, (old, new) in enumerate(
        zip((50).to_bytes(8, "little"), (10**6).to_bytes(8, "little"), strict=True)
    ):
        text[at] ^= old ^ new
    forged = module[: LENGTH_SIZE + NONCE_SIZE] + bytes(TAG_SIZE) + bytes(text)
    content = path.read_bytes()[: tail.offset].replace(module, forged)
    crypto = FileCryptoMetaData(trees.decode(tail.clear)[0])
    parameters = crypto.encryption_algorithm.AES_GCM_V1
    assert parameters is not None
    crypto.encryption_algorithm = EncryptionAlgorithm.of(
        AES_GCM_CTR_V1=AesGcmCtrV1.of(aad_file_unique=parameters.aad_file_unique)
    )
    body = crypto.encode() + tail.sealed
    path.write_bytes(content + body + len(body).to_bytes(4, "little") + MAGIC_ENCRYPTED)
    return path


REQUIRED = pa.field("v", pa.int64(), nullable=False)
GCM = sb.KeyPolicy(footer_key="k_footer", columns={"v": ColumnRule(path="v", key="k_pii")})
READERS: dict[str, Callable[..., Any]] = {
    "read": lambda path, **given: sb.read_table(path, **given),
    "read where": lambda path, **given: sb.read_table(path, where="v = 50", **given),
    "add": lambda path, **given: _raised(sb.add_bloom_filters(path, columns=["v"], **given).failed),
    "paimon": lambda path, **given: paimon.build_index(
        path, ["v"], allow_clear_index=True, **given
    ),
}


@pytest.mark.parametrize("verb", READERS)
def test_a_weaker_algorithm_than_the_policys_is_an_error(tmp_path: Path, verb: str) -> None:
    path = _downgraded(tmp_path)
    before = path.read_bytes()
    with pytest.raises(sb.SecureBloomError, match="AES_GCM_V1, the file has AES_GCM_CTR_V1"):
        READERS[verb](path, keys=KEYRING, policy=GCM)
    assert path.read_bytes() == before


@pytest.mark.parametrize("verb", READERS)
def test_a_page_of_another_size_than_its_header_promises_is_an_error(
    tmp_path: Path, verb: str
) -> None:
    path = _downgraded(tmp_path)
    with pytest.raises(sb.SecureBloomError, match="uncompressed_page_size is 64"):
        READERS[verb](path, keys=KEYRING)


WEAKER: dict[str, tuple[Mode, dict[str, Any], sb.KeyPolicy, str]] = {
    "plain file": (Mode.PLAIN, {}, POLICY, "the file has a plaintext footer without a signature"),
    "signed for encrypted": (Mode.SIGNED, {}, POLICY, "the file has a plaintext footer, signed"),
    "plain for signed": (Mode.PLAIN, {}, SIGNED_POLICY, "a plaintext footer without a signature"),
    "column in clear": (
        Mode.ENCRYPTED,
        {"column_keys": {"k_finance": ["iban"]}},
        POLICY,
        "column email: the policy says key k_pii, the column is stored in clear",
    ),
    "algorithm": (
        Mode.ENCRYPTED,
        {"encryption": {"encryption_algorithm": "AES_GCM_CTR_V1"}},
        POLICY,
        "AES_GCM_CTR_V1",
    ),
    "key length": (
        Mode.ENCRYPTED,
        {},
        sb.KeyPolicy(
            footer_key="k_footer",
            columns=POLICY.columns,
            encryption=EncryptionOptions(data_key_bits=256),
        ),
        "data keys of 256 bits, that of the footer has 128",
    ),
}


@pytest.mark.parametrize("case", WEAKER)
def test_protection_weaker_than_the_policys_is_an_error_unless_accepted(
    tmp_path: Path, case: str
) -> None:
    mode, options, policy, told = WEAKER[case]
    path = write(tmp_path / "x.parquet", customers(100), mode, **options)
    verbs: list[Callable[..., Any]] = [
        lambda **given: sb.read_table(path, where="email > 'user1'", **given),
        lambda **given: sb.read_table(path, where="email = 'nobody'", **given),
        lambda **given: _raised(sb.probe(path, "email", ["a"], **given).failed),
        lambda **given: _raised(
            hudi.lookup(path, ["user1@example.com"], column="email", **given).failed
        ),
    ]
    for verb in verbs:
        with pytest.raises(sb.SecureBloomError) as caught:
            verb(keys=KEYRING, policy=policy)
        assert told in str(caught.value)
        assert "--allow-unprotected" in str(caught.value.hint)
        verb(keys=KEYRING, policy=policy, allow_unprotected=True)


def test_stronger_protection_than_the_policys_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(100), Mode.ENCRYPTED)
    policy = sb.KeyPolicy(
        footer_key="k_footer",
        footer_mode=FooterMode.SIGNED,
        columns=POLICY.columns,
        encryption=EncryptionOptions(algorithm=Algorithm.AES_GCM_CTR_V1),
    )
    assert sb.read_table(path, keys=KEYRING, policy=policy).num_rows == 100


def test_a_filter_of_an_earlier_version_authenticates_and_an_audit_finds_it(tmp_path: Path) -> None:
    """The format's limit, of which docs/threat-model.md tells: same file, same key, same AAD."""
    path = write(tmp_path / "x.parquet", customers(100), Mode.ENCRYPTED)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    assert not _wrong_filters(path)
    place = filter_place(path, 0, "email")
    with opened(path) as it:
        found = read_bloom_filter(it.file, it.chunk(0, "email"))
        assert found is not None
        empty = SplitBlockBloomFilter(found.filter.block_count)
        earlier = encode_bloom_filter(empty, it.chunk(0, "email").cipher)
    content = path.read_bytes()
    assert len(earlier) == place.stop - place.start
    path.write_bytes(content[: place.start] + earlier + content[place.stop :])
    value = customers(100).column("email")[7].as_py()
    (file,) = sb.probe(path, "email", [value], keys=KEYRING).files
    assert file.error is None
    assert file.row_groups[0].verdicts[value] is sb.Verdict.ABSENT
    assert _wrong_filters(path) == ["email"]


def _wrong_filters(path: Path) -> list[str | None]:
    report = sb.audit(path, policy=POLICY, keys=KEYRING, check_values=True)
    return [finding.column for finding in report.findings if finding.id == "filter-wrong"]


def test_without_a_policy_no_footer_is_too_weak() -> None:
    Trust().check_footer(FooterMode.PLAINTEXT, None)
    Trust(policy=POLICY, allow_unprotected=True).check_footer(FooterMode.PLAINTEXT, None)


#: The policy of another table: `ship_to` is a column that the files of customers lack.
ORDERS = """
[footer]
key = "k_footer"
mode = "encrypted"
[columns.city]
key = "k_finance"
[columns.ship_to]
key = "k_pii"
bloom = true
"""
UNDER_ANOTHER: dict[str, Callable[..., Any]] = {
    "read": lambda path, **given: sb.read_table(path, **given),
    "explain": lambda path, **given: sb.explain(path, where="city = 'rome'", **given),
    "probe": lambda path, **given: _raised(sb.probe(path, "city", ["rome"], **given).failed),
    "sql": lambda path, **given: sb.sql(f"select city from '{path}'", **given),
    "add": lambda path, **given: _raised(sb.add_bloom_filters(path, **given).failed),
    "add columns": lambda path, **given: _raised(
        sb.add_bloom_filters(path, columns=["city"], **given).failed
    ),
    "reencrypt": lambda path, **given: sb.reencrypt(path, **given),
    "rotate": lambda path, **given: sb.rotate_keys(path, **given),
    "paimon": lambda path, **given: paimon.build_index(path, ["city"], **given),
    "hudi": lambda path, **given: _raised(
        hudi.lookup(path, ["rome"], column="city", **given).failed
    ),
}


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
@pytest.mark.parametrize("verb", UNDER_ANOTHER)
def test_the_policy_of_another_table_is_named_as_such(
    tmp_path: Path, verb: str, mode: Mode
) -> None:
    path = write(tmp_path / "x.parquet", customers(60), mode)
    (tmp_path / "orders.toml").write_text(ORDERS)
    with pytest.raises(sb.SecureBloomError) as caught:
        UNDER_ANOTHER[verb](path, policy=tmp_path / "orders.toml", keys=KEYRING)
    assert "if the policy is that of another table, give this table's own" in str(caught.value.hint)
    assert "ship_to" in f"{caught.value}: {caught.value.hint}" or verb == "add columns"


def test_a_query_of_two_tables_names_the_argument_for_policies_of_tables(tmp_path: Path) -> None:
    write(tmp_path / "c.parquet", customers(60), Mode.ENCRYPTED)
    write(tmp_path / "o.parquet", customers(60))
    (tmp_path / "c.toml").write_text('[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n')
    tables = {name: tmp_path / f"{name}.parquet" for name in "co"}
    query = "select count(*) as n from c join o using (id)"
    with pytest.raises(sb.PolicyError, match=r"o\.parquet") as caught:
        sb.sql(query, tables, policy=tmp_path / "c.toml", keys=KEYRING)
    assert "policy={NAME: FILE} (--policy NAME=FILE)" in str(caught.value.hint)
    policy = {"c": tmp_path / "c.toml", "*": None}
    assert sb.sql(query, tables, policy=policy, keys=KEYRING).to_pylist() == [{"n": 60}]
