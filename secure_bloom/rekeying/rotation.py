"""Change the master keys of a file: its wrapped keys are wrapped again, and nothing else changes.

    data, unchanged | footer with new key_metadata

Data keys stay, so pages, filters and indexes stay, byte for byte.  The file is replaced, never
appended to: an append would leave the old footer, with the old wrapped keys, in the file.  Footers
that earlier appends have left in it are overwritten with zeros.  A table with a log gets a new file
beside the old one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from secure_bloom.adding.free_space import footers_to_blank, reaches_into_footer
from secure_bloom.encryption.file_keys import FileKeys, KeyMaterial, KeyResolver
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.parquet.footer.locate import Tail, read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock
from secure_bloom.parquet.footer.seal import seal_footer
from secure_bloom.parquet.key_material_files import (
    changed_before_missing,
    file_keys,
    reference_of,
)
from secure_bloom.parquet.key_material_writes import (
    remove_leftovers,
    renew_material,
    serialized,
    write_new_with_material,
)
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.parquet.schema import Leaf
from secure_bloom.rekeying.file_work import RekeyWork, check_written
from secure_bloom.rekeying.key_files import OutsideKeys, key_metadata_of, leftovers, outside_keys
from secure_bloom.rekeying.new_footer import renewed_crypto, renewed_metadata
from secure_bloom.rekeying.new_keys import Rewrapper
from secure_bloom.rekeying.protection import (
    KeyUse,
    Protection,
    found_protection,
    is_unknown,
    wanted_protection,
)
from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyStatus, failed_file, rekeyed_file
from secure_bloom.runs.work import FileTask, Steps, new_path
from secure_bloom.storage import InputFile, open_in_table, replace_tail
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.rewritten_file import OldRange, RewrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation(RekeyWork):
    """The work of one rotation: wrap the keys of each file under other master keys.

    With ``policy`` each key gets the master key that the policy names. Without one, the moves of
    ``rewrapper`` name it.
    """

    resolver: KeyResolver
    rewrapper: Rewrapper
    policy: KeyPolicy | None
    dry_run: bool = False
    verify: bool = False
    names: ColumnMapping | None = None
    needs_columns: bool = False

    @property
    def asks_for_each_key(self) -> bool:
        """Whether a KMS, not a keyring, wraps the keys. Files that share a key share its answer."""
        return not isinstance(self.resolver.kms, Keyring)

    def rotate(self, path: str, target: str | None) -> RekeyedFile:
        """Process one file, in place or to ``target``.

        Errors of this package become a failed report. With a ``target`` a new file is written only
        if something changes.
        """
        started = time.perf_counter()
        try:
            with located(path=path):
                try:
                    return self._rotate(path, target)
                # Once more, on the file that another writer put there.  After a second loss the
                # report says so, and the file is whole.
                except FileChangedError:
                    return self._rotate(path, target)
        except SecureBloomError as error:
            return failed_file(path, error, time.perf_counter() - started)

    def leaves(self, file: InputFile) -> Sequence[Leaf] | None:
        """Return the columns of a file, or None if its footer was not opened and hides them."""
        keys, tail = file_keys(self.resolver, file), read_tail(file)
        outside = self._outside(file, tail, keys)
        if outside is None:
            return unlock(tail, keys).leaves
        return None if outside.footer is None else outside.footer.leaves

    def prefetch(self, targets: Mapping[str, str | None]) -> KeyPrefetch:
        """Return an object that makes the calls to the KMS for later files ahead of time."""
        del targets
        return KeyPrefetch(self.resolver, self.ask, lambda: self.rewrapper.asked)

    def process(self, task: FileTask, steps: Steps) -> RekeyedFile:
        """Process one file, in place or to the task's target."""
        del steps
        report = self.rotate(task.path, task.target)
        if self.dry_run:
            return report
        return replace(report, new_path=new_path(task, report, is_copied=False))

    def ask(self, path: str) -> None:
        """Make the calls to the KMS that one file needs, and keep the answers."""
        # A dry run makes all calls and writes nothing; the rewrapper keeps the answers.
        replace(self, dry_run=True)._rotate(path, None)

    def _rotate(self, path: str, target: str | None) -> RekeyedFile:
        started = time.perf_counter()
        with open_in_table(path, self.names) as file, changed_before_missing(file):
            keys = file_keys(self.resolver, file)
            tail = read_tail(file)
            outside = self._outside(file, tail, keys)
            if outside is not None:
                return self._rotate_outside(file, outside, target, started)
            # The signature must be checked: readers take a footer that is signed anew for genuine.
            footer = unlock(tail, keys)
            # Refused, not left alone: whoever rotates keys takes the table for encrypted.
            if footer.tail.algorithm is None:
                raise UnsupportedFeatureError(
                    "the file is not encrypted, so it has no keys to rotate",
                    hint="reencrypt encrypts it",
                )
            before = found_protection(footer)
            wanted = self._wanted(path, footer, before)
            # Worked out before anything is written: a KMS that refuses the last key must leave the
            # file as it was.
            renewed = _renewed_file(footer, self.rewrapper, wanted)
            status: RekeyStatus = "rotated" if renewed.changes else "unchanged"
            # Only a data file that is replaced can leave its old content behind under another name.
            is_replaced = target is None and renewed.changes_footer
            notes = tuple(leftovers(file)) if is_replaced else ()
            size = file.size
            if renewed.changes and not self.dry_run:
                size = self._write(file, footer, renewed, target)
            elif not self.dry_run and target is None:
                remove_leftovers(path)
            after = _after(footer, before, renewed.master_keys)
            report = rekeyed_file(
                file, footer.leaves, status, before=before, after=after, size=size, started=started
            )
            return replace(report, notes=notes)

    def _write(
        self, file: InputFile, footer: Footer, renewed: _RenewedFile, target: str | None
    ) -> int:
        source, keep, tail = _new_content(file, footer, renewed)
        if self.verify:
            parts = source.parts if isinstance(source, RewrittenFile) else _parts(keep, tail)
            source, keep, tail = RewrittenFile(file, parts, check=self._check), 0, ()
        if target is not None:
            return write_new_with_material(source, keep, tail, serialized(renewed.external), target)
        with file.exclusive():
            # The material first.  References stay, so it opens the old data file and the new one.
            if renewed.external:
                renew_material(file, renewed.old_external, renewed.external)
            return replace_tail(source, keep, tail) if renewed.changes_footer else file.size

    def _check(self, written: InputFile) -> None:
        """Open the keys of the new file by its KMS, as a reader will, and read its pages."""
        check_written(written, file_keys(self.resolver, written), None)

    def _outside(self, file: InputFile, tail: Tail, keys: FileKeys) -> OutsideKeys | None:
        """Return the keys of a file that are stored outside.

        Return None if its footer must be opened.
        """
        # A keyring costs no call, so the footer is opened, and what it says is checked.
        if isinstance(self.resolver.kms, Keyring):
            return None
        # A KMS that gives keys out to renew them is not spared anything by a closed footer.
        if not self.rewrapper.moves and not self.rewrapper.renews_inside:
            return None
        # Whether the old KMS wrapped a key shows only when it is unwrapped.
        if self.rewrapper.leaves_kms:
            return None
        found = outside_keys(file, tail, keys)
        if found is None or self.rewrapper.moves:
            return found
        footer = found.footer
        wanted = None if footer is None else self._wanted(file.path, footer, found.protection)
        policy = self.policy_of(file.path)
        return found if policy is not None and found.fits(policy, wanted) else None

    def _rotate_outside(
        self, file: InputFile, outside: OutsideKeys, target: str | None, started: float
    ) -> RekeyedFile:
        renewed = {
            reference: self.rewrapper.renewed(material, None)
            for reference, material in outside.materials.items()
        }
        changes = renewed != outside.materials
        if changes and not self.dry_run:
            if target is None:
                with file.exclusive():
                    renew_material(file, outside.materials, renewed)
            else:
                write_new_with_material(file, file.size, (), serialized(renewed), target)
        return outside.report(file, renewed, changes=changes, started=started)

    def _wanted(self, path: str, footer: Footer, before: Protection) -> Protection | None:
        """Return the protection that the policy wants, or None without a policy.

        Raises PolicyError for a file that is encrypted in another way.
        """
        if self.policy is None or self.rewrapper.moves:
            return None
        wanted = wanted_protection(self.policy_of(path), footer.leaves)
        if before.footer_mode is not wanted.footer_mode:
            raise _otherwise(
                f"the policy says that the footer is {wanted.footer_mode}, but it is "
                f"{before.footer_mode}"
            )
        columns = []
        for leaf, old, new in zip(footer.leaves, before.columns, wanted.columns, strict=True):
            said, found = _kind(new), _kind(old)
            # Nobody knows how a column should be that no schema of its table names.
            is_kept = said != found and is_unknown(self.policy, leaf.path)
            if said != found and not is_kept:
                raise _otherwise(
                    f"the policy says that column {leaf.name} is {said}, but it is {found}"
                )
            columns.append(old if is_kept else new)
        return replace(wanted, columns=tuple(columns))


