"""One policy for a company: several tables in one file, for every verb."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import secure_bloom as sb
from secure_bloom.encryption.table_patterns import UnknownTableError
from secure_bloom.parquet.pyarrow_encryption import pyarrow_encryption
from secure_bloom.spark.session import session_config
from testing.command_line import run
from testing.tables import KEYRING, keyring_json
from tests.lakes.iceberg.tables import in_settings

POLICY = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
[columns.tenant]
key = "k_pii"
bloom = true
[tables."customers/*".columns.email]
key = "k_pii"
bloom = true
[tables."customers/*".columns.iban]
key = "k_finance"
[tables."orders/*".columns.card]
key = "k_finance"
bloom = true
[tables."orders/*".columns.email]
bloom = true
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Customers have a secret email and a tenant, orders an email in clear."""
    lake = tmp_path / "lake"
    emails = [f"user{n}@example.com" for n in range(50)]
    rows = {
        "customers": {"email": emails, "iban": emails[::-1], "tenant": ["t"] * 50},
        "orders": {"email": ["shop@example.com"] * 50, "card": emails, "id": range(50)},
    }
    for name, columns in rows.items():
        (lake / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), lake / name / "x.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    return lake


def keys_of(path: Path) -> dict[str, str | None]:
    (file,) = sb.inspect(path, keys=KEYRING).to_dict()["files"]
    columns = file["row_groups"][0]["columns"]
    return {column["column"]: column["key"] for column in columns}


@pytest.mark.parametrize("paths", [["customers", "orders"], [""]], ids=["each", "together"])
def test_every_verb_gives_each_table_its_own_rules(lake: Path, paths: list[str]) -> None:
    policy = lake.parent / "policy.toml"
    for path in paths:
        assert not sb.reencrypt(lake / path, policy=policy).failed
        assert not sb.add_bloom_filters(lake / path, policy=policy).failed
        report = sb.audit(lake / path, policy=policy)
        assert [it.id for it in report.findings if it.severity != "low"] == []
    customers, orders = lake / "customers" / "x.parquet", lake / "orders" / "x.parquet"
    assert keys_of(customers) == {"email": "k_pii", "iban": "k_finance", "tenant": "k_pii"}
    assert keys_of(orders) == {"email": None, "card": "k_finance", "id": None}
    filters = {
        path: {
            column["column"]
            for column in sb.inspect(path, keys=KEYRING).to_dict()["files"][0]["row_groups"][0][
                "columns"
            ]
            if column["bloom"]
        }
        for path in (customers, orders)
    }
    assert filters == {customers: {"email", "tenant"}, orders: {"email", "card"}}
    where = [("email", "=", "user7@example.com")]
    assert sb.read_table(lake / "customers", where=where, policy=policy).num_rows == 1
    assert sb.read_table(lake / "orders", limit=3, policy=policy).num_rows == 3
    assert not sb.rotate_keys(lake, policy=policy).failed
    assert sb.keys_used(lake, policy=policy).retired == ()


