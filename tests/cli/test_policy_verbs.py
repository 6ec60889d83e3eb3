"""`policy init` and `policy check`; what they name is what Spark takes."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli import main
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_text import KMS_LINES
from testing.tables import Mode, keyring_json, write

ROWS = pa.table(
    {
        "id": [1],
        "e.mail": ["a@example.com"],
        "tags": pa.array([["a"]], pa.list_(pa.field("element", pa.string()))),
        "address": [{"zip": "1", "city": 'Ra"th'}],
        "props": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "naïve ”quote": [1],
    }
)
LEAVES = [
    "id",
    "e.mail",
    "tags.list.element",
    "address.zip",
    "address.city",
    "props.key_value.key",
    "props.key_value.value",
    "naïve ”quote",
]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["policy", *words])
    shown = capsys.readouterr()
    return int(str(ended.value.code)), shown.out, shown.err


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "table").mkdir()
    pq.write_table(ROWS, tmp_path / "table" / "0.parquet")
    return tmp_path / "table"


def policy_of(folder: Path, *columns: str, footer: bool = True) -> Path:
    path = folder / "policy.toml"
    tables = [f'[columns.{json.dumps(column)}]\nkey = "k_pii"\n' for column in columns]
    head = '[footer]\nkey = "k_footer"\n' if footer else ""
    path.write_text(head + "".join(tables))
    return path


class TestInit:
    @pytest.mark.parametrize("client", KMS_LINES)
    def test_a_policy_that_loads_as_it_is_and_with_every_column_switched_on(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], client: str
    ) -> None:
        target = tmp_path / "new.toml"
        words = ("init", str(table), "--client", client, "--output", str(target))
        assert run(capsys, *words) == (0, "", "")
        text = target.read_text()
        # By its name: the other columns are commented out.
        assert list(KeyPolicy.load(target).columns) == ["e.mail"]
        head, _, columns = text.partition("as Spark wants it.\n")
        target.write_text(head + "\n" + columns.replace("\n# ", "\n"))
        assert list(KeyPolicy.load(target).columns) == LEAVES

    def test_a_file_is_never_replaced(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "p.toml").write_text("mine")
        code, _, complaint = run(capsys, "init", str(table), "--output", str(tmp_path / "p.toml"))
        assert code == 2
        assert "cannot be written: File exists" in complaint
        assert (tmp_path / "p.toml").read_text() == "mine"

    def test_an_encrypted_footer_needs_its_key(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rows = pa.table({"email": ["a"], "iban": ["b"]})
        file = write(tmp_path / "0.parquet", rows, Mode.ENCRYPTED)
        code, shown, complaint = run(capsys, "init", str(file))
        assert (code, shown) == (2, "")
        assert "'k_footer' of the footer" in complaint
        keyring = tmp_path / "keyring.json"
        keyring.write_text(keyring_json())
        keyring.chmod(0o600)
        code, shown, _ = run(capsys, "init", str(file), "--keyring", str(keyring))
        # Or by the KMS of another policy, which need not fit the file's columns.
        policy = tmp_path / "other.toml"
        policy.write_text(
            '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n[footer]\nkey = "k_footer"\n'
            '[columns.elsewhere]\nkey = "k_pii"\n'
        )
        assert run(capsys, "init", str(file), "--policy", str(policy)) == (code, shown, "")
        assert code == 0
        assert '[columns."iban"]' in shown

    def test_sensitive_columns_are_not_commented_out(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rows = pa.table({"id": [1], "email": ["a"], "cardNumber": ["b"], "iban": ["c"]})
        pq.write_table(rows, tmp_path / "x.parquet")
        target = tmp_path / "new.toml"
        words = ("init", str(tmp_path / "x.parquet"), "--sensitive", "email")
        assert run(capsys, *words, "--output", str(target))[0] == 0
        assert KeyPolicy.load(target).own_key_for("email") == "k_pii"
        assert list(KeyPolicy.load(target).columns) == ["email", "cardNumber", "iban"]
        assert "by its name it has card numbers" in target.read_text()
        target.unlink()
        words = ("init", str(table), "--sensitive", "id, address", "--output", str(target))
        assert run(capsys, *words) == (0, "", "")
        policy = KeyPolicy.load(target)
        assert list(policy.columns) == ["id", "e.mail", "address.zip", "address.city"]
        assert list(policy.bloom_columns()) == list(policy.columns)
        code, _, said = run(capsys, "init", str(table), "--sensitive", "adress.zip")
        assert (code, "did you mean 'address.zip'?" in said) == (2, True)

    def test_a_table_without_personal_data_gets_a_policy_in_which_nothing_is_wrong(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pq.write_table(pa.table({"id": [1], "price": [1.5]}), tmp_path / "x.parquet")
        policy, table = str(tmp_path / "p.toml"), str(tmp_path / "x.parquet")
        assert run(capsys, "init", table, "--output", policy)[0] == 0
        for words in ((), ("--table", table), ("--schema", "id long, price double")):
            code, shown, complaint = run(capsys, "check", policy, *words)
            assert (code, complaint) == (0, ""), shown
            assert shown == f"{policy}: nothing is wrong\n"
        text = Path(policy).read_text()
        for line in ("[", "key =", "mode =", "bloom ="):
            text = text.replace(f"\n# {line}", f"\n{line}")
        Path(policy).write_text(text)
        loaded = KeyPolicy.load(policy)
        assert (loaded.footer_key, loaded.own_key_for("id")) == ("k_footer", "k_pii")


class TestCheck:
    def test_nothing_is_wrong(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        policy = policy_of(tmp_path, "tags.list.element", "address.zip", "props.key_value.key")
        assert run(capsys, "check", str(policy), "--table", str(table))[0] == 0
        assert run(capsys, "check", str(policy))[:2] == (0, f"{policy}: nothing is wrong\n")

    @pytest.mark.parametrize(
        ("column", "message", "hint"),
        [
            ("tags", "tags has columns inside", "name instead: tags.list.element"),
            ("address", "address has columns inside", "address.zip, address.city"),
            ("props", "props has columns inside", "props.key_value.key, props.key_value.value"),
            ("e.mail", "has a dot in its own name", "rename the column, for example to e_mail"),
            ("adress.zip", "there is no column adress.zip", "did you mean 'address.zip'?"),
            ("tags.element", "there is no column tags.element", "'tags.list.element'"),
        ],
    )
    def test_what_spark_cannot_write_is_told_with_the_leaf_to_name(
        self,
        table: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        column: str,
        message: str,
        hint: str,
    ) -> None:
        policy = policy_of(tmp_path, column, "id")
        code, shown, complaint = run(capsys, "check", str(policy), "--table", str(table), "--json")
        assert code == 1
        [problem] = json.loads(shown)["problems"]
        assert problem["column"] == column
        assert message in problem["message"]
        assert hint in problem["hint"]
        is_for_spark = "there is no column" not in message
        assert ("for Spark's writer alone" in problem["hint"]) == is_for_spark
        assert message in complaint

    def test_without_a_table_a_policy_tells_of_its_own_parents(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, _, complaint = run(
            capsys, "check", str(policy_of(tmp_path, "address", "address.zip"))
        )
        assert code == 1
        assert "name instead: address.zip" in complaint

    def test_every_mistake_is_found(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        policy = tmp_path / "policy.toml"
        policy.write_text('[kms]\nclient = "vualt"\n[footer]\nky = "k"\n[columns.a]\nkey = 7\n')
        code, _, complaint = run(capsys, "check", str(policy))
        assert code == 2
        for told in ("'vualt'", "'vault'", "'ky'", "'key' of [columns.a]"):
            assert told in complaint

    @pytest.mark.parametrize("columns", [(), ("id,email",)])
    def test_what_the_properties_cannot_say(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: tuple[str, ...]
    ) -> None:
        code, _, complaint = run(capsys, "check", str(policy_of(tmp_path, *columns)))
        assert code == 1
        assert "Spark" in complaint or "cut at" in complaint


class TestSeveralTables:
    """Of several tables a note says which; a table without sensitive columns is no mistake."""

    POLICY = """
