"""Advice on a table: its document, its order, and lines for a policy that are a policy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import PolicyError
from testing.tables import KEYRING, Mode, customers, write
from tests.advising.seeded import TABLES

COLUMN_KEYS = {
    *("column", "type", "verdict", "reason", "fpp", "bytes_added", "seconds_to_build"),
    *("bytes_per_lookup", "standard_error", "bytes_saved_per_lookup", "lookups_until_it_pays"),
    *("row_groups_read", "row_groups_skipped", "distinct_values", "share_of_queries"),
    *("lookups_tried", "better_fpp"),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("tables") / "t"
    TABLES["sorted ids"](table)
    return table


@pytest.fixture(scope="module")
def advice(table: Path) -> sb.TableAdvice:
    return sb.advise(table)


def test_the_document_has_the_shape_that_programs_rely_on(advice: sb.TableAdvice) -> None:
    document = json.loads(advice.to_json())
    assert set(document) >= {"columns", "table", "looked_at", "queries", "policy"}
    assert document["table"]["rows"] == 30_000
    assert [column["column"] for column in document["columns"]] == ["email", "id"]
    for column in document["columns"]:
        assert set(column) == COLUMN_KEYS
        assert column["verdict"] in {"gains", "no"}
        assert set(column["bytes_per_lookup"]) == {"present", "absent"}
        for numbers in column["bytes_per_lookup"].values():
            assert set(numbers) == {"without", "with"}
    email = document["columns"][0]
    assert email["distinct_values"] == {"row_group": 5000, "table": 30_000}
    assert email["lookups_until_it_pays"] >= 1
    assert email["row_groups_skipped"]["absent"] == {"dictionary": 6.0}


def test_it_is_a_table_too(advice: sb.TableAdvice) -> None:
    assert advice.to_arrow().column("column").to_pylist() == ["email", "id"]
    assert repr(advice) == "<TableAdvice: 1 of 2 columns gain>"


def test_progress_reaches_the_end(table: Path) -> None:
    told: list[tuple[int, int]] = []
    sb.advise(table, columns="email", progress=lambda done, total: told.append((done, total)))
    assert len(told) > 20
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_an_unknown_column_is_an_error(table: Path) -> None:
    with pytest.raises(PolicyError, match="there is no column emial") as caught:
        sb.advise(table, columns=["emial"])
    assert caught.value.hint == "did you mean email"


def test_queries_rank_columns_and_rule_out_those_that_nobody_looks_up(
    table: Path, tmp_path: Path
) -> None:
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    queries = tmp_path / "queries.sql"
    queries.write_text("email = 'a'\nid > 5\nselect 1 from t where email in ('b')\n(\n")
    document = sb.advise(table, queries=queries).to_dict()
    assert document["queries"] == {"lines": 4, "not_parsed": [4]}
    email, ids = document["columns"]
    assert email["share_of_queries"] == 1
    assert ids["reason"].startswith("ranges only: queries ask for its ranges")
    queries.write_text("id = 5\n")
    found = {it["column"]: it for it in sb.advise(table, queries=queries).to_dict()["columns"]}
    assert found["email"]["reason"].startswith("not looked up")


def test_the_policy_names_gaining_columns_alone_and_add_takes_it(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    write(tmp_path / "t" / "a.parquet", customers(20_000), Mode.ENCRYPTED, row_group_size=2000)
    advice = sb.advise(tmp_path / "t", columns=["iban", "city"], keys=KEYRING)
    assert advice.policy == (
        '[columns.iban]\n# key = "k_finance", as the files have it\nbloom = { fpp = 0.01 }'
    )
    (tmp_path / "policy.toml").write_text(advice.policy)
    policy = KeyPolicy.load(tmp_path / "policy.toml")
    assert list(policy.bloom_columns()) == ["iban"]
    assert not sb.add_bloom_filters(tmp_path / "t", policy=policy, keys=KEYRING).failed


def test_another_fpp_is_tried_and_goes_into_the_policy(table: Path, advice: sb.TableAdvice) -> None:
    coarse = sb.advise(table, columns="email", fpp=0.2)
    assert "fpp = 0.2" in coarse.policy
    added = [it.columns[0].to_dict()["bytes_added"] for it in (coarse, advice)]
    assert added[0] < added[1]


def test_a_table_without_rows_has_nothing_to_look_up(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", customers(10).slice(0, 0))
    advice = sb.advise(tmp_path)
    assert advice.policy == ""
    assert {column.reason for column in advice.columns} == {"no values: the table has no rows"}


def test_with_a_policy_its_key_and_its_fpp_are_taken(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    write(tmp_path / "t" / "a.parquet", customers(20_000), Mode.ENCRYPTED, row_group_size=2000)
    (tmp_path / "policy.toml").write_text(
        '[footer]\nkey = "k_footer"\n[columns.iban]\nkey = "k_finance"\nbloom = { fpp = 0.05 }\n'
    )
    policy = tmp_path / "policy.toml"
    advice = sb.advise(tmp_path / "t", columns="iban", policy=policy, keys=KEYRING)
    assert advice.policy == '[columns.iban]\nkey = "k_finance"\nbloom = { fpp = 0.05 }'


ROWS = 150_000


def lake(folder: Path, values: pa.Array) -> Path:
    table = pa.table({"c": values})
    pq.write_table(table, folder / "a.parquet", row_group_size=15_000, use_dictionary=False)
    return folder


def numbers() -> np.ndarray:
    return np.random.default_rng(6).integers(0, 2**31 - 1, ROWS)


def test_small_values_are_served_better_by_smaller_filters(tmp_path: Path) -> None:
    """A number takes four bytes, and a filter of 1 % more than one of them."""
    table = lake(tmp_path, pa.array(numbers(), pa.int32()))
    [column] = sb.advise(table).columns
    assert column.better_fpp == 0.1
    assert "fpp = 0.1 reads at least a tenth less" in " ".join(column.facts)
    [coarse] = sb.advise(table, fpp=0.1).columns
    one, ten = (it.to_dict()["bytes_per_lookup"]["absent"]["with"] for it in (column, coarse))
    assert ten < 0.9 * one


@pytest.mark.parametrize("options", [{}, pytest.param({"fpp": 0.05}, marks=pytest.mark.slow)])
def test_most_columns_need_no_other(tmp_path: Path, options: dict) -> None:
    table = lake(tmp_path, pa.array([f"user{number:016d}@example.com" for number in numbers()]))
    [column] = sb.advise(table, **options).columns
    assert column.gains
    assert column.better_fpp is None


@pytest.mark.parametrize(("row_groups", "better"), [(20, None), (120, 0.001)])
def test_many_row_groups_are_served_better_by_larger_filters(
    tmp_path: Path, row_groups: int, better: float | None
) -> None:
    """Of 120 row groups a filter of 1 % lets 1.2 pass with each lookup, of 20 it lets 0.2 pass."""
    texts = pa.array([f"user{number:016d}@example.com" for number in numbers()[: 200 * row_groups]])
    table = pa.table({"c": texts})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=200, use_dictionary=False)
    [column] = sb.advise(tmp_path).columns
    assert column.better_fpp == better
    assert ("open table" in " ".join(column.facts)) is (better is not None)


def test_a_table_in_clear_is_advised_on_as_the_policy_will_have_it(table: Path) -> None:
    policy = KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    advice = sb.advise(table, columns="email", policy=policy, keys=KEYRING)
    assert advice.in_clear
    assert json.loads(advice.to_json())["in_clear"] is True
    assert advice.policy == '[columns.email]\nkey = "k_pii"\nbloom = { fpp = 0.01 }'


def test_a_file_in_clear_among_encrypted_ones_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", customers(50), Mode.ENCRYPTED)
    write(tmp_path / "b.parquet", customers(50))
    policy = KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    with pytest.raises(PolicyError, match="plaintext footer"):
        sb.advise(tmp_path, policy=policy, keys=KEYRING)
