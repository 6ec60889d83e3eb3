"""Documents of others: refused for what they become in memory, before they are parsed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.auditing.checks import table_logs
from secure_bloom.auditing.checks.writer_schemas import texts_inside
from secure_bloom.cli import audit_verb, default_files, inputs
from secure_bloom.lakes.delta import history, log_bounds, table_run
from secure_bloom.lakes.delta.actions import PHYSICAL_NAME
from secure_bloom.running.bounded_documents import parsed_json, parsed_toml, read_bounded
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError
from secure_bloom.spark import spark_schema
from secure_bloom.storage.column_mapping import ColumnMapping

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
    "keyring lists": lambda: b'{"version":1,"x":[' + b"[]," * 1_500_000 + b"[]]}",
    "keyring members": lambda: (
        b'{"version":1,' + b",".join(b'"%x":0' % n for n in range(900_000)) + b"}"
    ),
}


@pytest.mark.parametrize("name", list(_BOMBS))
def test_a_keyring(tmp_path: Path, name: str) -> None:
    path = tmp_path / "keyring.json"
    path.write_bytes(_BOMBS[name]())
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


@pytest.mark.parametrize(
    "reader",
    [
        "sb.Keyring.load",
        "sb.KeyPolicy.load",
        "from secure_bloom.cli.inputs import read_text; read_text",
    ],
)
def test_a_file_without_an_end(reader: str) -> None:
    refused(f"{reader}('/dev/zero')")


def test_a_keyring_to_which_keys_are_added(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    path.write_bytes(_BOMBS["keyring lists"]())
    refused(
        "from secure_bloom.encryption.kms.keyring import add_master_keys as add; "
        f"add(Path({str(path)!r}), ['k'])"
    )
    assert path.read_bytes() == _BOMBS["keyring lists"]()


def test_the_file_of_a_token() -> None:
    refused(
        "from secure_bloom.encryption.kms.vault.api import VaultLogin as L; "
        "L._secret(Path('/dev/zero'), 'the token')"
    )


def test_the_schema_of_a_policy() -> None:
    refused(
        "from secure_bloom.encryption.spark_ddl import schema_columns as c; "
        "c('{\"fields\":[' + '{},' * 1_000_000 + '{}]}')"
    )


def test_a_schema_of_a_paimon_table(tmp_path: Path) -> None:
    path = tmp_path / "schema-0"
    path.write_bytes(_BOMBS["keyring lists"]())
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


#: A JSON text of 3 MB that becomes lists of 100 MB.
_LISTS = '{"a":[' + "[]," * 1_000_000 + "[]]}"


def _of_a_file(read: Callable[[Path], object], content: str) -> Callable[[Path], object]:
    def read_written(folder: Path) -> object:
        path = folder / "00000000000000000001.crc"
        path.write_text(content)
        return read(path)

    return read_written


def _clustered(_: Path) -> object:
    table: Any = SimpleNamespace(domains={"delta.clustering": _LISTS}, folder="t")
    table_run._refuse_secret_clusters(table, ColumnMapping(), lambda _: False)
    return None


def _written_by_spark(text: str) -> object:
    mark = SimpleNamespace(key=spark_schema._WRITTEN, value=text)
    footer: Any = SimpleNamespace(metadata=SimpleNamespace(key_value_metadata=[mark]))
    return spark_schema.written_intervals(footer)


def _shown() -> table_logs._Shown:
    return table_logs._Shown(sb.KeyPolicy(footer_key="k", columns={}))


def _schemas() -> Iterator[dict[str, Any]]:
    """Yield schemas, of which each is small."""
    for number in range(100):
        # Schemas with physical names are kept.
        text = f'{{"{PHYSICAL_NAME}":[' + f"{number}," * 10_000 + "0]}"
        yield {"metaData": {"schemaString": text}}


#: Each document that others may have written, and a reader of it.
_READERS: dict[str, Callable[[Path], object]] = {
    "secure-bloom.toml": _of_a_file(default_files._table, _TOML["tables"]),
    "secure-bloom.toml, values": _of_a_file(default_files._table, _TOML["values"]),
    "parameters": _of_a_file(lambda path: inputs.read_parameters(str(path)), _LISTS),
    "checksum file of a version": _of_a_file(
        lambda path: list(history._checksum_actions(str(path))), _LISTS
    ),
    "stray action": _of_a_file(lambda path: list(history.stray_actions(str(path))), _LISTS),
    "schema in a log": lambda _: _shown().take_actions([{"metaData": {"schemaString": _LISTS}}]),
    "schemas of a log": lambda _: _shown().take_actions(_schemas()),
    "parameter in a history": lambda _: history._json(_LISTS),
    "statistics": lambda _: log_bounds._parsed(_LISTS),
    "clustering": _clustered,
    "schema in a footer": lambda _: texts_inside(_LISTS.encode()),
    "schema of Spark in a footer": lambda _: _written_by_spark(_LISTS),
}


@pytest.mark.parametrize("document", list(_READERS))
def test_a_document_is_refused_before_it_is_parsed(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    tracemalloc.start()
    try:
        with pytest.raises(MemoryBudgetError):
            _READERS[document](tmp_path)
        # The text, its bytes, and what counting takes.
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_the_file_of_properties_is_refused_by_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file, which a reader without a bound would take to be properties."""
    monkeypatch.setenv(VARIABLE, "16MiB")
    path = tmp_path / "x.properties"
    for size in (1 << 20, 12 << 20):
        with path.open("wb") as file:
            file.truncate(size)
        with pytest.raises(MemoryBudgetError) if size > 8 << 20 else nullcontext():
            assert audit_verb._properties(path) is not None
