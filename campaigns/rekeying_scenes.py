"""The verbs that change keys, as plays for `scenes`: key material inside files, and beside them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from unittest import mock

import secure_bloom as sb
from campaigns.disks import MEMORY
from secure_bloom.encryption.policy import ColumnRule, EncryptionOptions
from secure_bloom.parquet.key_material_files import KEY_MATERIAL_PREFIX, key_material_name
from secure_bloom.rekeying.rekey_report import RekeyReport
from testing.tables import KEYRING

Files = dict[str, tuple[bytes, int]]
Verb = Callable[[Path], RekeyReport]
_DATA = "x.parquet"
_MATERIAL = key_material_name(_DATA)
_CRC = f".{_MATERIAL}.crc"


def plays(folder: Path, plain: Files) -> Iterator[tuple[str, Files, Verb]]:
    """Name, files at the start, and the verb."""
    inside, outside = _policy(), _policy(internal=False)
    sealed, apart = (_sealed(folder, plain, policy) for policy in (inside, outside))
    apart_with_crc = {**apart, _CRC: (b"crc", 0o640)}
    mode = plain[_DATA][1]
    yield "reencrypt", {**plain, f".{_DATA}.crc": (b"crc", mode)}, _reencrypt(inside)
    yield "reencrypt, new data keys", sealed, _reencrypt(inside)
    yield "reencrypt to keys outside", sealed, _reencrypt(outside)
    yield "reencrypt, keys outside", apart_with_crc, _reencrypt(outside)
    yield "reencrypt to keys inside", apart_with_crc, _reencrypt(inside)
    over = {**plain, **{f"out/{name}": apart[name] for name in apart}}
    yield "reencrypt --output over a file, keys outside", over, _reencrypt(outside, output="out")
    yield "decrypt", apart, partial(_decrypt)
    yield "decrypt over a file, keys outside", over, partial(_decrypt)
    yield "rotate", sealed, _rotate()
    yield "rotate, keys outside", apart_with_crc, _rotate()


def plays_on_tables(folder: Path, plain: Files) -> Iterator[tuple[str, Files, Verb]]:
    """The same of a Delta table; its files are made by ``delta_scenes.table``."""
    outside = _policy(internal=False)
    apart = _sealed(folder, plain, outside)
    yield "reencrypt a Delta table", plain, _reencrypt(_policy(), name=".")
    yield "reencrypt a Delta table to keys outside", plain, _reencrypt(outside, name=".")
    yield "rotate a Delta table", _sealed(folder, plain, _policy()), _rotate(".")
    yield "rotate a Delta table, keys outside", apart, _rotate(".")


def over_keys_outside(folder: Path, plain: Files) -> Files:
    """A file and another one of its name in a folder beside it, key material outside both."""
    here, there = (_sealed(folder, plain, _policy(internal=False), seed) for seed in (b"\2", b"\1"))
    return {**here, **{f"out/{name}": there[name] for name in there}}


def between(start: Mapping[str, tuple[bytes, int]], end: Files) -> frozenset[bytes]:
    """Key material of old and new data in one file."""
    names = [name for name in {*start, *end} if name.rpartition("/")[2] == _MATERIAL]
    return frozenset(
        _merged(start.get(name, (b"{}", 0))[0], end.get(name, (b"{}", 0))[0]) for name in names
    )


def _merged(old: bytes, new: bytes) -> bytes:
    return old[:-1] + (b"," if len(old) > 2 and len(new) > 2 else b"") + new[1:]


def unopened(files: Mapping[str, bytes]) -> str | None:
    """Which of the files does not open, if key material stands beside any of them."""
    if not any(KEY_MATERIAL_PREFIX in name for name in files):
        return None
    # Without the log of a table: a file opens by what stands beside it, live or not.
    return _unopened(frozenset(it for it in files.items() if "_delta_log" not in it[0]))


@lru_cache(maxsize=1000)
def _unopened(files: frozenset[tuple[str, bytes]]) -> str | None:
    """Once for the same files: most faults leave those of before or those of after."""
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="opened-") as folder:
        for name, content in files:
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_bytes(content)
        for name, _ in files:
            try:
                if name.endswith(".parquet"):
                    sb.read_table(Path(folder, name), keys=KEYRING)
            except sb.SecureBloomError as error:
                return f"{name} does not open: {error}"
    return None


def _policy(*, internal: bool = True, key: str = "k_pii") -> sb.KeyPolicy:
    return sb.KeyPolicy(
        footer_key="k_footer",
        columns={"email": ColumnRule(path="email", key=key)},
        encryption=EncryptionOptions(internal_storage=internal),
    )


def _sealed(folder: Path, plain: Files, policy: sb.KeyPolicy, seed: bytes = b"\1") -> Files:
    """The files under ``policy``, with random bytes that the verbs do not draw."""
    content, mode = plain[_DATA]
    path = folder / _DATA
    path.write_bytes(content)
    with mock.patch.object(os, "urandom", lambda size: seed * size):
        sb.reencrypt(path, policy=policy, keys=KEYRING)
    made = {path.name: (path.read_bytes(), mode)}
    path.unlink()
    material = folder / _MATERIAL
    if material.exists():
        made[_MATERIAL] = (material.read_bytes(), mode)
        material.unlink()
    return made


def _reencrypt(policy: sb.KeyPolicy, output: str | None = None, name: str = _DATA) -> Verb:
    def run(folder: Path) -> RekeyReport:
        target = None if output is None else folder / output
        return sb.reencrypt(
            folder / name, policy=policy, keys=KEYRING, output=target, new_data_keys=name == _DATA
        )

    return run


def _decrypt(folder: Path) -> RekeyReport:
    return sb.decrypt(folder / _DATA, output=folder / "out", keys=KEYRING)


def _rotate(name: str = _DATA) -> Verb:
    def run(folder: Path) -> RekeyReport:
        policy = _policy(key="k_finance")
        return sb.rotate_keys(folder / name, policy=policy, keys=KEYRING)

    return run
