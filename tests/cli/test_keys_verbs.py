"""`keys check` and `keys new`."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest

from secure_bloom.cli import main
from secure_bloom.encryption.keys import Keyring
from tests.openbao import OpenBao

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

    def test_a_policy_without_keys(self, policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
        policy.write_text("[columns.email]\nbloom = true\n")
        code, _, complaint = run(capsys, "check", "--policy", str(policy))
        assert code == 2
        assert "names no master key" in complaint
