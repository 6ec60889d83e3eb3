"""Find the keys that a file refers to, and change key material that is stored outside the file.

Key material outside a file changes without opening the file's footer:

    data, unchanged | _KEY_MATERIAL_FOR_<name>.json with each key wrapped again

If the KMS can rewrap keys itself, neither the footer's key nor a key encryption key leaves it.
The footer is used unverified. This does no harm: the data file is not changed, and a key only
moves to the master key that ``moves`` or the policy gives for the name in its material.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from secure_bloom.adding.report import hard_link_note
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import FileKeys, KeyMaterial
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import Algorithm
from secure_bloom.hudi.record_keys.footer_entry import RECORD_KEY_TEXTS, read_entry
from secure_bloom.paimon.index_files import index_path
from secure_bloom.parquet.footer.locate import Tail
from secure_bloom.parquet.footer.opened import Footer, read_unverified
from secure_bloom.parquet.key_material_files import read_material, reference_of
from secure_bloom.rekeying.protection import KeyUse, Protection, found_protection
from secure_bloom.rekeying.rekey_report import RekeyedFile, rekeyed_file
from secure_bloom.storage import InputFile, name_of


def named_references(footer: Footer) -> set[str]:
    """Return the file's references to key material outside it."""
    return {reference for key in key_metadata_of(footer) if (reference := reference_of(key))}


def key_metadata_of(footer: Footer) -> dict[bytes, int | None]:
    """Return each piece of key metadata once, with the ordinal of its column.

    The ordinal of the footer is None.
    """
    found: dict[bytes, int | None] = {}
    if footer.tail.key_metadata is not None:
        found[footer.tail.key_metadata] = None
    for chunks in footer.column_chunks:
        for ordinal, chunk in enumerate(chunks):
            crypto = chunk.crypto_metadata
            own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
            if own is not None and own.key_metadata is not None:
                # Row groups repeat the key metadata of a column, so its bytes are the key.
                found[own.key_metadata] = ordinal
    return found


def leftovers(file: InputFile, after: Protection | None = None) -> Iterator[str]:
    """Yield notes on files that still show the old content after the file was replaced.

    Yields nothing if the protection of columns stays.
    """
    # Another name leads to the old content, which the old keys still open.
    if file.names > 1:
        yield hard_link_note(file.names)
    index = name_of(index_path(file))
    # Anyone can look a value up in Paimon's index, as it is never encrypted.
    if after is not None and any(after.columns) and file.has_sibling(index):
        yield f"{index} stays unchanged, and shows values in clear: remove it, or build it anew"


def shown_record_keys(footer: Footer, after: Protection) -> frozenset[str]:
    """Return names of the footer's texts that would show Hudi's record keys of an encrypted column.

    Returns none for an encrypted footer.  If the file has no column of the record keys, any
    encrypted column counts, because the keys may be made from it.
    """
    secret = _encrypted(footer, after)
    entry = read_entry(footer) if after.footer_mode is FooterMode.SIGNED else None
    if entry is None or not secret:
        return frozenset()
    # An index by a column in clear shows nothing that the column itself does not.
    is_open = entry.column in {leaf.name for leaf in footer.leaves} - secret
    return frozenset() if is_open else RECORD_KEY_TEXTS


def _encrypted(footer: Footer, after: Protection) -> set[str]:
    uses: Iterable[tuple[object, str]] = zip(
        after.columns, (leaf.name for leaf in footer.leaves), strict=True
    )
    return {name for use, name in uses if use is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideKeys:
    """The material of all keys of a file, by reference. ``footer_reference`` is its footer's.

    ``footer`` is None for an encrypted footer, which hides the columns.
    """

    mode: FooterMode
    footer: Footer | None
    protection: Protection
    footer_reference: str
    materials: Mapping[str, KeyMaterial]

    def fits(self, policy: KeyPolicy, wanted: Protection | None) -> bool:
        """Return whether each key is under the master key that the policy names for it.

        ``wanted`` is what the policy says about the columns, if the footer shows them. If the
        footer cannot be opened, it is unknown which column uses which key. Then the policy must
        name the same master key for every column that has one.
        """
        if wanted is not None:
            # The modes are not compared here: whoever worked `wanted` out has refused another one.
            found = self.protection
            return (wanted.footer, wanted.columns) == (found.footer, found.columns)
        own = {rule.key for rule in policy.columns.values() if rule.key is not None}
        columns = {
            material.master_key_id
            for reference, material in self.materials.items()
            if reference != self.footer_reference
        }
        return (
            self.mode is policy.footer_mode
            and self.materials[self.footer_reference].master_key_id == policy.footer_key
            # With two keys and a closed footer, nobody knows which column should be under which.
            and len(own) <= 1
            and columns == own
        )

    def report(
        self,
        file: InputFile,
        renewed: Mapping[str, KeyMaterial],
        *,
        changes: bool,
        started: float,
    ) -> RekeyedFile:
        """Return the report of the file, whose keys are now wrapped as in ``renewed``."""
        names = {
            old.master_key_id: renewed[reference].master_key_id
            for reference, old in self.materials.items()
        }
        report = rekeyed_file(
            file,
            () if self.footer is None else self.footer.leaves,
            "rotated" if changes else "unchanged",
            before=self.protection,
            after=_renamed(self.protection, names),
            size=file.size,
            started=started,
        )
        return replace(
            report,
            master_keys_before=tuple(sorted(names)),
            master_keys=tuple(sorted(set(names.values()))),
        )


def outside_keys(file: InputFile, tail: Tail, keys: FileKeys) -> OutsideKeys | None:
    """Return the keys of ``file``.

    Return None if some keys are in its footer, or if the footer must be opened.
    """
    footer_reference = reference_of(tail.key_metadata)
    # Material inside a file is in its footer, which must be opened to change it.
    if footer_reference is None or tail.algorithm is None:
        return None
    footer = read_unverified(tail, keys) if tail.mode is FooterMode.SIGNED else None
    stored = read_material(file)
    # Material that the footer does not name may be of an older writing, and must not be carried on.
    if footer is not None and {reference_of(it) for it in key_metadata_of(footer)} != stored.keys():
        return None
    materials = {name: KeyMaterial.parse(text.encode()) for name, text in stored.items()}
    found = {name: it for name, it in materials.items() if isinstance(it, KeyMaterial)}
    if footer_reference not in found or found.keys() != stored.keys():
        return None
    return OutsideKeys(
        mode=tail.mode,
        footer=footer,
        protection=Protection(
            footer_mode=tail.mode,
            algorithm=None if tail.algorithm is None else Algorithm(tail.algorithm.member()),
            footer=KeyUse(name=found[footer_reference].master_key_id),
            columns=(),
        )
        if footer is None
        else found_protection(footer),
        footer_reference=footer_reference,
        materials=found,
    )


def _renamed(protection: Protection, names: Mapping[str, str]) -> Protection:
    def renamed(use: KeyUse | None) -> KeyUse | None:
        return use if use is None or use.name is None else replace(use, name=names[use.name])

    return replace(
        protection,
        footer=renamed(protection.footer),
        columns=tuple(renamed(use) for use in protection.columns),
    )
