"""`keys check` and `keys new`."""

from __future__ import annotations

import base64
import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from secure_bloom.cli import main
from secure_bloom.encryption.kms import (
    Keyring,
    KeyringPermissionWarning,
    add_master_keys,
    new_keyring,
)
from testing.openbao import OpenBao
from testing.tables import Mode, customers, keyring_json, write

POLICY = """
[kms]
{kms}
[footer]
key = "cli_footer"
[columns.email]
key = "cli_pii"
"""
KEYRING = 'client = "keyring"\nkeyring = "keyring.json"'


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["keys", *words])
    shown = capsys.readouterr()
    return int(str(ended.value.code)), shown.out, shown.err


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.format(kms=KEYRING))
    return path


def in_openbao(policy: Path, server: OpenBao, **words: str) -> None:
    lines = [f'{word} = "{text}"' for word, text in server.table(**words).items()]
    policy.write_text(POLICY.format(kms="\n".join([*lines, "retry_seconds = 0"])))


class TestAdd:
    def test_a_key_comes_to_those_that_are_there(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path, link = tmp_path / "keyring.json", tmp_path / "link.json"
        assert run(capsys, "new", str(path), "k_old")[0] == 0
        path.chmod(0o640)
        link.symlink_to(path)
        with pytest.warns(KeyringPermissionWarning):
            old = Keyring.load(path).master_keys
        code, shown, _ = run(capsys, "new", str(link), "--add", "k_new", "--bits", "256")
        assert (code, shown) == (0, f"{link}: added k_new\n")
        found = Keyring.load(path).master_keys
        assert found == {**old, "k_new": found["k_new"]}
        assert len(found["k_new"]) == 32
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert link.is_symlink()
        assert sorted(tmp_path.iterdir()) == [path, link]

    @pytest.mark.parametrize("words", [("--add", "k"), ("--add", "new", "--add", "k")])
    def test_a_key_is_never_replaced(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
    ) -> None:
        path = tmp_path / "keyring.json"
        run(capsys, "new", str(path), "k")
        before = path.read_bytes()
        code, _, shown = run(capsys, "new", str(path), *words)
        assert code == 2
        assert "the keyring has these keys already: k" in shown
        assert path.read_bytes() == before
        assert run(capsys, "new", str(tmp_path / "nowhere.json"), "--add", "k")[0] == 2
        assert run(capsys, "new", str(path), "other", "--add", "new")[0] == 2
        assert list(tmp_path.iterdir()) == [path]

    def test_keys_that_are_added_at_once_are_all_there(self, tmp_path: Path) -> None:
        path = tmp_path / "keyring.json"
        new_keyring(path, ["k"])
        names = [f"k{number}" for number in range(24)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda name: add_master_keys(path, [name]), names))
        assert Keyring.load(path).master_keys.keys() == {"k", *names}
        assert list(tmp_path.iterdir()) == [path]


