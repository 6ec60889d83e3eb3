"""A misspelt pattern beside one that takes every file is found, and no other pattern is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.lakes import list_tables
from secure_bloom.lakes.misspelt_tables import check_tables, misspelt_tables
from testing.command_line import run
from testing.tables import keyring_json
from tests.lakes.iceberg.tables import in_settings

HEAD = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
"""
ROWS = pa.table({"email": [f"user{n}@example.com" for n in range(20)], "id": range(20)})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "customerz" / "lake"
    for name in ("crm/customers/day=1", "orders", "orders_2025"):
        (lake / name).mkdir(parents=True)
        pq.write_table(ROWS, lake / name / "x.parquet")
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    return lake


def policy_of(folder: Path, *patterns: str) -> Path:
    path = folder / "policy.toml"
    sections = (f'[tables."{it}".columns.email]\nkey = "k_pii"\n' for it in patterns if it != "*")
    rest = '[tables."*"]\n' if "*" in patterns else ""
    path.write_text(HEAD + "".join(sections) + rest)
    return path


def found_in(policy: Path, *given: Path | str) -> list[str]:
    paths = list(map(str, given))
    loaded = KeyPolicy.load(policy)
    return [it for it, _ in misspelt_tables(loaded, paths, list_tables(paths).paths)]


@pytest.mark.parametrize(
    ("misspelt", "others"),
    [
        ("crm/custmers/*", ["*"]),
        ("custmers/*", ["*"]),
        ("cmr/customers", ["*"]),
        ("crm/Customers", ["*"]),
        ("custmers/*", ["lake/*"]),
        ("lake/crm/customer", ["lake/*", "orders/*"]),
        ("order/*", ["crm/*", "*"]),
    ],
)
@pytest.mark.parametrize("verb", ["reencrypt", "add"])
def test_a_misspelt_pattern_stops_what_would_use_other_rules(
    lake: Path, misspelt: str, others: list[str], verb: str
) -> None:
    policy = policy_of(lake.parent, misspelt, *others)
    (lake.parent / "keyring.json").write_bytes((lake.parents[1] / "keyring.json").read_bytes())
    (lake.parent / "keyring.json").chmod(0o600)
    before = {path: path.read_bytes() for path in lake.rglob("*.parquet")}
    add = partial(sb.add_bloom_filters, columns=["id"])
    with pytest.raises(PolicyError, match="did you mean") as caught:
        (add if verb == "add" else sb.reencrypt)(lake, policy=policy)
    assert misspelt in caught.value.message
    assert before == {path: path.read_bytes() for path in lake.rglob("*.parquet")}
    checked = run("policy", "check", policy, "--table", lake)
    assert checked.returncode == 1
    assert f'[tables."{misspelt}"]' in checked.stderr
    report = sb.audit(lake, policy=policy)
    assert "policy-table-misspelt" in {it.id for it in report.findings}
    assert misspelt not in str([it.what for it in report.notes])


@pytest.mark.parametrize(
    ("patterns", "given"),
    [
        # Tables that were not given, although a folder far above has a like name.
        (["customer/*", "*"], "orders"),
        (["invoices/*", "*"], "."),
        # Each table has a pattern of its own.
        (["order/*", "orders/*", "customers", "orders_2025", "*"], "."),
        (["order/*", "orders/*", "*"], "orders"),
        # The years of one table.
        (["orders_2025", "orders_2024", "customers", "orders"], "."),
        (["orders_2024", "crm/*", "orders", "*"], "."),
        (["custmers/*", "customers/*", "*"], "crm/customers"),
        (["*custmers*", "*"], "."),
        # From the beginning of another path.
        (["/data/crm/custmers", "*"], "."),
    ],
)
def test_patterns_of_other_tables_are_no_mistakes(
    lake: Path, patterns: list[str], given: str
) -> None:
    policy = policy_of(lake.parents[1], *patterns)
    assert found_in(policy, lake / given) == []
    check_tables(KeyPolicy.load(policy), [str(lake / given)], [])


def test_a_pattern_whose_table_lies_beside_the_one_given_is_no_mistake(lake: Path) -> None:
    policy = policy_of(lake.parents[1], "customer/*", "*")
    assert found_in(policy, lake / "crm" / "customers") == ["customer/*"]
    (lake / "crm" / "customer").mkdir()
    assert found_in(policy, lake / "crm" / "customers") == []
    assert found_in(policy, lake) == []


def test_a_file_may_have_a_pattern_of_its_own(lake: Path) -> None:
    pq.write_table(ROWS, lake / "orders" / "orderz")
    assert found_in(policy_of(lake.parents[1], "orderz", "*"), lake / "orders") == ["orderz"]
    (lake / "orders" / "orderz").rename(lake / "orders" / "orderz.parquet")
    named = policy_of(lake.parents[1], "orderz.parquet", "*")
    assert found_in(named, lake / "orders") == []


def test_a_misspelt_table_with_a_log(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = lake / "people"
    write_deltalake(delta, ROWS)
    catalog = in_settings(lake, monkeypatch)
    for name in ("db.people", "db.person"):
        catalog.create_table(name, schema=ROWS.schema).append(ROWS)
    iceberg = "iceberg://lake/db.people"
    for place, pattern in ((delta, "peopl/*"), (iceberg, "db.peple"), (iceberg, "peopl/*")):
        policy = policy_of(lake.parents[1], pattern, "*")
        for change in (sb.reencrypt, sb.rotate_keys):
            with pytest.raises(PolicyError, match="did you mean") as caught:
                change(place, policy=policy)
            assert pattern in caught.value.message
        assert pattern in found_in(policy, place)
        assert run("policy", "check", policy, "--table", place).returncode == 1
        report = sb.audit(place, policy=policy)
        assert "policy-table-misspelt" in {it.id for it in report.findings}
    catalog.create_table("db.peoples", schema=ROWS.schema)
    assert found_in(policy_of(lake.parents[1], "db.peoples", "*"), iceberg) == []
