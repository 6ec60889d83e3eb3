"""What is wrong with a policy, before Spark or `add` fails by it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.inspecting.policy_problems import CheckedPolicy, check_policy, table_leaves
from testing import delta_logs as logs
from testing.tables import keyring_json

FOOTER = '[footer]\nkey = "k_footer"\n'
KMS = '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'
RULE = '[columns.{}]\nkey = "{}"\n'


def checked(folder: Path, text: str, **options: str) -> CheckedPolicy:
    (folder / "policy.toml").write_text(text)
    return check_policy(folder / "policy.toml", **options)


def test_a_misspelt_key_is_found_by_the_keyring(tmp_path: Path) -> None:
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    found = checked(tmp_path, KMS + FOOTER + RULE.format("email", "k_pi"))
    (problem,) = found.problems
    assert (problem.column, problem.message) == ("email", "the keyring has no key k_pi")
    assert problem.hint == "k_pi: did you mean 'k_pii'?"
    # A key that is named elsewhere, too: the name is misspelt, or new.
    rules = RULE.format("email", "k_pi") + RULE.format("iban", "k_pii")
    (problem,) = checked(tmp_path, KMS + FOOTER + rules).problems
    assert str(problem.hint).startswith("k_pi: did you mean 'k_pii'?; to make new keys: ")


def test_an_older_key_that_the_keyring_lacks_opens_no_file(tmp_path: Path) -> None:
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    text = KMS + FOOTER + RULE.format("email", "k_pii")
    (problem,) = checked(tmp_path, f"{text}[keys.k_2025]\n").problems
    assert problem.message.startswith("the keyring has no key k_2025, which [keys.k_2025] names")
    assert "keys new" not in str(problem.hint)
    # It may be destroyed.
    assert checked(tmp_path, f"{text}[keys.k_2025]\nretired = true\n").problems == ()


def test_a_misspelt_key_is_found_by_the_other_rules(tmp_path: Path) -> None:
    rules = RULE.format("email", "k_pii") + RULE.format("iban", "k_pii")
    found = checked(tmp_path, FOOTER + rules + RULE.format("phone", "k_pi"))
    assert found.problems == ()
    assert found.notes == ("key k_pi is named once, and is like k_pii: did you mean 'k_pii'?",)
    # Years and versions are meant to be alike.
    years = rules.replace("k_pii", "k_pii_2026") + RULE.format("phone", "k_pii_2027")
    assert checked(tmp_path, FOOTER + years).notes == ()


@pytest.mark.parametrize("kind", ["timestamp", "TIMESTAMP_LTZ"])
def test_timestamps_that_spark_will_write_as_int96(tmp_path: Path, kind: str) -> None:
    text = FOOTER + RULE.format("email", "k_pii") + "[columns.at]\nbloom = true\n"
    (note,) = checked(tmp_path, text, schema=f"email string, at {kind}").notes
    assert note.startswith("column at: Spark writes timestamps as INT96 unless")
    for fits in ("timestamp_ntz", "date"):
        assert checked(tmp_path, text, schema=f"email string, at {fits}").notes == ()
    assert checked(tmp_path, text.replace("bloom = true", ""), schema=f"at {kind}").notes == ()


def test_filters_that_add_refuses(tmp_path: Path) -> None:
    pq.write_table(pa.table({"email": ["a"], "paid": [True]}), tmp_path / "x.parquet")
    text = "[columns.paid]\nbloom = true\n[columns.emial]\nbloom = true\n"
    found = checked(tmp_path, text, table=str(tmp_path / "x.parquet"))
    refused, unknown = found.problems
    assert "BOOLEAN" in refused.message
    assert "emial" in unknown.message
    assert "did you mean email" in (unknown.hint or "")


def test_each_table_is_checked_against_its_own_rules(tmp_path: Path) -> None:
    for name, column in (("orders", "iban"), ("customers", "email"), ("other", "x")):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": [1], column: ["a"]}), tmp_path / name / "x.parquet")
    text = (
        FOOTER
        + '[columns.tenant]\nkey = "k_pii"\n'
        + '[tables."orders/*".columns.iban]\nkey = "k_finance"\n'
        + '[tables."customers/*".columns.emial]\nkey = "k_pii"\nbloom = true\n'
    )
    assert checked(tmp_path, text, table=str(tmp_path / "orders")).problems == ()
    (problem,) = checked(tmp_path, text, table=str(tmp_path / "customers")).problems
    assert (problem.column, problem.hint) == ("emial", "did you mean 'email'?")
    outside, inside = checked(tmp_path, text, table=str(tmp_path)).problems
    assert "belongs to no table" in outside.message
    assert inside.message == problem.message


def test_rules_without_effect_and_a_missing_keyring_are_notes(tmp_path: Path) -> None:
    ignored = '[[audit.ignore]]\nfinding = "filter-missing"\nreason = "x"\nuntil = 2020-01-31\n'
    clear = '[classified]\nclear = ["em*"]\n'
    text = KMS + FOOTER + RULE.format("email", "k_pii") + ignored + clear
    (tmp_path / "policy.toml").write_text(text)
    found = check_policy(tmp_path / "policy.toml", findings=["filter-missing"])
    assert found.problems == ()
    past, classified, keyring = found.notes
    assert past == "[[audit.ignore]] filter-missing: its last day, 2020-01-31, is in the past"
    assert classified == "[classified] clear names email, which has key k_pii: it is encrypted"
    made = f"secure-bloom keys new {tmp_path / 'keyring.json'} k_footer k_pii"
    assert keyring == f"there is no keyring {tmp_path / 'keyring.json'}; to make it: {made}"


@pytest.mark.parametrize("rule", ["[columns.email]", '[tables."orders/*".columns.email]'])
def test_a_sensitive_column_that_partitions_the_table(tmp_path: Path, rule: str) -> None:
    table = tmp_path / "orders"
    (table / "email=a").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1], "card": ["1"]}), table / "email=a" / "x.parquet")
    section = '[tables."orders/*".columns]\ncard = { key = "k_pii" }\n'
    text = FOOTER + section.replace("card =", 'email = { key = "k_pii" }\ncard =')
    if rule.startswith("[col"):
        text = FOOTER + rule + '\nkey = "k_pii"\n' + section
    (problem,) = checked(tmp_path, text, table=str(tmp_path)).problems
    said = "column email partitions the table, so it cannot be encrypted"
    assert problem.message.startswith(f'[tables."orders/*"]: {said}')
    if not rule.startswith("[col"):
        (tmp_path / "keyring.json").write_text(keyring_json())
        (tmp_path / "keyring.json").chmod(0o600)
        (tmp_path / "policy.toml").write_text(KMS + text)
        with pytest.raises(sb.PolicyError, match=said):
            sb.reencrypt(table, policy=tmp_path / "policy.toml")


def test_a_partition_column_may_be_named_as_clear(tmp_path: Path) -> None:
    (tmp_path / "t" / "country%20code=de").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "t" / "country%20code=de" / "x.parquet")
    clear = '[classified]\nclear = ["id", "country code", "contry"]\n'
    (note,) = checked(
        tmp_path, "[columns.id]\nbloom = true\n" + clear, table=str(tmp_path / "t")
    ).notes
    assert note.startswith("[classified] clear: there is no column contry")


def test_a_column_of_several_files_is_there_once(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "s": [{"b": 1}]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"c": [1], "a": [1]}), tmp_path / "1.parquet")
    assert [leaf.name for leaf in table_leaves(tmp_path)] == ["a", "s.b", "c"]


def test_of_a_delta_table_live_files_count_and_logical_names(tmp_path: Path) -> None:
    for name, stored in {"old": ["gone"], "live": ["col-1", "b"]}.items():
        rows = pa.table({column: [1] for column in stored})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    columns = [
        logs.column(
            name, **{"delta.columnMapping.physicalName": to, "delta.columnMapping.id": number}
        )
        for number, (name, to) in enumerate({"id": "col-1", "b": "b"}.items(), 1)
    ]
    metadata = logs.metadata(*columns)
    metadata["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    logs.commit(tmp_path, 0, logs.protocol("columnMapping"), metadata, logs.add("live.parquet"))
    assert [leaf.name for leaf in table_leaves(tmp_path)] == ["id", "b"]