[footer]
key = "k_footer"
[classified]
clear = ["city", "nowhere"]
[tables."orders".columns.at]
key = "k_pii"
bloom = true
[tables."orders".classified]
clear = ["at", "tme"]
[tables."products".columns.price]
bloom = true
"""

    @pytest.fixture
    def lake(self, tmp_path: Path) -> Path:
        at = pa.array([datetime.datetime(2026, 1, 1)])
        for name, columns in {
            "orders": {"at": at, "city": ["x"]},
            "products": {"price": [1.5]},
        }.items():
            (tmp_path / "lake" / name).mkdir(parents=True)
            pq.write_table(
                pa.table(columns),
                tmp_path / "lake" / name / "0.parquet",
                use_deprecated_int96_timestamps=True,
            )
        (tmp_path / "p.toml").write_text(self.POLICY)
        return tmp_path / "lake"

    def notes(self, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
        code, shown, complaint = run(capsys, "check", *words, "--json")
        assert (code, complaint) == (0, ""), shown
        return [note[:60] for note in json.loads(shown)["notes"]]

    def test_each_note_names_its_table(
        self, lake: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        policy = str(lake.parent / "p.toml")
        orders, products = '[tables."orders"]: ', '[tables."products"]: '
        of_policy = [
            f"{orders}[classified] clear names at, which has key k_pii: it is"[:60],
        ]
        alone = f"{products}no column has a key, and Spark encrypts no footer alone"[:60]
        of_orders = [
            f"{orders}column at: INT96: readers round these timestamps"[:60],
            f"{orders}[classified] clear: there is no column tme; there are"[:60],
        ]
        shared = "[classified] clear: there is no column nowhere; there are at, email"[:60]
        assert self.notes(capsys, policy) == [*of_policy, alone]
        every = self.notes(capsys, policy, "--table", str(lake))
        assert sorted(every) == sorted([*of_policy, *of_orders, alone, shared])
        # What is said of all tables cannot be judged by one.
        one = self.notes(capsys, policy, "--table", str(lake / "products"))
        assert one == [*of_policy, alone]

    def test_a_key_that_the_keyring_lacks_names_the_table(
        self, lake: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (lake.parent / "k.json").write_text(
            '{"version": 1, "master_keys": {"k_footer": "AAECAwQFBgcICQoLDA0ODw=="}}'
        )
        (lake.parent / "k.json").chmod(0o600)
        policy = lake.parent / "p.toml"
        policy.write_text(f'[kms]\nclient = "keyring"\nkeyring = "k.json"\n{self.POLICY}')
        code, _, complaint = run(capsys, "check", str(policy))
        assert code == 1
        assert 'column at: [tables."orders"]: the keyring has no key k_pii' in complaint

    def test_a_table_of_which_no_column_has_a_key_can_be_encrypted_and_read(
        self, lake: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        policy, keyring = lake.parent / "p.toml", lake.parent / "k.json"
        policy.write_text('[footer]\nkey = "k_footer"\n[columns.price]\nbloom = true\n')
        keyring.write_text(keyring_json())
        table = lake / "products"
        assert run(capsys, "check", str(policy), "--table", str(table))[0] == 0
        keys = Keyring.load(keyring)
        sb.reencrypt(table, policy=policy, keys=keys, output=lake.parent / "new")
        rows = sb.read_table(lake.parent / "new", policy=policy, keys=keys)
        assert rows.to_pydict() == {"price": [1.5]}


class TestWithoutAKeyring:
    KEYED = '[kms]\nclient = "keyring"\nkeyring = "gone.json"\n[footer]\nkey = "k_footer"\n'

    def test_a_policy_is_checked_against_a_table_in_clear(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "p.toml"
        path.write_text(self.KEYED + '[columns.id]\nkey = "k_pii"\n')
        code, shown, complaint = run(capsys, "check", str(path), "--table", str(table))
        assert (code, complaint) == (0, ""), shown

    def test_keys_of_the_keyring_that_the_policy_does_not_name_are_told(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "p.toml"
        path.write_text(self.KEYED + '[columns.id]\nkey = "k_pii"\n[keys.k_old]\n')
        keys = dict.fromkeys(("k_footer", "k_pii", "k_old", "k_x"), bytes(16))
        (tmp_path / "gone.json").write_text(keyring_json(keys))
        (tmp_path / "gone.json").chmod(0o600)
        code, shown, _ = run(capsys, "check", str(path), "--json")
        assert code == 0
        (note,) = json.loads(shown)["notes"]
        assert "does not name: k_x;" in note


class TestSchema:
    def test_a_policy_begins_from_a_schema_without_a_table(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ddl = "id long, tags array<string>"
        code, shown, _ = run(capsys, "init", "--schema", ddl)
        assert code == 0
        assert shown == KeyPolicy.draft(ddl)
        assert '# [columns."tags.list.element"]' in shown
        (tmp_path / "s.ddl").write_text(ddl + "\n")
        assert run(capsys, "init", "--schema-from", str(tmp_path / "s.ddl")) == (0, shown, "")

    def test_a_table_and_a_schema_are_one_too_many(
        self, table: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(capsys, "init", str(table), "--schema", "id long")[0] == 2
        assert run(capsys, "init")[0] == 2


def test_a_schema_in_the_place_of_a_table_gets_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = "email string, n long"
    (tmp_path / "ddl.txt").write_text(schema)
    for given, hint in (
        (schema, f"--schema '{schema}'"),
        (str(tmp_path / "ddl.txt"), f"--schema-from {tmp_path / 'ddl.txt'}"),
    ):
        code, _, err = run(capsys, "init", given)
        assert (code, hint in err) == (2, True), err


def test_a_column_like_a_sensitive_one_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"id": [1], "email": ["a"], "E_mail": ["a"]}), tmp_path / "x.parquet")
    policy = policy_of(tmp_path, "email")
    code, _, said = run(capsys, "check", str(policy), "--table", str(tmp_path / "x.parquet"))
    assert code != 0
    assert "E_mail" in said
    assert '[columns."E_mail"]' in said
    policy.write_text(policy.read_text() + "[columns.E_mail]\n")
    code, out, _ = run(capsys, "check", str(policy), "--table", str(tmp_path / "x.parquet"))
    assert (code, "nothing is wrong" in out) == (0, True)
