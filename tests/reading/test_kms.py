"""How often a KMS is asked while rows are read."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from testing.tables import KEYRING, CountingKms, crypto_factory, customers

FILES = 20
#: Each file has a footer key and the keys of two columns.
KEYS = 3


class Refusing(CountingKms):
    """One that has no key."""

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        raise PermissionError(f"{master_key_identifier}: token abc is not allowed")


def lake(folder: Path, *, shared: bool, double_wrapping: bool = True) -> Path:
    """Files whose KEKs are the same, as of one Spark task, or other ones in each."""
    configuration = pe.EncryptionConfiguration(
        footer_key="k_footer",
        column_keys={"k_pii": ["email"], "k_finance": ["iban"]},
        double_wrapping=double_wrapping,
    )
    factory = crypto_factory()
    for number in range(FILES):
        factory = factory if shared else crypto_factory()
        properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
        rows = customers(30, number)
        pq.write_table(rows, folder / f"{number:02}.parquet", encryption_properties=properties)
    return folder


@pytest.mark.parametrize("where", [None, "email = 'user7@example.com'"])
@pytest.mark.parametrize(
    ("shared", "double_wrapping", "wrapped"),
    [(True, True, KEYS), (False, True, FILES * KEYS), (False, False, FILES * KEYS)],
    ids=["one KEK a master key", "KEKs of each file", "no KEKs"],
)
def test_a_wrapped_key_is_asked_for_once(
    tmp_path: Path, where: str | None, shared: bool, double_wrapping: bool, wrapped: int
) -> None:
    lake(tmp_path, shared=shared, double_wrapping=double_wrapping)
    kms = CountingKms()
    found = sb.read_table(tmp_path, where=where, keys=kms)
    assert found.num_rows == (FILES * 30 if where is None else FILES)
    assert len(kms.asked) == len(set(kms.asked)) == wrapped


def test_a_plan_that_is_carried_out_asks_once_a_file(tmp_path: Path) -> None:
    lake(tmp_path, shared=False)
    plan = sb.plan_read(tmp_path, keys=KEYRING)
    kms = CountingKms()
    rows = [batch for file in plan.files for batch in sb.read_row_groups(plan, file, keys=kms)]
    assert pa.Table.from_batches(rows).num_rows == FILES * 30
    assert len(kms.asked) == FILES * KEYS


def test_a_plan_that_is_carried_out_without_keys_asks_the_kms_of_its_policy(tmp_path: Path) -> None:
    lake(tmp_path, shared=True)
    # `CountingKms` has the master keys of the tests, and is made anew from the policy.
    policy = sb.KeyPolicy(
        footer_key="k_footer",
        older_keys=frozenset({"k_pii", "k_finance"}),
        kms={"client": "testing.tables:CountingKms"},
    )
    plan = sb.plan_read(tmp_path, keys=KEYRING, policy=policy)
    [rows] = sb.read_row_groups(plan, plan.files[0])
    assert rows.num_rows == 30
    assert all(key not in pickle.dumps(plan) for key in KEYRING.master_keys.values())


def test_a_refusal_names_the_client_that_refused(tmp_path: Path) -> None:
    lake(tmp_path, shared=True)
    with pytest.raises(sb.KeyUnavailableError, match="Refusing failed to unwrap") as caught:
        sb.read_table(tmp_path, keys=Refusing())
    assert "token abc" not in str(caught.value)