class TestUsed:
    def used(self, capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
        return run(capsys, "used", *map(str, words))

    def policy(self, folder: Path, keys: str = "") -> Path:
        path = folder / "p.toml"
        path.write_text(f'[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n{keys}')
        (folder / "keyring.json").write_text(keyring_json())
        (folder / "keyring.json").chmod(0o600)
        return path

    def test_a_retired_key_that_is_in_use_ends_with_1(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = write(tmp_path / "x.parquet", customers(30), Mode.ENCRYPTED)
        words = (file, "--keyring", tmp_path / "keyring.json", "--policy")
        code, shown, _ = self.used(capsys, *words, self.policy(tmp_path))
        assert code == 0
        assert "does not name it" in next(it for it in shown.splitlines() if "k_finance" in it)
        retired = self.policy(tmp_path, "[keys.k_finance]\nretired = true\n")
        code, shown, _ = self.used(capsys, *words, retired)
        assert code == 1
        assert "retired" in next(it for it in shown.splitlines() if "k_finance" in it)
        code, shown, _ = self.used(capsys, *words, retired, "--json")
        assert code == 1
        assert {it["master_key"]: it["in_policy"] for it in json.loads(shown)["keys"]} == {
            "k_footer": "used",
            "k_pii": "used",
            "k_finance": "retired",
        }
        # Of a key that is not retired nothing is wrong, whatever else the file depends on.
        assert self.used(capsys, *words, retired, "--key", "k_pii")[0] == 0

    def test_files_without_a_key_are_no_empty_table(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = write(tmp_path / "x.parquet", customers(3))
        assert self.used(capsys, file)[:2] == (0, "no file depends on a master key\n")
        file.write_bytes(file.read_bytes()[:-4])
        code, shown, _ = self.used(capsys, file)
        assert (code, shown) == (2, "")

    def test_the_files_of_one_key_are_listed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        policy = self.policy(tmp_path)
        (tmp_path / "t").mkdir()
        write(tmp_path / "t" / "x.parquet", customers(30), Mode.ENCRYPTED)
        write(
            tmp_path / "t" / "y.parquet",
            customers(30),
            Mode.ENCRYPTED,
            column_keys={"k_pii": ["email"]},
        )
        words = (tmp_path / "t", "--policy", policy, "--key", "k_finance")
        code, shown, _ = self.used(capsys, *words, "--keyring", tmp_path / "keyring.json")
        assert code == 0
        assert "x.parquet: k_finance: iban" in shown
        assert "y.parquet" not in shown
        keys = ("--policy", policy, "--keyring", tmp_path / "keyring.json", "--key", "k_none")
        code, shown, _ = self.used(capsys, tmp_path / "t", *keys)
        assert (code, shown) == (
            0,
            ("k_none: nothing depends on it; files that readers skip were looked at too\n"),
        )
        document = json.loads(self.used(capsys, tmp_path / "t", *keys, "--json")[1])
        assert (document["unused"], document["live_only"]) == (["k_none"], False)
        assert document["unknown"] == [{"master_key": "k_none", "did_you_mean": None}]
        # Without keys the footers stay closed, and nobody can tell.
        code, shown, complaint = self.used(capsys, *words)
        assert "nothing depends on it" not in shown
        assert code == 2
        assert "whether their columns depend on k_finance is not known" in complaint

    def test_the_exit_code_says_that_not_all_is_known(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "t").mkdir()
        write(tmp_path / "t" / "x.parquet", customers(30))
        (tmp_path / "t" / "_broken").write_bytes(b"PAR1" * 3)
        policy = self.policy(tmp_path)
        words = (tmp_path / "t", "--policy", policy, "--keyring", tmp_path / "keyring.json")
        assert self.used(capsys, *words)[0] == 0
        for asked in (("--key", "k_finance"), ("--key", "k_finance", "--json")):
            code, shown, complaint = self.used(capsys, *words, *asked)
            assert (code, "nothing depends" in shown) == (2, False)
            assert "whether something depends on k_finance is not known" in complaint
        # A retired key of the policy is asked for too.
        self.policy(tmp_path, "[keys.k_finance]\nretired = true\n")
        assert self.used(capsys, *words)[0] == 2
        (tmp_path / "t" / "_broken").unlink()
        assert self.used(capsys, *words)[0] == 0

    def test_a_misspelt_key_is_no_all_clear(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        policy = self.policy(tmp_path, "[keys.k_pii_2026]\n")
        file = write(tmp_path / "x.parquet", customers(30), Mode.ENCRYPTED)
        words = (file, "--keyring", tmp_path / "keyring.json", "--policy", policy, "--key")
        for typo, meant in {"k_pii_2062": "k_pii_2026", "K_fotter": "k_footer"}.items():
            code, shown, complaint = self.used(capsys, *words, typo)
            assert (code, shown) == (1, "")
            assert f"neither files nor policy nor keyring know the name {typo}" in complaint
            assert f"did you mean {meant}?" in complaint
            code, shown, _ = self.used(capsys, *words, typo, "--json")
            document = json.loads(shown)
            assert (code, document["unused"]) == (1, [])
            assert document["unknown"] == [{"master_key": typo, "did_you_mean": meant}]
        # A key that the policy still names is in no file: nothing depends on it.
        code, shown, _ = self.used(capsys, *words, "k_pii_2026")
        assert (code, "nothing depends on it" in shown) == (0, True)
        # Nothing is like the name of a key that was taken out of the policy.
        code, shown, complaint = self.used(capsys, *words, "former")
        assert (code, "nothing depends on it" in shown) == (0, True)
        assert "know the name former" in complaint

    def test_a_new_key_that_is_not_made_yet_names_the_command(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(tmp_path / "x.parquet", customers(30), Mode.ENCRYPTED)
        policy = self.policy(tmp_path)
        add_master_keys(tmp_path / "keyring.json", ["k_pii_2025"])
        kms = '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n[keys.k_pii_2025]\n'
        text = policy.read_text().replace('"k_pii"', '"k_pii_2026"')
        policy.write_text(text + kms)
        made = f"secure-bloom keys new {tmp_path / 'keyring.json'} --add k_pii_2026"
        words = (tmp_path / "x.parquet", "--policy", policy)
        runs = {
            "rotate": ("rotate", *words),
            "check": ("keys", "check", "--policy", policy),
            "to": ("rotate", *words, "--from", "k_pii", "--to", "k_pii_2026"),
            "policy": ("policy", "check", policy),
        }
        for verb, command in runs.items():
            with pytest.raises(SystemExit):
                main([str(it) for it in command])
            complaint = capsys.readouterr().err
            assert made in complaint, verb
            assert "did you mean" not in complaint, verb
        # A key that files are to leave is not made anew.
        policy.write_text(text.replace("k_pii_2026", "k_pii") + kms)
        with pytest.raises(SystemExit):
            main([*map(str, ("rotate", *words, "--from", "k_financ", "--to", "k_pii"))])
        complaint = capsys.readouterr().err
        assert "did you mean 'k_finance'?" in complaint
        assert "keys new" not in complaint


class TestNew:
    def test_a_keyring_for_a_policy_serves_it(
        self, policy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        keyring = policy.with_name("keyring.json")
        code, shown, _ = run(capsys, "new", str(keyring), "--policy", str(policy), "--bits", "256")
        assert (code, shown) == (0, f"{keyring}: cli_footer, cli_pii\n")
        assert stat.S_IMODE(keyring.stat().st_mode) == 0o600
        keys = Keyring.load(keyring).master_keys
        assert {len(key) for key in keys.values()} == {32}
        assert len(set(keys.values())) == 2
        assert not any(base64.b64encode(key).decode() in shown for key in keys.values())
        assert {path.name for path in policy.parent.iterdir()} == {"policy.toml", "keyring.json"}
        assert run(capsys, "check", "--policy", str(policy))[0] == 0

    def test_a_keyring_is_never_replaced(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "keyring.json"
        path.write_text("the only keys")
        code, _, shown = run(capsys, "new", str(path), "k")
        assert code == 2
        assert "there is a file already" in shown
        assert path.read_text() == "the only keys"
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            ((), "no master key is named"),
            ((), "hint: name keys, or give a policy that names them"),
            (("k", "--bits", "100"), "a key of 100 bits"),
            ((" ",), "name is empty"),
        ],
    )
    def test_what_makes_no_sense(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        words: tuple[str, ...],
        complaint: str,
    ) -> None:
        code, _, shown = run(capsys, "new", str(tmp_path / "k.json"), *words)
        assert code == 2
        assert complaint in shown
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_not_there(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, _, shown = run(capsys, "new", str(tmp_path / "none" / "k.json"), "k")
        assert code == 2
        assert "cannot be written: No such file" in shown


class TestCheck:
    def test_every_key_of_openbao(
        self,
        policy: Path,
        openbao: OpenBao,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("BAO_TOKEN", openbao.root)
        in_openbao(policy, openbao)
        openbao.make_key("cli_footer")
        code, shown, complaint = run(capsys, "check", "--policy", str(policy))
        assert code == 2
        assert "cli_footer: ok" in shown
        assert "cli_pii: failed" in shown
        assert f"error: {openbao.address} has no master key 'cli_pii' at transit/" in complaint
        assert "cli_pii" not in openbao.key_names()
        openbao.make_key("cli_pii")
        code, shown, complaint = run(capsys, "check", "--policy", str(policy), "--json")
        assert (code, complaint) == (0, "")
        found = json.loads(shown)
        assert found["client"] == "vault"
        assert [(key["key"], key["ok"]) for key in found["keys"]] == [
            ("cli_footer", True),
            ("cli_pii", True),
        ]

    def test_a_kms_that_is_down(
        self, policy: Path, openbao: OpenBao, capsys: pytest.CaptureFixture[str]
    ) -> None:
        in_openbao(policy, openbao, address="http://127.0.0.1:1")
        for words, cause in (((), False), (("-v",), True)):
            code, shown, complaint = run(capsys, "check", "--policy", str(policy), *words)
            assert (code, shown) == (2, "")
            assert "error: http://127.0.0.1:1" in complaint or "there is no token" in complaint
            assert ("secure-bloom: cause:" in complaint) == cause or "no token" in complaint

    def test_a_refusal_shows_its_causes_with_v(
        self,
        policy: Path,
        openbao: OpenBao,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        token = openbao.token("default")
        monkeypatch.setenv("BAO_TOKEN", token)
        in_openbao(policy, openbao)
        code, _, complaint = run(capsys, "check", "--policy", str(policy), "-v")
        assert code == 2
        assert "does not read under master key 'cli_footer': HTTP 403" in complaint
        assert "secure-bloom: cause: RefusalError: HTTP 403" in complaint
        assert "needs read on transit/keys/cli_footer" in complaint
        assert token not in complaint

    def test_a_keyring_that_lacks_a_key(
        self, policy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run(capsys, "new", str(policy.with_name("keyring.json")), "cli_footer")
        code, shown, complaint = run(capsys, "check", "--policy", str(policy))
        assert code == 2
        assert "cli_footer: ok" in shown
        assert "the KMS has no master key cli_pii" in complaint

    def test_an_older_key_is_tried_and_not_made(
        self, policy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        policy.write_text(f"{policy.read_text()}[keys.old]\n[keys.oldest]\nretired = true\n")
        keyring = policy.with_name("keyring.json")
        _, shown, notes = run(capsys, "new", str(keyring), "--policy", str(policy))
        assert shown.startswith(f"{keyring}: cli_footer, cli_pii\n")
        assert "no key is made for old of [keys]" in shown + notes
        assert "no key is made for oldest of [keys]" in shown + notes
        code, shown, complaint = run(capsys, "check", "--policy", str(policy))
        assert (code, "old: failed" in shown, "oldest" in shown) == (2, True, False)
        assert "add that very key to the keyring" in complaint
        run(capsys, "new", str(keyring), "--add", "old")
        assert run(capsys, "check", "--policy", str(policy))[0] == 0

    def test_a_policy_without_keys(self, policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
        policy.write_text("[columns.email]\nbloom = true\n")
        code, _, complaint = run(capsys, "check", "--policy", str(policy))
        assert code == 2
        assert "names no master key" in complaint


def test_adding_to_a_keyring_that_is_not_there_names_the_command_that_makes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "new", str(tmp_path / "none.json"), "--add", "k_pii")
    assert code == 2
    assert "none.json: no such keyring" in err
    assert "secure-bloom keys new FILE k_pii" in err
    assert not (tmp_path / "none.json").exists()
