"""Documents of others: refused for what they become in memory, before they are parsed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.running.bounded_documents import parsed_json, parsed_toml, read_bounded
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError

_PROGRAM = """
import sys, warnings
from pathlib import Path
import secure_bloom as sb
warnings.simplefilter("ignore")
try:
    {statement}
    print("no error")
except sb.SecureBloomError as error:
    print(type(error).__name__, error, "|", error.hint)
import re
print(int(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1]) >> 10)
"""


def refused(statement: str) -> None:
    """A process with a budget of 64 MiB refuses what a statement reads, in less than 400 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, VARIABLE: "64MiB"},
        timeout=60,
    )
    said, peak = done.stdout.splitlines()
    assert said.startswith("MemoryBudgetError"), (said, peak)
    assert VARIABLE in said.partition("|")[2]
    assert int(peak) < 400


_BOMBS = {
    "keyring lists": b'{"version":1,"x":[' + b"[]," * 1_500_000 + b"[]]}",
    "keyring members": b'{"version":1,' + b",".join(b'"%x":0' % n for n in range(900_000)) + b"}",
}


@pytest.mark.parametrize("name", list(_BOMBS))
def test_a_keyring(tmp_path: Path, name: str) -> None:
    path = tmp_path / "keyring.json"
    path.write_bytes(_BOMBS[name])
    refused(f"sb.Keyring.load({str(path)!r})")


_TOML = {
    "tables": "".join(f"[columns.a{n}]\n" for n in range(100_000)),
    "dotted key": "a." * 6_000 + "a = 1",
    "values": "a = [" + "{b=1}," * 500_000 + "]",
}


@pytest.mark.parametrize("name", list(_TOML))
def test_a_policy(tmp_path: Path, name: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(_TOML[name])
    refused(f"sb.KeyPolicy.load({str(path)!r})")


@pytest.mark.parametrize("reader", ["sb.Keyring.load", "sb.KeyPolicy.load"])
def test_a_file_without_an_end(reader: str) -> None:
    refused(f"{reader}('/dev/zero')")


def test_a_keyring_to_which_keys_are_added(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    path.write_bytes(_BOMBS["keyring lists"])
    refused(
        "from secure_bloom.encryption.kms.keyring import add_master_keys as add; "
        f"add(Path({str(path)!r}), ['k'])"
    )
    assert path.read_bytes() == _BOMBS["keyring lists"]


def test_the_file_of_a_token() -> None:
    refused(
        "from secure_bloom.encryption.kms.vault.login import VaultLogin as L; "
        "L._secret(Path('/dev/zero'), 'the token')"
    )


def test_the_schema_of_a_policy() -> None:
    refused(
        "from secure_bloom.encryption.spark_ddl import schema_columns as c; "
        "c('{\"fields\":[' + '{},' * 1_000_000 + '{}]}')"
    )


def test_a_schema_of_a_paimon_table(tmp_path: Path) -> None:
    path = tmp_path / "schema-0"
    path.write_bytes(_BOMBS["keyring lists"])
    refused(f"from secure_bloom.lakes.paimon.schema import read_json as r; r({str(path)!r})")


def test_what_is_small_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1MiB")
    document = {"columns": {f"column {n}": {"key": "k", "parts": [1, 2]} for n in range(500)}}
    assert parsed_json(json.dumps(document), "it") == document
    text = "".join(f'[columns."a.b.c{n}"]\nkey = "k"\n' for n in range(500))
    assert len(parsed_toml(text, "it")["columns"]) == 500
    path = tmp_path / "file"
    path.write_bytes(b"x" * 500_000)
    with path.open("rb") as file:
        assert read_bounded(file, "it") == b"x" * 500_000
    path.write_bytes(b"x" * 600_000)
    with path.open("rb") as file, pytest.raises(MemoryBudgetError, match="it takes"):
        read_bounded(file, "it")


def test_what_is_no_text_is_refused_by_json() -> None:
    with pytest.raises(TypeError):
        parsed_json(7, "it")  # type: ignore[arg-type]
    assert issubclass(MemoryBudgetError, sb.UnsupportedFeatureError)
