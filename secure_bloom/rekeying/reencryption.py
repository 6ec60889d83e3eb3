"""Bring files from any protection to any other: no page is decoded or decompressed.

    magic | pages, filters, indexes, each decrypted and encrypted again | footer

A file that is already as the policy says is left unchanged, so an interrupted run can be repeated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from secure_bloom.bloom.stored import filter_extent
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import FileChangedError, SecureBloomError, located
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import MAGIC, MAGIC_ENCRYPTED, Tail, read_tail
from secure_bloom.parquet.footer.opened import Footer, read_unverified, unlock, unlock_to_read
from secure_bloom.parquet.key_material_files import changed_before_missing, file_keys
from secure_bloom.parquet.key_material_writes import (
    remove_leftovers,
    replace_with_material,
    tidy_material,
    write_new_with_material,
)
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.parquet.schema import Leaf
from secure_bloom.rekeying.file_work import RekeyWork, check_written, keys_by_place
from secure_bloom.rekeying.key_files import (
    key_metadata_of,
    leftovers,
    named_references,
    shown_record_keys,
)
from secure_bloom.rekeying.new_footer import FooterChange
from secure_bloom.rekeying.new_keys import KeyMaker, NewFileKeys, TwoKms, new_file_keys
from secure_bloom.rekeying.protection import (
    Protection,
    check_lookalikes,
    found_protection,
    wanted_protection,
    wraps_as_wanted,
)
from secure_bloom.rekeying.regions import regions
from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyStatus, failed_file, rekeyed_file
from secure_bloom.rekeying.transfer import Transfer
from secure_bloom.runs.work import FileTask, Steps, new_path
from secure_bloom.storage import InputFile, open_in_table
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.rewritten_file import OldRange, RewrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Reencryption(RekeyWork):
    """One run: where keys of the old files come from, and how the new files are protected.

    Without a ``policy`` the new files are in clear. With ``two_kms``, a file is also changed if
    the old KMS wrapped one of its keys. With ``only_changes``, a target is written only if
    something changes. ``names`` maps the table's column names to those of its files, if they
    differ.
    """

    resolver: KeyResolver
    policy: KeyPolicy | None
    maker: KeyMaker | None
    two_kms: TwoKms | None = None
    new_data_keys: bool = False
    dry_run: bool = False
    only_changes: bool = False
    verify: bool = False
    names: ColumnMapping | None = None
    needs_columns: bool = False
    #: New keys that the KMS has wrapped for files whose turn comes later.
    _ready: dict[str, tuple[Protection, NewFileKeys]] = field(default_factory=dict, repr=False)

    def reencrypt(self, path: str, target: str | None) -> RekeyedFile:
        """Process one file, in place or to ``target``.

        Errors of this package become a failed report.
        """
        started = time.perf_counter()
        try:
            with located(path=path):
                report = self._tried(path, target)
        except SecureBloomError as error:
            return failed_file(path, error, time.perf_counter() - started)
        return report

    @property
    def asks_for_each_key(self) -> bool:
        """Whether a KMS wraps each new key itself, so that many calls run in parallel."""
        return self.maker is not None and self.maker.asks_for_each_key

    def leaves(self, file: InputFile) -> Sequence[Leaf]:
        """Return the columns of a file."""
        return unlock(read_tail(file), file_keys(self.resolver, file)).leaves

    def ask(self, path: str, target: str | None) -> None:
        """Make the calls to the KMS that one file needs, and keep the answers."""
        with open_in_table(path, self.names) as file:
            # Only calls to the KMS are made here.  Whoever then reads the file checks the
            # signature.
            keys = file_keys(self.resolver, file)
            footer = unlock(read_tail(file), keys, allow_unverified=True)
            wanted = wanted_protection(self.policy_of(path), footer.leaves)
            before = found_protection(footer)
            if self._is_left(target) and self._is_done(footer, before, wanted):
                return
            # Opening the chunks unwraps the keys of the columns.
            _chunks(footer)
            made = None if self.dry_run else self._new_keys(wanted)
            if made is not None:
                self._ready[path] = wanted, made

    def prefetch(self, targets: Mapping[str, str | None]) -> KeyPrefetch:
        """Return an object that makes the calls to the KMS for later files ahead of time."""
        return KeyPrefetch(self.resolver, lambda path: self.ask(path, targets[path]), self.wrapped)

    def process(self, task: FileTask, steps: Steps) -> RekeyedFile:
        """Process one file, in place or to the task's target."""
        del steps
        report = self.reencrypt(task.path, task.target)
        if self.dry_run:
            return report
        return replace(report, new_path=new_path(task, report, is_copied=not self.only_changes))

    def wrapped(self) -> int:
        """Return the number of new keys that the KMS has wrapped."""
        return 0 if self.maker is None else self.maker.wrapped

    def _tried(self, path: str, target: str | None) -> RekeyedFile:
        """Process one file, and once more if another writer was faster."""
        try:
            return self._reencrypt(path, target)
        # One more try and not many: a user who loses twice has a busy neighbour, and gets an error.
        except FileChangedError:
            return self._reencrypt(path, target)

    def _reencrypt(self, path: str, target: str | None) -> RekeyedFile:
        started = time.perf_counter()
        with open_in_table(path, self.names) as file, changed_before_missing(file):
            keys = file_keys(self.resolver, file)
            footer = self._opened(read_tail(file), keys)
            before = found_protection(footer)
            policy = self.policy_of(path)
            check_lookalikes(policy, [leaf.path for leaf in footer.leaves])
            wanted = wanted_protection(policy, footer.leaves)
            report = partial(rekeyed_file, file, footer.leaves, before=before, started=started)
            if self._is_left(target) and self._is_done(footer, before, wanted):
                if target is None and not self.dry_run:
                    tidy_material(file, named_references(footer))
                    remove_leftovers(path)
                return report("unchanged", after=before, size=file.size)
            # Found before the write.  Afterwards nothing shows which index beside the file
            # belongs to the old content.
            notes = () if target is not None else tuple(leftovers(file, wanted))
            size = file.size
            if not self.dry_run:
                size, left = self._write(file, footer, wanted, target)
                notes += left
            status: RekeyStatus = "decrypted" if wanted.is_plain else "reencrypted"
            done = report(status, after=wanted, size=size)
            return replace(done, notes=notes, verified=footer.is_verified)

    def _opened(self, tail: Tail, keys: FileKeys) -> Footer:
        """Return the footer. If the file is to be rewritten, the footer is verified."""
        if self.policy is None and self.only_changes and tail.algorithm is None:
            # In clear already, in a table whose files are written in clear: nothing is read of it.
            return read_unverified(tail)
        # Readers will take bytes that are sealed anew for genuine, so they must be genuine now.
        return unlock_to_read(tail, keys) if self.policy is None else unlock(tail, keys)

    def _is_left(self, target: str | None) -> bool:
        """Return whether a file that needs no change is left alone, and not copied."""
        return target is None or self.only_changes

    def _is_done(self, footer: Footer, before: Protection, wanted: Protection) -> bool:
        if self.new_data_keys or before != wanted or self._is_of_old_kms(footer):
            return False
        # Single wrapping for double, or keys of another size, are another protection to the policy,
        # although the master keys are the same.
        return self.policy is None or wraps_as_wanted(footer, self.policy.encryption)

    def _is_of_old_kms(self, footer: Footer) -> bool:
        """Return whether the old KMS wrapped a key of the file, under any name."""
        if self.two_kms is None:
            return False
        materials = map(footer.keys.material, key_metadata_of(footer))
        return any(it is not None and self.two_kms.has_old(it) for it in materials)

    def _write(
        self,
        file: InputFile,
        footer: Footer,
        wanted: Protection,
        target: str | None,
    ) -> tuple[int, tuple[str, ...]]:
        """Return the size of the new file, and notes on what could not be removed afterwards."""
        # Taken out, because keys and AAD are of one writing: a second try must not seal with them
        # again.
        ready, new_keys = self._ready.pop(file.path, (None, None))
        # Another writer may have given the file other columns since.
        if new_keys is None or ready != wanted:
            new_keys = self._new_keys(wanted)
        policy = self.policy_of(file.path)
        drop: frozenset[str] = frozenset() if policy is None else policy.drop_metadata
        content = _NewFile(
            file=file,
            footer=footer,
            chunks=_chunks(footer),
            mode=wanted.footer_mode,
            keys=new_keys,
            drop_metadata=drop | shown_record_keys(footer, wanted),
        )
        external = {} if new_keys is None else new_keys.external
        check = partial(
            check_written,
            names=self.names,
            keys=keys_by_place(new_keys, footer.leaves),
            columns=None if self.verify else content.copied(),
        )
        rewritten = RewrittenFile(file, content.parts(), check=check)
        if target is not None and self.only_changes:
            # In a table's folder a name must be new: a file that the log may know is never
            # replaced.
            return write_new_with_material(rewritten, 0, (), external, target), ()
        return replace_with_material(rewritten, 0, (), external, output=target)

    def _new_keys(self, wanted: Protection) -> NewFileKeys | None:
        """Return keys for one file, or None for a file in clear."""
        if self.policy is None or self.maker is None or wanted.is_plain:
            return None
        return new_file_keys(self.maker, wanted, self.policy.encryption)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewFile:
    """A file under its new protection, computed while it is written."""

    file: InputFile
    footer: Footer
    chunks: tuple[tuple[Chunk, ...], ...]
    mode: FooterMode
    keys: NewFileKeys | None
    drop_metadata: frozenset[str]

    def copied(self) -> list[int]:
        """Return the columns whose pages are copied unchanged."""
        keys = self.keys
        return [
            column
            for column, chunk in enumerate(self.chunks[0] if self.chunks else ())
            if chunk.cipher is None and (keys is None or keys.sealed_with(column) is None)
        ]

    def parts(self) -> Iterator[bytes | OldRange]:
        """Yield all bytes of the new file."""
        # The file begins with the magic that it ends with: readers learn from it whether the footer
        # is encrypted (Encryption.md 5.4).
        yield MAGIC_ENCRYPTED if self.mode is FooterMode.ENCRYPTED else MAGIC
        found = regions(
            (
                (column, chunk, filter_extent(self.file, chunk))
                for chunks in self.chunks
                for column, chunk in enumerate(chunks)
            ),
            self.footer.tail.offset,
        )
        keys = self.keys
        transfer = Transfer(
            self.file,
            found,
            lambda row_group, column: None if keys is None else keys.cipher(row_group, column),
            len(MAGIC),
        )
        yield from transfer.parts()
        # Last, because it has the offsets of everything.
        yield FooterChange(
            chunks=self.chunks,
            places=transfer.places,
            mode=self.mode,
            keys=keys,
            drop_metadata=self.drop_metadata,
        ).end_of_file(self.footer)


def _chunks(footer: Footer) -> tuple[tuple[Chunk, ...], ...]:
    """Return all chunks, opened with their keys."""
    return tuple(
        tuple(footer.chunk(row_group, column) for column in range(len(footer.leaves)))
        for row_group in range(len(footer.row_groups))
    )
