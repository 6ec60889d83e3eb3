"""policy.toml -> KeyPolicy, and everything that a policy file is refused for."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.calling.options import BloomFilterOptions, FooterMode
from secure_bloom.encryption.access import check_master_keys
from secure_bloom.encryption.policy import KeyPolicy, draft_policy
from secure_bloom.encryption.policy_tables import (
    AcceptedFinding,
    Algorithm,
    ColumnRule,
    EncryptionOptions,
    current,
)
from secure_bloom.errors import PolicyError
from testing.project import ROOT
from testing.tables import KEYRING, Mode, customers, write

DEFAULT = ROOT / "keys" / "policy.toml"
FOOTER = '[footer]\nkey = "kf"\n'


def load(folder: Path, text: str) -> KeyPolicy:
    (folder / "policy.toml").write_text(text)
    return KeyPolicy.load(folder / "policy.toml")


class TestLoading:
    def test_the_default_policy(self) -> None:
        policy = KeyPolicy.load(DEFAULT)
        assert (policy.footer_key, policy.footer_mode) == ("k_footer", FooterMode.ENCRYPTED)
        assert {path: rule.key for path, rule in policy.columns.items()} == {
            "email": "k_pii",
            "iban": "k_finance",
            "national_id": "k_pii",
            "country": None,
        }
        assert policy.bloom_columns() == {
            "email": BloomFilterOptions(fpp=0.01),
            "iban": BloomFilterOptions(fpp=0.001),
            "national_id": BloomFilterOptions(),
            "country": BloomFilterOptions(fpp=0.05, max_bytes=65536),
        }
        assert policy.master_keys() == {"k_footer", "k_pii", "k_finance"}
        assert policy.base == DEFAULT.parent
        assert policy.encryption == EncryptionOptions()

    @pytest.mark.filterwarnings("ignore::secure_bloom.encryption.kms.KeyringPermissionWarning")
    def test_the_default_keyring_serves_the_default_policy(self) -> None:
        policy = KeyPolicy.load(DEFAULT)
        kms = policy.kms_client()
        check_master_keys(policy, kms)
        for name in policy.master_keys():
            assert kms.unwrap_key(kms.wrap_key(bytes(16), name), name) == bytes(16)

    def test_every_word_of_a_policy_is_loaded(self, tmp_path: Path) -> None:
        policy = load(
            tmp_path,
            """
            [kms]
            client = "my.package:Kms"
            url = "https://kms"
            retries = 3
            [footer]
            key = "kf"
            mode = "plaintext"
            [encryption]
            algorithm = "AES_GCM_CTR_V1"
            data_key_bits = 256
            double_wrapping = false
            [columns."address.zip"]
            key = "k1"
            bloom = {}
            [columns.city]
            bloom = false
            """,
        )
        assert policy == KeyPolicy(
            footer_key="kf",
            footer_mode=FooterMode.SIGNED,
            columns={
                "address.zip": ColumnRule(path="address.zip", key="k1", bloom=BloomFilterOptions()),
                "city": ColumnRule(path="city"),
            },
            kms={"client": "my.package:Kms", "url": "https://kms", "retries": 3},
            base=tmp_path,
            encryption=EncryptionOptions(
                algorithm=Algorithm.AES_GCM_CTR_V1, data_key_bits=256, double_wrapping=False
            ),
        )

    def test_an_empty_policy_encrypts_nothing(self, tmp_path: Path) -> None:
        policy = load(tmp_path, "")
        assert policy.footer_mode is FooterMode.PLAINTEXT
        assert policy.spark_properties() == {}
        assert policy.master_keys() == frozenset()
        assert policy.bloom_columns() == {}

    def test_filters_without_encryption(self, tmp_path: Path) -> None:
        policy = load(tmp_path, "[columns.city]\nbloom = true")
        assert policy.bloom_columns() == {"city": BloomFilterOptions()}
        assert policy.spark_properties() == {}

    def test_a_relative_path_is_made_absolute(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        load(tmp_path, FOOTER)
        assert KeyPolicy.load("policy.toml").base == tmp_path

    @pytest.mark.parametrize(
        ("text", "message", "hint"),
        [
            ("[footer", "not TOML", ""),
            ("[footr]\nkey = 'k'", "the policy has the unknown option 'footr'", "'footer'"),
            ("footer = 'k'", "[footer] is text, it must be a table", ""),
            ("columns = []", "[columns] is a list, it must be a table", ""),
            ("[footer]", "[footer] names no key", "remove [footer]"),
            ("[footer]\nkey = ''", "'key' of [footer] is empty", ""),
            ("[footer]\nkey = ' '", "'key' of [footer] is empty", ""),
            ("[footer]\nkey = 5", "'key' of [footer] is an integer, it must be text", ""),
            (FOOTER + "mod = 'x'", "[footer] has the unknown option 'mod'", "'mode'"),
            (FOOTER + "mode = 'plain'", "is 'plain', it must be one of: encrypted, plaintext", ""),
            (FOOTER + "mode = true", "'mode' of [footer] is true or false", ""),
            ("[kms]", "[kms] names no client", "keyring"),
            ("[kms]\nclient = 'keyrin'", "unknown client 'keyrin'", "'keyring'"),
            ("[kms]\nclient = 'keyring'\nkeyrin = 'a'", "unknown option 'keyrin'", "'keyring'"),
            ("[kms]\nclient = 'aws'\nregion = 5", "'region' of [kms] is an integer", ""),
            ("[encryption]", "[encryption] without [footer]", ""),
            (FOOTER + "[encryption]\nalgo = 'x'", "unknown option 'algo'", "'algorithm'"),
            (FOOTER + "[encryption]\nalgorithm = 'AES'", "'algorithm' of [encryption] is", "AES_"),
            (FOOTER + "[encryption]\ndata_key_bits = 129", "data_key_bits is 129", ""),
            (FOOTER + "[encryption]\ndata_key_bits = '128'", "is text, it must be an int", ""),
            (FOOTER + "[encryption]\ndouble_wrapping = 1", "must be true or false", ""),
            ("[columns.a]\nkey = 'k'", "column a has a key and the footer has none", "[footer]"),
            ("[columns]\na = 'k'", "[columns.a] is text, it must be a table", ""),
            ("[columns.a]\nkye = 'k'", "[columns.a] has the unknown option 'kye'", "'key'"),
            (FOOTER + "[columns.a]\nkey = ''", "'key' of [columns.a] is empty", ""),
            (FOOTER + "[columns.a]\nkey = ['k']", "'key' of [columns.a] is a list", ""),
            (FOOTER + "[columns.a.b]\nkey = 'k'", "unknown option 'b'", '[columns."a.b"]'),
            ('[columns."a..b"]', "'a..b' is not the dotted path", ""),
            ('[columns.""]', "'' is not the dotted path", ""),
            ("[columns.a]\nbloom = 0.01", "'bloom' of [columns.a] is a decimal number", ""),
            ("[columns.a]\nbloom = { fp = 0.1 }", "unknown option 'fp'", "'fpp'"),
            ("[columns.a]\nbloom = { fpp = '1' }", "'fpp' of 'bloom' of [columns.a] is text", ""),
            ("[columns.a]\nbloom = { fpp = 1.0 }", "column a: fpp is 1.0", ""),
            ("[columns.a]\nbloom = { fpp = nan }", "column a: fpp is nan", ""),
            ("[columns.a]\nbloom = { max_bytes = true }", "is true or false, it must be an", ""),
            ("[columns.a]\nbloom = { max_bytes = 1 }", "column a: max_bytes is 1", ""),
        ],
    )
    def test_what_is_no_policy(self, tmp_path: Path, text: str, message: str, hint: str) -> None:
        with pytest.raises(PolicyError) as error:
            load(tmp_path, text)
        assert error.value.path == str(tmp_path / "policy.toml")
        assert message in str(error.value)
        assert hint in (error.value.hint or "")

    def test_a_missing_file_and_one_that_is_not_text(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyError, match="cannot be read: No such file"):
            KeyPolicy.load(tmp_path / "none.toml")
        (tmp_path / "policy.toml").write_bytes(b"\xff")
        with pytest.raises(PolicyError, match="not UTF-8"):
            KeyPolicy.load(tmp_path / "policy.toml")


def test_a_draft_tells_one_problem_of_each_table(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        '[footer]\nmode = "encrypted"\n[encryption]\ndata_key_bits = 7\n'
        '[columns.email]\nkey = 5\n[columns.id]\nbloom = "yes"\n'
    )
    policy, problems = draft_policy(path)
    assert policy is None
    wanted = ["[footer] names no key", "data_key_bits is 7", "[columns.email]", "[columns.id]"]
    assert len(problems) == len(wanted)
    for problem, text in zip(problems, wanted, strict=True):
        assert text in problem.message


def test_a_draft_without_problems_is_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n')
    assert draft_policy(path) == (KeyPolicy.load(path), ())
    path.write_text('[columns.email]\nkey = "k_pii"\n')
    policy, (problem,) = draft_policy(path)
    assert policy is None
    assert "the footer has none" in problem.message
    path.write_text("[")
    with pytest.raises(PolicyError, match="not TOML"):
        draft_policy(path)


def test_a_policy_must_not_use_a_key_that_it_says_is_retired(tmp_path: Path) -> None:
    kept = load(tmp_path, FOOTER + "[keys.k_old]\nretired = true\n[keys.kf]\nretired = false\n")
    assert kept.retired_keys == {"k_old"}
    with pytest.raises(PolicyError, match="retired: kf"):
        load(tmp_path, FOOTER + "[keys.kf]\nretired = true\n")


def test_a_policy_is_text(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_bytes(b'[footer]\nkey = "\xff"\n')
    with pytest.raises(PolicyError, match="not UTF-8"):
        KeyPolicy.load(tmp_path / "policy.toml")


#: A policy that wants a filter of every e-mail; nobody added one.
WANTED = '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\nbloom = true\n'
IGNORED = '[[audit.ignore]]\nfinding = "filter-missing:email"\nreason = "added next month"\n'


def audited(tmp_path: Path, text: str) -> sb.AuditReport:
    path = write(
        tmp_path / "x.parquet",
        customers(20).select(["email"]),
        Mode.ENCRYPTED,
        column_keys={"k_pii": ["email"]},
    )
    (tmp_path / "policy.toml").write_text(text)
    return sb.audit(path, policy=tmp_path / "policy.toml", keys=KEYRING)


@pytest.mark.parametrize("until", ["", "until = 2999-12-31\n"])
def test_what_is_accepted_does_not_count_and_is_shown(tmp_path: Path, until: str) -> None:
    assert [f.id for f in audited(tmp_path, WANTED).findings] == ["filter-missing"]
    report = audited(tmp_path, WANTED + IGNORED + until)
    assert report.findings == ()
    assert [f.id for f in report.ignored] == ["filter-missing"]


def test_what_was_accepted_until_yesterday_counts_again(tmp_path: Path) -> None:
    report = audited(tmp_path, WANTED + IGNORED + "until = 2020-01-31\n")
    assert [f.id for f in report.findings] == ["filter-missing"]


def test_the_last_day_counts() -> None:
    accepted = [AcceptedFinding(finding="x", reason="y", until=date(2027, 1, 31))]
    assert current(accepted, date(2027, 1, 31)) == {"x": "y (until 2027-01-31)"}
    assert current(accepted, date(2027, 2, 1)) == {}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ('finding = "filter-missing"\n', "lacks 'reason'"),
        ('reason = "why"\n', "lacks 'finding'"),
        ('finding = "a"\nreason = "b"\nuntil = "2027-01-31"\n', "is not a date"),
        ('finding = "a"\nreason = "b"\nuntill = 2027-01-31\n', "unknown option 'untill'"),
    ],
)
def test_a_wrong_entry_is_told(tmp_path: Path, entry: str, told: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(WANTED + "[[audit.ignore]]\n" + entry)
    with pytest.raises(PolicyError, match=told):
        sb.KeyPolicy.load(path)


@pytest.mark.parametrize("names", ["'note'", "['note', 7]"])
def test_metadata_to_drop_are_a_list_of_names(tmp_path: Path, names: str) -> None:
    with pytest.raises(PolicyError, match=r"'drop_metadata' of .*is not a list of texts"):
        load(tmp_path, f'[footer]\nkey = "k"\ndrop_metadata = {names}\n')
