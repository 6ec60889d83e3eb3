"""Which table of a policy a path belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.table_patterns import (
    UnknownTableError,
    like_table,
    places_of,
    tables_of,
)
from secure_bloom.errors import PolicyError

NAMED = [
    "orders/*",
    "customers",
    "lake/eu/*",
    "*",
    "shop.items",
    "s3://other/raw/*",
    "log-*.parquet",
]


@pytest.mark.parametrize(
    ("address", "table"),
    [
        ("lake/orders", "orders/*"),
        ("/data/lake/orders/x.parquet", "orders/*"),
        ("/data/lake/orders/day=1/x.parquet", "orders/*"),
        ("s3://bucket/lake/orders/x.parquet", "orders/*"),
        ("file:/data/orders/x.parquet", "orders/*"),
        ("file:///data/orders/x.parquet", "orders/*"),
        ("/data/customers/x.parquet", "customers"),
        # Whole parts alone.
        ("/data/my_orders/x.parquet", "*"),
        ("/data/orders.bak/x.parquet", "*"),
        # What says more of the path counts, in whatever order.
        ("/lake/eu/x.parquet", "lake/eu/*"),
        ("iceberg://prod/shop.items", "shop.items"),
        ("shop.items", "shop.items"),
        ("/data/log-1.parquet", "log-*.parquet"),
        # With a scheme a pattern begins where the address begins; s3a is s3.
        ("s3a://other/raw/x.parquet", "s3://other/raw/*"),
        ("s3://mine/other/raw/x.parquet", "*"),
    ],
)
def test_an_address_belongs_to_the_table_that_says_most_of_it(address: str, table: str) -> None:
    assert tables_of(address, NAMED)[0] == table
    assert tables_of(address, reversed(NAMED))[0] == table


@pytest.mark.parametrize(
    ("address", "pattern", "belongs"),
    [
        ("iceberg://prod/shop.items", "prod.shop.items", True),
        ("iceberg://prod/shop.items", "iceberg://prod/shop.items", True),
        ("iceberg://prod/eu.shop.items", "shop.items", True),
        ("iceberg://prod/eu.shop.items", "iceberg://prod/shop.items", False),
        ("iceberg://prod/shop.items2", "shop.items", False),
        ("paimon:///lake/shop.items", "shop.items", True),
        ("paimon:///lake/shop.items$branch_test", "shop.items", True),
        # As Spark names it.
        ("prod.shop.items", "shop.items", True),
        ("prod.`shop`.items", "shop.items", True),
        ("shop.items.parquet", "shop.items", False),
        ("./shop.items", "items", False),
    ],
)
def test_the_table_of_a_catalog(address: str, pattern: str, belongs: bool) -> None:
    assert tables_of(address, [pattern, "*"])[0] == (pattern if belongs else "*")


def test_a_file_belongs_where_its_table_of_a_catalog_belongs() -> None:
    places = places_of({"file:///w/shop.db/items": "iceberg://prod/shop.items"})
    inside = "/w/shop.db/items/data/0.parquet"
    assert tables_of(inside, ["shop.items", "items/*", "*"], places)[0] == "shop.items"
    assert tables_of(inside, ["items/*", "*"], places)[0] == "items/*"
    assert tables_of(inside, ["shop.db/*", "*"], places)[0] == "shop.db/*"
    assert tables_of("/w/shop.db/other/0.parquet", ["shop.items", "*"], places)[0] == "*"


def test_a_table_of_a_catalog_belongs_where_its_folder_belongs() -> None:
    name = "iceberg://prod/shop.items"
    places = places_of({"/w/a/metadata/1.metadata.json": name, "/w/a": name, "/w/b": "other"})
    assert tables_of(name, ["/w/a/*", "/w/b", "*"], places)[0] == "/w/a/*"
    assert tables_of(name, ["/w/a/*", "shop.items"], places)[0] == "shop.items"
    assert tables_of(name, ["/w/b", "*"], places) == ("*",)
    assert tables_of(name, ["/w/b"], places) == ()


def test_a_relative_path_belongs_to_the_table_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orders").mkdir()
    monkeypatch.chdir(tmp_path / "orders")
    assert tables_of("x.parquet", ["orders/*", "customers/*"])[0] == "orders/*"
    assert tables_of(".", ["orders/*", "customers/*"])[0] == "orders/*"


def test_a_folder_inside_a_table_does_not_choose_other_rules() -> None:
    with pytest.raises(UnknownTableError, match="several tables of the policy: customers"):
        tables_of("/lake/customers/orders/x.parquet", ["customers", "orders"])
    longer = ["customers", "orders", "customers/orders"]
    assert tables_of("/lake/customers/orders/x.parquet", longer)[0] == "customers/orders"


@pytest.mark.parametrize("pattern", ["**/orders/*", "lake/**/orders", "orders/**", "o?ders/*"])
def test_globs_of_a_shell(pattern: str) -> None:
    assert tables_of("/lake/eu/2026/orders/x.parquet", [pattern])[0] == pattern
    assert not tables_of("/lake/eu/2026/items/x.parquet", [pattern])


def test_a_name_goes_before_a_glob() -> None:
    assert tables_of("/lake/orders/x.parquet", ["ord*", "orders"])[0] == "orders"
    with pytest.raises(UnknownTableError):
        tables_of("/lake/orders/x.parquet", ["ord*", "*ers"])


def test_a_table_inside_another_belongs_to_both() -> None:
    patterns = ["*", "lake/*", "lake/orders", "lake/ord*", "orders/*"]
    narrow = ("lake/orders", "lake/ord*", "lake/*", "orders/*")
    assert tables_of("/lake/orders/x.parquet", patterns) == narrow
    assert tables_of("/lake/items/x.parquet", patterns) == ("lake/*",)
    assert tables_of("/other/x.parquet", patterns) == ("*",)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [("lake/custmers/*", "lake/customers"), ("Lake/Customers", "lake/customers"), ("*", None)],
)
def test_a_misspelt_table_is_named_with_the_part_that_was_meant(
    pattern: str, meant: str | None
) -> None:
    found = like_table("/data/lake/customers/0.parquet", ["orders", pattern])
    assert found == (None if meant is None else (pattern, meant))


def test_an_error_about_no_table_has_the_misspelt_one(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('[tables."lake/custmers".columns.email]\nbloom = true\n')
    policy = KeyPolicy.load(path)
    with pytest.raises(PolicyError) as caught:
        policy.for_table("lake/customers/0.parquet")
    assert "lake/custmers may be a typing mistake of lake/customers" in str(caught.value.hint)
