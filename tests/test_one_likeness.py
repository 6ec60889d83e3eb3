"""What the audit calls like a sensitive column, no verb writes or shows in clear.

Each file has such a column in clear, and everything else as the policy says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import PolicyError
from testing import delta_logs as logs
from testing.tables import KEYRING, Mode, write

ROWS = 40
VALUES = pa.array([f"user{number}@example.com" for number in range(ROWS)])
LISTS = pa.array([[f"tag{number}"] for number in range(ROWS)])
CASES = {
    "capitals": ("email", {"Email": VALUES}, "Email"),
    "all capitals": ("email", {"EMAIL": VALUES}, "EMAIL"),
    "item of a list": ("tags.list.element", {"tags": LISTS}, "tags.list.item"),
    "element of a list": ("tags.bag.array_element", {"tags": LISTS}, "tags.list.item"),
    "a structure": (
        "person.ssn",
        {"Person": pa.array([{"ssn": "1"}] * ROWS)},
        "Person.ssn",
    ),
    "a whole structure": ("person", {"PERSON": pa.array([{"ssn": "1"}] * ROWS)}, "PERSON.ssn"),
    "value of a map": (
        "m.map.value",
        {"m": pa.array([[("k", "v")]] * ROWS, pa.map_(pa.string(), pa.string()))},
        "m.key_value.value",
    ),
    "no width": ("email", {"e\u200bmail": VALUES}, "e\u200bmail"),
    "another alphabet": ("email", {"\u0435mail": VALUES}, "\u0435mail"),
    "a capital I": ("email", {"emaiI": VALUES}, "emaiI"),
}
#: Spellings that only people take for the column: a reader of the table never does.
FOR_PEOPLE = {"no width", "another alphabet", "a capital I"}


def _policy(*sensitive: str, clear: str | None = None) -> KeyPolicy:
    rules = {path: ColumnRule(path=path, key="k_pii") for path in sensitive}
    rules["iban"] = ColumnRule(path="iban", key="k_finance")
    if clear is not None:
        rules[clear] = ColumnRule(path=clear)
    return KeyPolicy(footer_key="k_footer", columns=rules)


def _file(folder: Path, columns: dict[str, pa.Array]) -> Path:
    table = pa.table({**columns, "iban": [f"DE{number}" for number in range(ROWS)]})
    return write(
        folder / "x.parquet",
        table,
        Mode.ENCRYPTED,
        column_keys={"k_finance": ["iban"]},
        use_compliant_nested_type=False,
    )


@pytest.mark.parametrize("case", CASES)
def test_a_column_like_a_sensitive_one_is_not_shown(tmp_path: Path, case: str) -> None:
    sensitive, columns, name = CASES[case]
    path, policy = _file(tmp_path, columns), _policy(sensitive)
    before = path.read_bytes()

    assert name in {it.column for it in sb.audit(path, policy=policy, keys=KEYRING).findings}
    for in_place, dry_run in ((False, False), (True, False), (False, True)):
        (added,) = sb.add_bloom_filters(
            path, columns=[name], policy=policy, keys=KEYRING, in_place=in_place, dry_run=dry_run
        ).files
        assert (added.status, added.error is not None) == ("failed", True)
    (keyed,) = sb.hudi.add_record_key_filter(path, column=name, policy=policy, keys=KEYRING).files
    assert keyed.status == "failed"
    if "." not in name:
        with pytest.raises(PolicyError):
            sb.paimon.build_index(path, name, policy=policy, keys=KEYRING)
    if case not in FOR_PEOPLE:
        with pytest.raises(PolicyError):
            sb.read_table(path, columns=[name.split(".")[0]], policy=policy, keys=KEYRING)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]

    # Whoever means another column says so, in the policy.
    allowed = _policy(sensitive, clear=name)
    (added,) = sb.add_bloom_filters(path, columns=[name], policy=allowed, keys=KEYRING).files
    assert added.status == "added"
    assert sb.read_table(path, policy=allowed, keys=KEYRING).num_rows == ROWS


def _in_tables(policy: KeyPolicy) -> KeyPolicy:
    return KeyPolicy(footer_key=policy.footer_key, tables={"*": policy})


@pytest.mark.parametrize("name", ["email", "Email", "e\u0301mail"])
@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.SIGNED, Mode.ENCRYPTED])
def test_what_is_read_without_protection_is_not_shown_either(
    tmp_path: Path, name: str, mode: Mode
) -> None:
    """--allow-unprotected lets a verb read such a column, and write no filter of it in clear."""
    keys: Any = {} if mode is Mode.PLAIN else {"column_keys": {"k_pii": ["city"]}}
    path = write(tmp_path / "x.parquet", pa.table({name: VALUES, "city": VALUES}), mode, **keys)
    before = path.read_bytes()
    for policy in (_policy("email"), _in_tables(_policy("email"))):
        given: dict[str, Any] = {"policy": policy, "keys": KEYRING, "allow_unprotected": True}
        (added,) = sb.add_bloom_filters(path, columns=[name], **given).files
        reports = [
            sb.hudi.add_record_key_filter(path, column=name, allow_clear_entry=clear, **given)
            for clear in (False, True)
        ]
        assert [added.status, *(it.files[0].status for it in reports)] == ["failed"] * 3
        with pytest.raises(PolicyError, match="the policy"):
            sb.paimon.build_index(path, name, **given)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_reencryption_leaves_no_such_column_in_clear(tmp_path: Path) -> None:
    policy = _policy("email")
    path = _file(tmp_path, {"email": VALUES, "E_mail": VALUES})
    (report,) = sb.reencrypt(path, policy=policy, keys=KEYRING).files
    assert report.status == "failed"
    assert "E_mail" in str(report.error)
    (report,) = sb.reencrypt(path, policy=_policy("email", "E_mail"), keys=KEYRING).files
    assert report.status == "reencrypted"


def test_a_mapped_table_is_known_by_its_own_names_of_columns(tmp_path: Path) -> None:
    table = pa.table({"col-1": VALUES, "col-2": VALUES})
    write(tmp_path / "x.parquet", table, Mode.ENCRYPTED, column_keys={"k_pii": ["col-1"]})
    columns = logs.mapped("email", 1), logs.mapped("E_mail", 2)
    start = logs.start(*columns, features=["columnMapping"], delta_columnMapping_mode="name")
    logs.commit(tmp_path, 0, *start, logs.add("x.parquet", (tmp_path / "x.parquet").stat().st_size))
    policy = KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    with pytest.raises(PolicyError, match="E_mail"):
        sb.reencrypt(tmp_path, policy=policy, keys=KEYRING)
    (report,) = sb.add_bloom_filters(
        tmp_path, columns=["E_mail"], policy=policy, keys=KEYRING
    ).files
    assert report.status == "failed"
    (report,) = sb.add_bloom_filters(tmp_path, columns=["email"], policy=policy, keys=KEYRING).files
    assert report.status == "added"
