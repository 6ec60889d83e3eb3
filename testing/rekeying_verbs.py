"""Every verb that changes a file and could meet another run: re-encryption, rotation, filters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from testing.tables import KEYRING

_FILTERS = {"id": sb.BloomFilterOptions(fpp=0.1)}
Verb = Callable[[Path], Any]


def policy(key: str = "k_pii", *, internal: bool = True) -> sb.KeyPolicy:
    """A policy with the keys of its files inside or outside."""
    return sb.KeyPolicy(
        footer_key="k_footer",
        columns={"email": ColumnRule(path="email", key=key)},
        encryption=EncryptionOptions(internal_storage=internal),
    )


INSIDE, OUTSIDE = policy(), policy(internal=False)


def reencryption(wanted: sb.KeyPolicy, **options: Any) -> Verb:
    return lambda path: sb.reencrypt(path, policy=wanted, keys=KEYRING, jobs=1, **options)


def _reencrypt_to(wanted: sb.KeyPolicy) -> Verb:
    return lambda path: reencryption(wanted, output=path.parent / "out")(path)


def _rotate(path: Path) -> Any:
    return sb.rotate_keys(path, policy=policy("k_finance"), keys=KEYRING, jobs=1)


def _rotate_by_name(path: Path) -> Any:
    moves = {"k_pii": "k_finance"}
    return sb.rotate_keys(path, policy=INSIDE, moves=moves, keys=KEYRING, jobs=1)


def _add(path: Path, **options: Any) -> Any:
    return sb.add_bloom_filters(path, columns=_FILTERS, keys=KEYRING, jobs=1, **options)


VERBS: dict[str, Verb] = {
    "reencrypt": reencryption(INSIDE),
    "reencrypt anew": reencryption(INSIDE, new_data_keys=True),
    "reencrypt outside": reencryption(OUTSIDE),
    "reencrypt outside anew": reencryption(OUTSIDE, new_data_keys=True),
    "rotate": _rotate,
    "rotate --from --to": _rotate_by_name,
    "add": _add,
    "add --in-place": lambda path: _add(path, in_place=True),
    "add --output": lambda path: _add(path, output=path.parent / "out"),
    "reencrypt outside --output": _reencrypt_to(OUTSIDE),
    "reencrypt --output": _reencrypt_to(INSIDE),
    "decrypt": lambda path: sb.decrypt(path, output=path.parent / "out", keys=KEYRING, jobs=1),
}
