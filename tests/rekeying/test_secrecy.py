"""Keys never show: not in messages, reports, logs, names or contents of files, or command lines."""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.cli import main
from testing.tables import MASTER_KEYS, keyring_json
from tests.rekeying.lake import policy, write_lake

_KEY_SIZES = (16, 24, 32)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    """Every random text of the size of a key: data keys, KEKs, and what is no secret."""
    found: set[bytes] = set(MASTER_KEYS.values())
    draw: Callable[[int], bytes] = os.urandom

    def noted(size: int) -> bytes:
        value = draw(size)
        # The id of a KEK has the size of a key, and stands in key material in clear.
        if size in _KEY_SIZES:
            found.add(value)
        return value

    monkeypatch.setattr(os, "urandom", noted)
    return found


def forms(key: bytes) -> list[bytes]:
    return [key, key.hex().encode(), base64.b64encode(key), repr(key)[2:-1].encode()]


@pytest.mark.parametrize("material", ["internal", "external"])
def test_no_key_shows_anywhere(
    tmp_path: Path,
    drawn: set[bytes],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    material: str,
) -> None:
    caplog.set_level(0)
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    kms = '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'
    encryption = f'key_material = "{material}"'
    columns = {"email": "k_pii", "s": "k_pii"}
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    old.write_text(kms + policy(columns=columns, encryption=encryption))
    new.write_text(kms + policy(columns=dict.fromkeys(columns, "k_finance"), encryption=encryption))
    write_lake(tmp_path / "lake")
    lake, shown = str(tmp_path / "lake"), []
    damaged = tmp_path / "lake" / "1.0-none.parquet"
    for words in (
        ["reencrypt", lake, "--policy", str(old)],
        ["reencrypt", lake, "--policy", str(old), "--new-data-keys", "--json"],
        ["rotate", lake, "--policy", str(new), "-v"],
        ["keys", "used", lake, "--policy", str(new), "-v"],
        ["decrypt", lake, "--policy", str(new), "--output", str(tmp_path / "clear"), "-v"],
        ["damage"],
        ["reencrypt", lake, "--policy", str(old), "-v"],
        ["rotate", lake, "--policy", str(old), "--json", "-v"],
    ):
        if words == ["damage"]:
            content = damaged.read_bytes()
            damaged.write_bytes(content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
            continue
        with pytest.raises(SystemExit):
            main(words)
        told = capsys.readouterr()
        shown.append(told.out + told.err)
    everything = "\n".join([*shown, caplog.text, *map(str, tmp_path.rglob("*"))]).encode()
    everything += pickle.dumps(sb.KeyPolicy.load(old))
    everything += b"".join(
        path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name != "keyring.json"
    )
    ids = kek_ids(everything)
    secrets = [key for key in drawn if base64.b64encode(key) not in ids]
    assert len(secrets) > 30
    assert "1 failed" in shown[-2]
    for key in secrets:
        assert not any(form in everything for form in forms(key))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_lists_of_processes_show_what_was_typed_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    kms = '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'
    (tmp_path / "policy.toml").write_text(kms + policy())
    write_lake(tmp_path / "lake")
    typed = [sys.executable, "-m", "secure_bloom", "reencrypt", "lake", "--policy", "policy.toml"]
    run = subprocess.Popen(typed, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    seen: set[tuple[str, ...]] = set()
    while run.poll() is None:
        seen |= command_lines(group=run.pid)
        time.sleep(0.02)  # a look at all processes takes as long, and the run a second
    assert run.returncode == 0
    # The first look may come before the process has become another one.
    assert tuple(typed) in seen
    assert seen <= {tuple(typed), command_line(Path("/proc/self"))}


def command_lines(group: int) -> set[tuple[str, ...]]:
    """The words of all processes of a group, as `ps` shows them."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(process.name)) == group:
                found.add(command_line(process))
    return found - {()}


def command_line(process: Path) -> tuple[str, ...]:
    words = (process / "cmdline").read_bytes().split(b"\0")
    return tuple(word.decode() for word in words[:-1])


def kek_ids(everything: bytes) -> set[bytes]:
    """The ids of KEKs, as key material in files gives them."""
    parts = everything.replace(b'\\"', b'"').split(b'"keyEncryptionKeyID":"')[1:]
    return {part.partition(b'"')[0] for part in parts}
