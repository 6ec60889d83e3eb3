"""Change key material that is stored outside a file, without opening the file's footer.

    data, unchanged | _KEY_MATERIAL_FOR_<name>.json with each key wrapped again

If the KMS can rewrap keys itself, neither the footer's key nor a key encryption key leaves it.
The footer is used unverified. This does no harm: the data file is not changed, and a key only
moves to the master key that ``moves`` or the policy gives for the name in its material.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import FileKeys, KeyMaterial
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import Algorithm
from secure_bloom.parquet.footer.locate import Tail
from secure_bloom.parquet.footer.opened import Footer, read_unverified
from secure_bloom.parquet.key_material_files import read_material, reference_of
from secure_bloom.rekeying.key_files import key_metadata_of
from secure_bloom.rekeying.protection import KeyUse, Protection, found_protection
from secure_bloom.rekeying.rekey_report import RekeyedFile, rekeyed_file
from secure_bloom.storage import InputFile


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