def _kind(use: KeyUse | None) -> str:
    if use is None:
        return "in clear"
    return "under the footer's key" if use.is_footer_key else "under a key of its own"


def _otherwise(what: str) -> PolicyError:
    return PolicyError(
        what,
        hint="rotate changes only master keys; use reencrypt to bring files under another policy",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _RenewedFile:
    """New key metadata by their old bytes, and the new content of the key material file."""

    metadata: Mapping[bytes, bytes]
    external: Mapping[str, KeyMaterial]
    old_external: Mapping[str, KeyMaterial]
    master_keys: Mapping[bytes, str]

    @property
    def changes(self) -> bool:
        """Whether anything changes."""
        return self.changes_footer or self.external != self.old_external

    @property
    def changes_footer(self) -> bool:
        """Whether the data file itself changes."""
        return any(old != new for old, new in self.metadata.items())


def _renewed_file(footer: Footer, rewrapper: Rewrapper, wanted: Protection | None) -> _RenewedFile:
    metadata: dict[bytes, bytes] = {}
    names: dict[bytes, str] = {}
    external: dict[str, KeyMaterial] = {}
    old_external: dict[str, KeyMaterial] = {}
    materials = {stored: _material(footer.keys, stored) for stored in key_metadata_of(footer)}
    of_footer = materials.get(footer.tail.key_metadata or b"")
    for stored, name in _key_metadata(footer, wanted):
        material = materials[stored]
        if of_footer is not None and _have_one_kek(material, of_footer):
            # The KMS has given this KEK out, because the footer had to be opened.
            renewed = rewrapper.under_new_kek(material, name, footer.keys.footer_key(stored).key)
        else:
            renewed = rewrapper.renewed(material, name)
        names[stored] = renewed.master_key_id
        reference = reference_of(stored)
        if reference is not None:
            old_external[reference] = material
            external[reference] = renewed
            metadata[stored] = stored
        else:
            # Material that stays keeps its bytes, because other writers spell their JSON in other
            # ways.
            metadata[stored] = stored if renewed == material else renewed.serialize()
    return _RenewedFile(
        metadata=metadata,
        external=external,
        old_external=old_external,
        master_keys=names,
    )


def _have_one_kek(one: KeyMaterial, other: KeyMaterial) -> bool:
    return one.kek is not None and (one.kek, one.master_key_id) == (
        other.kek,
        other.master_key_id,
    )


def _material(keys: FileKeys, stored: bytes) -> KeyMaterial:
    material = keys.material(stored)
    if material is None:
        raise UnsupportedFeatureError(
            "a key of the file is not wrapped by a KMS: its key metadata is a name of its own"
        )
    return material


def _key_metadata(footer: Footer, wanted: Protection | None) -> Iterator[tuple[bytes, str | None]]:
    """Yield each piece of key metadata once, with the master key that the policy wants for it."""
    for stored, ordinal in key_metadata_of(footer).items():
        use = None
        if wanted is not None:
            use = wanted.footer if ordinal is None else wanted.columns[ordinal]
        yield stored, None if use is None else use.name


def _parts(keep: int, tail: Sequence[bytes]) -> list[bytes | OldRange]:
    return [OldRange(0, keep), *tail]


def _new_content(
    file: InputFile, footer: Footer, renewed: _RenewedFile
) -> tuple[InputFile, int, Sequence[bytes]]:
    """Return the source of the new file, the number of its bytes to keep, and the tail."""
    if not renewed.changes_footer:
        return file, file.size, ()
    tail = footer.tail
    end = seal_footer(
        renewed_metadata(footer, renewed.metadata),
        tail.mode,
        key=footer.key,
        file_aad=footer.file_aad,
        # The data keys and aad_file_unique stay, so the tags of all pages still hold (Encryption.md
        # 4.4).
        crypto=renewed_crypto(tail, renewed.metadata),
    )
    if reaches_into_footer(footer):
        raise FormatError(
            "a page, a page index or a Bloom filter is inside the footer, which a rotation writes "
            "anew"
        )
    superseded = footers_to_blank(file, footer)
    # Everything before the footer is kept as it lies.
    if not superseded:
        return file, tail.offset, [end]
    # Offsets stay, so the footers that appends have left behind become zeros.
    return RewrittenFile(file, [*_blanked(superseded, tail.offset), end]), 0, ()


def _blanked(extents: Iterable[tuple[int, int]], end: int) -> Iterator[bytes | OldRange]:
    """Yield the old file up to ``end``, with zeros for ``extents``."""
    position = 0
    for start, stop in extents:
        yield OldRange(position, start - position)
        yield bytes(stop - start)
        position = stop
    yield OldRange(position, end - position)


def _after(footer: Footer, before: Protection, master_keys: Mapping[bytes, str]) -> Protection:
    """Return the protection after the rotation.

    ``master_keys`` maps old key metadata to the new master key.
    """
    footer_key = master_keys.get(footer.tail.key_metadata or b"")
    columns = list(before.columns)
    # The first row group is enough: `found_protection` has refused files where they differ.
    for column, chunk in enumerate(footer.column_chunks[0] if footer.column_chunks else ()):
        crypto, use = chunk.crypto_metadata, columns[column]
        if crypto is None or use is None:
            continue
        own = crypto.ENCRYPTION_WITH_COLUMN_KEY
        name = footer_key if own is None else master_keys.get(own.key_metadata or b"")
        columns[column] = replace(use, name=name)
    return replace(before, footer=KeyUse(name=footer_key), columns=tuple(columns))