def test_the_commands_do_the_same(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    for words in (
        ("reencrypt", lake / "orders"),
        ("reencrypt", lake / "customers"),
        ("add", lake),
        ("policy", "check", policy, "--table", lake),
    ):
        done = run(*words, *(() if words[0] == "policy" else ("--policy", policy)))
        assert done.returncode == 0, done
    done = run("audit", lake, "--policy", policy, "--severity", "medium")
    assert (done.returncode, "policy-column-unknown" in done.stdout) == (0, False), done


def test_a_file_in_clear_is_refused_by_the_rules_of_its_table_alone(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    with pytest.raises(sb.PolicyError, match="an encrypted footer"):
        sb.read_table(lake / "orders", policy=policy)
    sb.reencrypt(lake / "orders", policy=policy)
    # Orders under the rules of customers: the email would be in clear.
    (lake / "customers" / "x.parquet").write_bytes((lake / "orders" / "x.parquet").read_bytes())
    with pytest.raises(sb.PolicyError, match="key k_pii, the column is stored in clear"):
        sb.read_table(lake / "customers", policy=policy)
    audited = sb.audit(lake / "customers", policy=policy)
    assert "column-in-clear" in {it.id for it in audited.findings if it.column == "email"}
    assert "policy-table-unused" not in {it.id for it in audited.notes}


def test_a_file_of_no_table_is_an_error_for_every_verb(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    (lake / "orders").rename(lake / "order")
    with pytest.raises(UnknownTableError, match="belongs to no table of the policy"):
        sb.read_table(lake / "order", policy=policy)
    before = (lake / "order" / "x.parquet").read_bytes()
    for report in (
        sb.probe(lake / "order", "email", ["a"], policy=policy),
        sb.reencrypt(lake, policy=policy, dry_run=True),
        sb.add_bloom_filters(lake, policy=policy, dry_run=True),
    ):
        assert "belongs to no table" in str([file.error for file in report.files])
    assert (lake / "order" / "x.parquet").read_bytes() == before
    audited = sb.audit(lake, policy=policy)
    assert [it.path for it in audited.findings if it.id == "policy-table-unknown"] == [
        str(lake / "order" / "x.parquet")
    ]
    assert [it.what for it in audited.notes if it.id == "policy-table-unused"] == [
        'no file belongs to [tables."orders/*"]'
    ]


def test_a_misspelt_column_of_a_table_is_still_an_error(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    policy.write_text(POLICY.replace("columns.card", "columns.crad"))
    for paths in (lake / "orders", lake):
        with pytest.raises(sb.PolicyError, match="crad") as caught:
            sb.reencrypt(paths, policy=policy)
        assert "card" in str(caught.value.hint)
    found = sb.audit(lake, policy=policy).findings
    assert [it.column for it in found if it.id == "policy-column-unknown"] == ["crad"]
    policy.write_text(POLICY)
    sb.reencrypt(lake, policy=policy)
    policy.write_text(POLICY + '[tables."orders/*".columns.emial]\nbloom = true\n')
    for paths in (lake / "orders", lake):
        with pytest.raises(sb.PolicyError, match="emial"):
            sb.add_bloom_filters(paths, policy=policy)


def test_a_folder_inside_a_table_gets_no_other_rules(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    sb.reencrypt(lake / "orders", policy=policy)
    # Whoever may write into customers puts a file with emails in clear into a folder "orders".
    (lake / "customers" / "x.parquet").unlink()
    (lake / "orders").rename(lake / "customers" / "orders")
    with pytest.raises(sb.PolicyError, match="several tables of the policy"):
        sb.read_table(lake / "customers", policy=policy)
    ids = {it.id for it in sb.audit(lake, policy=policy).findings}
    assert "policy-table-unknown" in ids


@pytest.mark.parametrize(
    "wide", ['[tables."*"]', '[tables."lake/*".columns.id]\nbloom = true', '[tables."lake/*"]']
)
def test_a_section_for_the_whole_lake_hides_no_other(lake: Path, wide: str) -> None:
    policy = lake.parent / "policy.toml"
    sections = POLICY
    if "lake" in wide:
        sections = POLICY.replace('"customers/*"', '"lake/customers/*"')
        sections = sections.replace('"orders/*"', '"lake/orders/*"')
    policy.write_text(f"{sections}{wide}\n")
    found = sb.audit(lake, policy=policy).findings
    assert {it.column for it in found if it.id == "column-in-clear"} >= {"email", "iban", "card"}
    assert not sb.reencrypt(lake, policy=policy).failed
    assert keys_of(lake / "customers" / "x.parquet")["email"] == "k_pii"
    assert not sb.add_bloom_filters(lake, policy=policy).failed
    found = sb.audit(lake, policy=policy).findings
    assert {it.id for it in found} & {"column-in-clear", "column-without-filter"} == set()


@pytest.mark.parametrize("named", ["", "orders"])
def test_no_call_chooses_between_two_tables_of_a_file(lake: Path, named: str) -> None:
    policy = lake.parent / "policy.toml"
    policy.write_text(POLICY + '[tables."lake/*".columns.id]\nbloom = true\n')
    before = (lake / "orders" / "x.parquet").read_bytes()
    found = {
        (it.id, Path(it.path or "").parent.name)
        for it in sb.audit(lake / named, policy=policy).findings
    }
    assert ("policy-table-unknown", "orders") in found
    with pytest.raises(sb.PolicyError, match="several tables of the policy"):
        sb.read_table(lake / named, columns=["id"], policy=policy)
    for call in (sb.reencrypt, sb.add_bloom_filters):
        failed = {Path(it.path).parent.name for it in call(lake / named, policy=policy).failed}
        assert "orders" in failed
    assert (lake / "orders" / "x.parquet").read_bytes() == before


def test_writers_take_the_rules_of_one_table(lake: Path) -> None:
    policy = sb.KeyPolicy.load(lake.parent / "policy.toml")
    for call in (
        policy.spark_properties,
        lambda: session_config(policy),
        lambda: pyarrow_encryption(policy, pa.schema([("email", pa.string())])),
    ):
        with pytest.raises(sb.PolicyError, match="several"):
            call()
    properties = policy.for_table("lake/customers").spark_properties()
    said = properties["parquet.encryption.column.keys"]
    assert said == "k_finance:iban;k_pii:email,tenant"
    # A session's reads need no table, and its writes have that of one.
    options = session_config(policy, writes=False, kms_client_class="x.Y")
    assert "spark.hadoop.parquet.encryption.column.keys" not in options
    options = session_config(policy, table=lake / "orders", kms_client_class="x.Y")
    assert options["spark.hadoop.parquet.encryption.footer.key"] == "k_footer"
    # Orders have no tenant: the schema says so, and pyarrow's writer has one.
    schema = pa.schema([("email", pa.string()), ("card", pa.string())])
    encryption = pyarrow_encryption(policy.for_table(lake / "orders"), schema)
    path = lake / "orders" / "y.parquet"
    pq.write_table(
        pa.table({"email": ["a"], "card": ["b"]}),
        path,
        encryption_properties=encryption.encryption_properties(),
    )
    assert keys_of(path) == {"email": None, "card": "k_finance"}


def test_a_delta_table_has_the_rules_of_its_folder(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    rows = pq.read_table(lake / "orders")
    (lake / "orders" / "x.parquet").unlink()
    write_deltalake(lake / "orders", rows)
    assert not sb.reencrypt(lake / "orders", policy=policy).failed
    assert not sb.add_bloom_filters(lake / "orders", policy=policy).failed
    where = [("card", "=", "user7@example.com")]
    assert sb.read_table(lake / "orders", where=where, policy=policy).num_rows == 1
    (live,) = DeltaTable(lake / "orders").file_uris()
    assert keys_of(Path(live)) == {"email": None, "card": "k_finance", "id": None}


def test_tables_may_have_footers_of_their_own(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    own = '[tables."orders/*".footer]\nkey = "k_finance"\nmode = "plaintext"\n'
    policy.write_text(POLICY + own)
    assert not sb.reencrypt(lake, policy=policy).failed
    modes = {file.path: file.footer for file in sb.inspect(lake, policy=policy).files}
    assert modes == {
        str(lake / "customers" / "x.parquet"): "encrypted",
        str(lake / "orders" / "x.parquet"): "signed",
    }
    assert sb.read_table(lake / "orders", policy=policy).num_rows == 50
    found = sb.audit(lake, policy=policy).findings
    assert {it.id for it in found if it.severity in ("critical", "high")} == set()


#: Rules of a section that do not name the key that the rule above all sections names.
WEAKER = {
    "filter": '[tables."customers/*".columns.email]\nbloom = true',
    "parts": '[tables."customers/*".columns.email]\nparts = ["local"]',
    "nothing": '[tables."customers/*".columns.email]',
    "capitals": '[tables."customers/*".columns.Email]\nbloom = true',
    "footer": '[tables."customers/*".footer]\nkey = "k_footer"',
}
ABOVE = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
bloom = true
[columns."tags.list.element"]
key = "k_finance"
"""


@pytest.mark.parametrize("section", WEAKER.values(), ids=WEAKER)
def test_a_section_does_not_remove_the_key_of_a_column(lake: Path, section: str) -> None:
    name = "Email" if "Email" in section else "email"
    path = lake / "customers" / "x.parquet"
    pq.write_table(pa.table({name: ["a@example.com"] * 9, "id": range(9)}), path)
    policy = lake.parent / "policy.toml"
    policy.write_text(f"{ABOVE}{section}\n")
    assert not sb.reencrypt(lake / "customers", policy=policy).failed
    assert keys_of(path) == {name: "k_pii", "id": None}
    properties = sb.KeyPolicy.load(policy).for_table(path).for_columns([(name,), ("id",)])
    assert f"k_pii:{name}" in properties.spark_properties().values()


def test_a_section_has_each_word_of_a_column_that_it_does_not_name(tmp_path: Path) -> None:
    text = (
        "{}[columns.a]\nkey = 'k_pii'\nbloom = {{ fpp = 0.5 }}\nparts = ['domain']\n"
        "[columns.'tags.list.element']\nkey = 'k_tags'\n"
        "[tables.'t/*'.columns]\na = {}\n'tags.list.item' = {{ bloom = true }}\n"
    )
    footer = "[footer]\nkey = 'k'\nuniform = true\ndrop_metadata = ['x']\n"
    own = "[tables.'t/*'.footer]\nkey = 'k_own'\n"
    for words, changed in {
        "": {},
        "key = 'k_new'": {"key": "k_new"},
        "bloom = false": {"bloom": None},
        "parts = []": {"parts": ()},
    }.items():
        (tmp_path / "p.toml").write_text(text.format(footer, f"{{ {words} }}") + own)
        policy = sb.KeyPolicy.load(tmp_path / "p.toml")
        section = policy.tables["t/*"]
        assert section.columns["a"] == replace(policy.columns["a"], **changed)
        assert section.columns["tags.list.item"].key == "k_tags"
        assert (section.footer_key, section.uniform) == ("k_own", True)
        assert section.drop_metadata == {"x"}


def test_a_section_inside_another_does_not_remove_its_keys(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    wide = '[tables."lake/*".columns.iban]\nkey = "k_finance"\n'
    narrow = '[tables."lake/customers/*".columns.tenant]\nbloom = true\n'
    policy.write_text(ABOVE + wide + narrow)
    assert not sb.reencrypt(lake, policy=policy).failed
    customers, orders = lake / "customers" / "x.parquet", lake / "orders" / "x.parquet"
    assert keys_of(customers) == {"email": "k_pii", "iban": "k_finance", "tenant": None}
    assert keys_of(orders) == {"email": "k_pii", "card": None, "id": None}
    found = sb.audit(lake, policy=policy).findings
    assert {it.id for it in found} & {"column-in-clear", "policy-column-unknown"} == set()
    own = sb.KeyPolicy.load(policy).for_table(customers)
    assert "k_finance:iban" in own.for_columns([("iban",), ("email",)]).spark_properties()[
        "parquet.encryption.column.keys"
    ].split(";")


def test_a_section_inside_another_names_what_it_changes(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    wide = (
        '[tables."lake/*".columns]\niban = { key = "k_finance" }\nemail = { key = "k_finance" }\n'
        '[tables."*".columns.tenant]\nkey = "k_pii"\n'
    )
    narrow = '[tables."lake/customers/*".columns]\nEMAIL = { key = "k_new" }\nIban = {}\n'
    policy.write_text(ABOVE + wide + narrow)
    own = sb.KeyPolicy.load(policy).for_table(lake / "customers")
    keys = {path: rule.key for path, rule in own.columns.items()}
    # "*" is for the tables that no other section names.
    assert keys == {
        "iban": "k_finance",
        "Iban": "k_finance",
        "email": "k_pii",
        "EMAIL": "k_new",
        "tags.list.element": "k_finance",
    }


@pytest.mark.parametrize("text", ["", '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'])
def test_a_policy_without_a_rule_is_not_obeyed_by_everything(lake: Path, text: str) -> None:
    policy = lake.parent / "policy.toml"
    policy.write_text(text)
    assert {it.id for it in sb.audit(lake, policy=policy).findings} == {"policy-invalid"}
    done = run("policy", "check", policy)
    assert (done.returncode, "it has no rule" in done.stdout + done.stderr) == (1, True)


HEAD = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
"""


def filters_in(path: Path) -> set[str]:
    (file,) = sb.inspect(path, keys=KEYRING).to_dict()["files"]
    groups = file["row_groups"]
    return {it["column"] for group in groups for it in group["columns"] if it["bloom"]}


@pytest.mark.parametrize("bloom", ["true", "{ fpp = 0.001 }"])
@pytest.mark.parametrize(
    "sections",
    [
        """
        [columns.email]
        key = "k_pii"
        [tables."orders/*".columns.email]
        bloom = BLOOM
        [tables."*"]
        """,
        """
        [columns.email]
        key = "k_pii"
        [tables."*"]
        [tables."customers/*"]
        [tables."orders/*".columns.email]
        bloom = BLOOM
        """,
        """
        [tables."lake/*".columns.email]
        key = "k_pii"
        [tables."lake/orders/*".columns.email]
        bloom = BLOOM
        """,
        """
        [tables."lake/*".columns.email]
        key = "k_pii"
        [tables."lake/orders/*".columns.email]
        key = "k_pii"
        bloom = BLOOM
        """,
    ],
    ids=["above", "last", "outer", "both"],
)
def test_a_filter_of_one_table_is_added_where_the_key_is_from_further_out(
    lake: Path, sections: str, bloom: str
) -> None:
    policy = lake.parent / "policy.toml"
    policy.write_text(HEAD + sections.replace("BLOOM", bloom))
    assert not sb.reencrypt(lake, policy=policy).failed
    missing = [it for it in sb.audit(lake, policy=policy).findings if it.id == "filter-missing"]
    assert [it.fix for it in missing] == [f"`secure-bloom add {lake} --policy {policy}`"]
    planned = sb.add_bloom_filters(lake, policy=policy, dry_run=True)
    assert [len(it.filters) for it in planned.files] == [0, 1]
    assert not sb.add_bloom_filters(lake, policy=policy).failed
    assert filters_in(lake / "orders" / "x.parquet") == {"email"}
    assert filters_in(lake / "customers" / "x.parquet") == set()
    assert not [it for it in sb.audit(lake, policy=policy).findings if it.id == "filter-missing"]


def test_a_filter_in_clear_of_one_table_is_kept_beside_a_key_of_another(lake: Path) -> None:
    policy = lake.parent / "policy.toml"
    sections = (
        '[tables."orders/*".columns.email]\nbloom = true\n'
        '[tables."customers/*".columns.email]\nkey = "k_pii"\n'
    )
    policy.write_text(HEAD + sections)
    assert not sb.reencrypt(lake, policy=policy).failed
    assert not sb.add_bloom_filters(lake / "orders", policy=policy).failed
    assert not sb.add_bloom_filters(lake, policy=policy).failed
    assert filters_in(lake / "orders" / "x.parquet") == {"email"}
    assert filters_in(lake / "customers" / "x.parquet") == set()


BY_CATALOG = [
    "db.people",
    "lake.db.people",
    "iceberg://lake/db.people",
    "db.*",
    "db/people/*",
]


@pytest.mark.parametrize("pattern", BY_CATALOG)
def test_a_pattern_of_a_catalog_is_for_an_iceberg_table_and_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    catalog = in_settings(tmp_path, monkeypatch)
    name = "iceberg://lake/db.people"
    rows = pa.table({"email": [f"user{n}@example.com" for n in range(20)], "id": range(20)})
    table = catalog.create_table("db.people", schema=rows.schema)
    table.append(rows)
    policy = tmp_path / "policy.toml"
    sections = (
        f'[tables."{pattern}".columns.email]\nkey = "k_pii"\nbloom = true\n'
        '[tables."protected/*".columns.email]\nkey = "k_pii"\n'
    )
    policy.write_text(HEAD + sections)
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    assert run("policy", "check", policy, "--table", name).returncode == 0
    assert not sb.reencrypt(name, policy=policy).failed
    assert not sb.add_bloom_filters(name, policy=policy).failed
    assert sb.read_table(name, policy=policy, where="id = 3").num_rows == 1
    assert sb.sql("SELECT email FROM people WHERE id = 3", {"people": name}, policy=policy).num_rows
    verdicts = sb.probe(name, "email", "user3@example.com", policy=policy)
    assert not verdicts.failed
    loaded = catalog.load_table("db.people")
    assert sb.read_table(loaded, policy=policy, where="id = 3").num_rows == 1
    assert not sb.rotate_keys(name, policy=policy).failed
    found = {it.id for it in sb.audit(name, policy=policy).findings}
    # The old file, and what older snapshots say of it.
    assert found == {"column-in-clear", "table-log-in-clear"}
    assert sb.audit(loaded, policy=policy).columns_checked


def test_a_pattern_of_a_folder_is_for_the_iceberg_table_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit judges the table by its folder, so its commands must do so, too."""
    catalog = in_settings(tmp_path, monkeypatch)
    name = "iceberg://lake/db.people"
    rows = pa.table({"email": ["user1@example.com"], "id": [1]})
    table = catalog.create_table("db.people", schema=rows.schema)
    table.append(rows)
    folder = table.location().removeprefix("file://").rpartition("/")[0]
    policy = tmp_path / "policy.toml"
    section = f'[tables."{folder}/*".columns.email]\nkey = "k_pii"\nbloom = true\n[tables."*"]\n'
    policy.write_text(HEAD + section)
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    assert run("policy", "check", policy, "--table", name).returncode == 0
    (clear,) = [it for it in sb.audit(name, policy=policy).findings if it.id == "column-in-clear"]
    assert f"`secure-bloom reencrypt {name} --policy {policy}`" in str(clear.fix)
    assert not sb.reencrypt(name, policy=policy).failed
    assert sb.keys_used(name, policy=policy).files_by_key
    assert not sb.rotate_keys(name, policy=policy).failed
    assert not sb.add_bloom_filters(name, policy=policy).failed
    report = sb.audit(name, policy=policy)
    assert "policy-table-unused" not in {it.id for it in (*report.findings, *report.notes)}


def test_several_tables_of_a_catalog_are_audited_each_by_its_own_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = in_settings(tmp_path, monkeypatch)
    names = ["iceberg://lake/db.orders", "iceberg://lake/db.people"]
    rows = pa.table({"email": [f"user{n}@example.com" for n in range(20)], "id": range(20)})
    for name in names:
        catalog.create_table(name.rpartition("/")[2], schema=rows.schema).append(rows)
    policy = tmp_path / "policy.toml"
    sections = (
        '[tables."db.people".columns.email]\nkey = "k_pii"\n'
        '[tables."db.orders"]\nclassified = { clear = ["*"] }\n'
    )
    policy.write_text(HEAD + sections)
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    findings = sb.audit(names, policy=policy).findings
    assert "policy-table-unknown" not in {it.id for it in findings}
    clear = [it for it in findings if it.id == "column-in-clear"]
    assert len(clear) == 1
    assert "people" in str(clear[0].path)
    for name in names:
        sb.reencrypt(name, policy=policy)
    assert not sb.probe(names, "email", "user3@example.com", policy=policy).failed
