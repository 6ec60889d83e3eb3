"""Find files of one dataset that obey the policy, but are protected in different ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from secure_bloom.auditing.checks.subjects import FooterSubject
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.naming import short
from secure_bloom.auditing.rules.key_rules import MIXED_RULES
from secure_bloom.encryption.file_keys import FileKeys
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.locate import Tail
from secure_bloom.parquet.structures.metadata import ColumnChunk

#: The protection of each part of a file; "" is the footer, the other names are columns.
Protection = Mapping[str, str]

_FOOTER = ""


def protection_of(subject: FooterSubject) -> Protection:
    """Return the protection of each part of a file, with a column's row groups taken together."""
    tail, keys = subject.of.tail, subject.of.keys
    columns: dict[str, set[str]] = {}
    for chunk in subject.chunks:
        columns.setdefault(chunk.leaf.name, set()).add(_column(chunk.column_chunk, tail, keys))
    return {_FOOTER: _footer(tail, keys)} | {
        name: ", ".join(sorted(states)) for name, states in columns.items()
    }


def _footer(tail: Tail, keys: FileKeys) -> str:
    if tail.algorithm is None:
        return str(tail.mode)
    return f"{tail.mode} with {tail.algorithm.member()} under {_name(keys, tail.key_metadata)}"


def _column(column_chunk: ColumnChunk, tail: Tail, keys: FileKeys) -> str:
    crypto = column_chunk.crypto_metadata
    if crypto is None:
        return "in clear"
    own = crypto.ENCRYPTION_WITH_COLUMN_KEY
    if own is None:
        return f"under the footer key {_name(keys, tail.key_metadata)}"
    return f"under {_name(keys, own.key_metadata)}"


def _name(keys: FileKeys, key_metadata: bytes | None) -> str:
    try:
        return keys.describe(key_metadata) or "a key without a name"
    except SecureBloomError:
        return "a key without a name"


class Mixture:
    """The protections of the files of a dataset. Equal ones are stored once."""

    def __init__(self) -> None:
        self._paths: dict[frozenset[tuple[str, str]], list[str]] = {}

    def add(self, path: str, protection: Protection) -> None:
        """Add the protection of one file."""
        self._paths.setdefault(frozenset(protection.items()), []).append(path)

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each part of a file that most files protect in another way."""
        usual = self._usual()
        for parts, paths in self._paths.items():
            for part, state in sorted(parts):
                if state != usual[part]:
                    what = f"{short(state)}, in most files {short(usual[part])}"
                    subject = "the footer is " if part == _FOOTER else "the column is "
                    for path in paths:
                        yield MIXED_RULES.finding(subject + what, path=path, column=part or None)

    def _usual(self) -> dict[str, str]:
        """Return the protection of each part in most files."""
        counts: dict[str, Counter[str]] = {}
        for parts, paths in self._paths.items():
            for part, state in parts:
                counts.setdefault(part, Counter())[state] += len(paths)
        # A tie goes to the first in the alphabet, whatever the order of the files.
        return {
            part: min(states, key=lambda state: (-states[state], state))
            for part, states in counts.items()
        }
