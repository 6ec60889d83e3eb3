"""The protection of a file, as found and as wanted by a policy: the keys of footer and columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import (
    Algorithm,
    ColumnRule,
    EncryptionOptions,
    is_column_path,
)
from secure_bloom.errors import PolicyError
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import ColumnCryptoMetaData
from secure_bloom.storage.column_mapping import OlderColumn, Path, is_dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """The master key of a footer or a column, if the file shows it.

    ``is_footer_key`` marks a column under the key of the footer.
    """

    name: str | None
    is_footer_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """The protection of one file. A column in clear is None in ``columns``."""

    footer_mode: FooterMode
    algorithm: Algorithm | None
    footer: KeyUse | None
    columns: tuple[KeyUse | None, ...]

    @property
    def is_plain(self) -> bool:
        """Whether nothing is encrypted or signed."""
        return self.footer_mode is FooterMode.PLAINTEXT


def wanted_protection(policy: KeyPolicy | None, leaves: Sequence[Leaf]) -> Protection:
    """Return the protection that a policy wants for these columns.

    Without a policy, all columns are in clear.
    """
    if policy is None or policy.footer_key is None:
        return Protection(
            footer_mode=FooterMode.PLAINTEXT,
            algorithm=None,
            footer=None,
            columns=(None,) * len(leaves),
        )
    footer = KeyUse(name=policy.footer_key)
    # Not a key of its own with the same name: that column would need its own key metadata.
    rest = KeyUse(name=policy.footer_key, is_footer_key=True) if policy.uniform else None
    return Protection(
        footer_mode=policy.footer_mode,
        algorithm=policy.encryption.algorithm,
        footer=footer,
        columns=tuple(_column(policy, leaf, rest) for leaf in leaves),
    )


def _column(policy: KeyPolicy, leaf: Leaf, rest: KeyUse | None) -> KeyUse | None:
    name = policy.own_key_for(leaf.path)
    if name is None and is_unknown(policy, leaf.path):
        name = named_key(policy, leaf.stored_path or leaf.path)
        rest = KeyUse(name=policy.footer_key, is_footer_key=True)
    return rest if name is None else KeyUse(name=name)


def named_key(policy: KeyPolicy, path: Path) -> str | None:
    """Return the key of a column that had this name, in whatever spelling, or None."""
    name = policy.likeness.is_named(path)
    return policy.own_key_for(path) or (None if name is None else policy.columns[name].key)


def is_unknown(policy: KeyPolicy, path: Path) -> bool:
    """Return whether a table has dropped a column, and no schema in its metadata names it.

    Nobody knows whether the column was sensitive, so it is encrypted under the footer's key.
    """
    names = (".".join(path[:levels]) for levels in range(1, len(path) + 1))
    return is_dropped(path) and not any(it in policy.columns for it in names)


def with_older_names(policy: KeyPolicy, older: Iterable[OlderColumn]) -> KeyPolicy:
    """Return the policy with rules for dropped and renamed columns, by their names in files.

    Such columns get the key of an older name, unless a rule names the present one. A dropped
    column whose older names have no key gets a rule without a key.
    """
    rules = dict(policy.columns)
    for column in older:
        name, key = ".".join(column.shown), named_key(policy, column.path)
        # A name that no policy can have is one of a column that is not known.
        if name in policy.columns or not is_column_path(name):
            continue
        if key is not None and replace(policy, columns=rules).own_key_for(column.shown) is None:
            rules[name] = ColumnRule(path=name, key=key)
        elif is_dropped(column.shown):
            rules.setdefault(name, ColumnRule(path=name))
    return replace(policy, columns=rules)


def check_lookalikes(policy: KeyPolicy | None, columns: Collection[tuple[str, ...]]) -> None:
    """Raise PolicyError for a column that would be in clear and is named like a sensitive one.

    ``columns`` has the paths of all columns of a file or a table.
    """
    if policy is None:
        return
    clear = [path for path in columns if policy.key_for(path) is None]
    for path, like in policy.likeness.lookalikes(clear, columns).items():
        raise policy.alike_error(".".join(path), like)


def missing_columns(policy: KeyPolicy, leaves: Sequence[Leaf]) -> list[str]:
    """Return the policy's columns with keys that are neither leaves nor parents of leaves."""
    # In order and with a dot at the end, the leaves at or below a path follow one another.
    names = sorted(f"{leaf.name}." for leaf in leaves)
    return [
        path
        for path, rule in policy.columns.items()
        if rule.key is not None and path not in policy.shared and not _has_start(names, f"{path}.")
    ]


def _has_start(ascending: Sequence[str], start: str) -> bool:
    at = bisect_left(ascending, start)
    return at < len(ascending) and ascending[at].startswith(start)


def found_protection(footer: Footer) -> Protection:
    """Return the protection that a file has.

    Raises PolicyError if its row groups are protected differently.
    """
    rows = [
        tuple(_use(chunk.crypto_metadata, footer) for chunk in chunks)
        for chunks in footer.column_chunks
    ]
    # A policy and a report have one key for each column of a file.
    if any(row != rows[0] for row in rows):
        raise PolicyError("row groups of the file are encrypted under different keys")
    algorithm = footer.tail.algorithm
    return Protection(
        footer_mode=footer.tail.mode,
        algorithm=None if algorithm is None else Algorithm(algorithm.member()),
        footer=None
        if algorithm is None
        else KeyUse(name=footer.keys.describe(footer.tail.key_metadata)),
        columns=rows[0] if rows else (None,) * len(footer.leaves),
    )


def _use(crypto: ColumnCryptoMetaData | None, footer: Footer) -> KeyUse | None:
    if crypto is None:
        return None
    # The union has one of two members; without this one the column is under the footer's key.
    own = crypto.ENCRYPTION_WITH_COLUMN_KEY
    if own is None:
        return KeyUse(name=footer.keys.describe(footer.tail.key_metadata), is_footer_key=True)
    return KeyUse(name=footer.keys.describe(own.key_metadata))


def wraps_as_wanted(footer: Footer, encryption: EncryptionOptions) -> bool:
    """Return whether all keys of a file are wrapped and stored, and as long, as the policy says."""
    # A file in clear has no keys that could be wrapped otherwise.
    if footer.tail.algorithm is None:
        return True
    own = [
        chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY
        # The first row group is enough: a writer wraps the keys of a file in one way, and
        # `found_protection` has refused groups under different master keys.
        for chunks in footer.column_chunks[:1]
        for chunk in chunks
        if chunk.crypto_metadata is not None
    ]
    metadata = [footer.tail.key_metadata, *(it.key_metadata for it in own if it is not None)]
    materials = [None if it is None else footer.keys.material(it) for it in metadata]
    # The footer's key has the length of all: a writer makes all keys of a file alike.
    key = footer.key or footer.keys.footer_key(footer.tail.key_metadata)
    return 8 * len(key.key) == encryption.data_key_bits and all(
        it is not None
        and (it.kek is not None) == encryption.double_wrapping
        and it.internal_storage == encryption.internal_storage
        for it in materials
    )
