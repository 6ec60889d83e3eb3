"""The scope of an audit: the policy, the options, and the files that it left out."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from secure_bloom.encryption.policy_files import read_policy
from secure_bloom.errors import PolicyError, refused_by_system


@functools.cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("secure-bloom", "pyarrow")} | {
        "python": platform.python_version()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditScope:
    """What an audit was asked to check. A report is only meaningful together with its scope.

    ``policy`` is the path of the policy file and ``policy_sha256`` the digest of its bytes and of
    the files that it includes. Both are None for a policy that was made in Python.  ``options`` are
    those of :func:`secure_bloom.audit`, by name.  ``accepted`` has the findings that the policy
    accepts today, ``ID`` or ``ID:COLUMN``, and why.
    """

    policy: str | None = None
    policy_sha256: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)
    files_left_out: int = 0
    versions: Mapping[str, str] = field(default_factory=_versions)

    def to_dict(self) -> dict[str, Any]:
        """Return the scope as it is in ``secure-bloom audit --json``."""
        return {
            "policy": self.policy,
            "policy_sha256": self.policy_sha256,
            "options": dict(self.options),
            "accepted": dict(self.accepted),
            "files_left_out": self.files_left_out,
            "versions": dict(self.versions),
        }

    def settings(self) -> list[str]:
        """Return the options that were given, as the command line spells them."""
        ignored = [it for it in self.options.get("ignore", ()) if it not in self.accepted]
        given = {**self.options, "ignore": ignored}
        return [
            f"--{name.replace('_', '-')}" + ("" if value is True else f" {_words(value)}")
            for name, value in given.items()
            if value
        ]

    def reason(self, finding: str, columns: Iterable[str]) -> str | None:
        """Return why the policy accepts an ignored finding of these columns, or None."""
        names = (finding, *(f"{finding}:{column}" for column in columns))
        return next((self.accepted[name] for name in names if name in self.accepted), None)

    def not_looked_at(self) -> list[str]:
        """Return short descriptions of what the audit left out because of its options."""
        left_out = f"{self.files_left_out:,} files that are not in the sample"
        return [left_out] * bool(self.files_left_out) + [
            words
            for name, (is_left_out, words) in _LEAVES_OUT.items()
            if is_left_out(self.options.get(name))
        ]


def _is_given(value: object) -> bool:
    return bool(value)


def _is_not_given(value: object) -> bool:
    return not value


_LEAVES_OUT = {
    "without_keys": (_is_given, "what only a key opens (--without-keys)"),
    "check_values": (_is_not_given, "values in data pages (--check-values looks at some)"),
    "spark_properties": (_is_not_given, "properties of Spark sessions (--spark-properties FILE)"),
}


def _words(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


def policy_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the bytes of a policy file and of the files that it includes.

    The files are hashed in the order of their inclusion, so that anybody can check the digest by
    ``cat policy.toml tables/orders.toml | sha256sum``. If the policy cannot be read, the digest
    is that of the file itself.
    """
    digest = hashlib.sha256()
    try:
        for file in (Path(path), *_included(Path(path))):
            digest.update(file.read_bytes())
        return digest.hexdigest()
    except OSError as exc:
        raise refused_by_system(exc, f"the policy cannot be read: {exc.strerror}") from exc


def _included(path: Path) -> tuple[Path, ...]:
    try:
        return read_policy(path).included
    except PolicyError:
        return ()
