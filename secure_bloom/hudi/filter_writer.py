"""Add Hudi's record key filter to base files: built from the key column, stored in the footer.

Only the footer is written. No data page is changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any

import pyarrow as pa

from secure_bloom.adding.free_space import reclaimed_end
from secure_bloom.adding.report import AddReport, FileAddReport, FilterReport, file_notes
from secure_bloom.adding.rewrite import FileRewriter, WriteMode
from secure_bloom.adding.rewrite_plan import Mapper, RewritePlan, new_tail
from secure_bloom.calling.arguments import check_fields, checked_arguments
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.file_keys import FileKeys
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.hudi.key_column import (
    decoded_size,
    key_chunks,
    key_ordinal,
    key_range,
    packed,
    read_keys,
)
from secure_bloom.hudi.record_keys.bloom_filter import (
    INT_MAX,
    HudiBloomFilter,
    SimpleBloomFilter,
    header_for,
)
from secure_bloom.hudi.record_keys.dynamic import DynamicBoundedBloomFilter, require_bound
from secure_bloom.hudi.record_keys.footer_entry import (
    FILTER_TYPES,
    RECORD_KEY,
    RecordKeyEntry,
    read_entry,
    with_entry,
)
from secure_bloom.hudi.record_keys.packed_keys import HashType, PackedKeys
from secure_bloom.lakes.plain_files import FilesTarget, summary_notes
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock
from secure_bloom.parquet.footer.seal import close_footer
from secure_bloom.reports.text import counted, named_columns
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.runs.column_check import require_in_one
from secure_bloom.runs.loop import run
from secure_bloom.runs.runner import LocalRunner
from secure_bloom.storage import InputFile
from secure_bloom.storage.paths import Paths
from secure_bloom.storage.storage_options import with_storage_options


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeyFilterOptions:
    """Options of a file's filter. All defaults except the size are Hudi's own defaults.

    A filter, or each row of a dynamic filter, is sized for ``num_entries`` keys. By default this is
    the number of keys in the file; Hudi's default is 60,000 for any file. ``max_entries`` is the
    number of keys for which all rows of a dynamic filter together are sized. Raises PolicyError for
    invalid values.
    """

    type_code: str = DynamicBoundedBloomFilter.TYPE_CODE
    num_entries: int | None = None
    fpp: float = 1e-9
    max_entries: int = 100_000

    def __post_init__(self) -> None:
        check_fields(self)
        if self.type_code not in FILTER_TYPES:
            raise PolicyError(
                f"type_code is {self.type_code!r}, it must be one of: {', '.join(FILTER_TYPES)}"
            )
        # Called for its errors alone: a size that no filter can have is refused before any file is.
        header_for(1 if self.num_entries is None else self.num_entries, self.fpp, HashType.MURMUR)
        require_bound(self.max_entries)

    @checked_arguments
    def empty_filter(self, keys: int) -> HudiBloomFilter:
        """Return an empty filter for a file with this number of keys."""
        num_entries = max(keys, 1) if self.num_entries is None else self.num_entries
        if self.type_code == SimpleBloomFilter.TYPE_CODE:
            return SimpleBloomFilter(num_entries, self.fpp)
        return DynamicBoundedBloomFilter(num_entries, self.fpp, self.max_entries)


@checked_arguments
@with_storage_options
def add_record_key_filter(
    paths: Paths,
    *,
    column: str = RECORD_KEY,
    options: RecordKeyFilterOptions | None = None,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    in_place: bool = False,
    output: str | PathLike[str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
    allow_unprotected: bool = False,
    allow_clear_entry: bool = False,
    jobs: int | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> AddReport:
    """Add Hudi's Bloom filter and key range of ``column`` to base files that have none.

    A file that fails is reported and does not stop the others.  The report's ``notes`` say who can
    learn from the new entries what was hidden before.

    Args:
        paths: Files, folders or globs.
        column: The key column.
        options: Type and size of the filters.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        in_place: Append to each file instead of replacing it.
        output: Folder for the new files. The old files stay.
        replace: Replace existing filters. Without it, a file with a filter of another column fails,
            because a file can have one filter only.
        dry_run: Write nothing, but report what a run would do.
        allow_unprotected: Accept files that are protected less than the policy says.
        allow_clear_entry: Write the filter and the key range of an encrypted column into a signed
            footer too, where everyone can read them.
        jobs: Number of cores; by default all.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with a record for each file.  A file fails whose key column is encrypted and whose
        footer is not, unless ``allow_clear_entry`` is given.

    Raises:
        PolicyError: The request cannot be met.  No file was written.
        UnsupportedFeatureError: The files are those of a live Hudi table, whose log records their
            sizes.
    """
    open_rewriter = partial(
        _rewriter,
        Access.of(keys, policy, allow_unprotected=allow_unprotected),
        mode=WriteMode(in_place=in_place, dry_run=dry_run),
        column=column,
        options=options or RecordKeyFilterOptions(),
        replace=replace,
        allow_clear_entry=allow_clear_entry,
    )
    target = FilesTarget(paths=paths, in_place=in_place, output=output)
    done = run(open_rewriter, target, LocalRunner(jobs=jobs))
    summaries = summary_notes(done.changed, dry_run=dry_run)
    taken = target.notes(dry_run=dry_run)
    notes = (*_notes(done.reports), *file_notes(done.reports), *summaries, *taken)
    return AddReport(files=done.reports, notes=notes, dry_run=dry_run, seconds=done.seconds)


def _rewriter(access: Access, **settings: Any) -> RecordKeyRewriter:
    return RecordKeyRewriter(resolver=access.resolver(), **settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeyRewriter(FileRewriter):
    """Adds the filter of one key column."""

    column: str
    options: RecordKeyFilterOptions = field(default_factory=RecordKeyFilterOptions)
    replace: bool = False
    allow_clear_entry: bool = False

    def check(self, files: Sequence[str]) -> int | None:
        """Return 0. Raises PolicyError if no file has the key column."""
        require_in_one(files, self.resolver, lambda footer: key_ordinal(footer, self.column))
        return 0

    def plan(self, file: InputFile, keys: FileKeys, _run: Mapper, /) -> RewritePlan:
        """Return the plan of a file with the filter in its footer.

        Plans no change if the file has the filter already.
        """
        # unlock, not unlock_to_read: a footer with an unchecked signature must not be signed anew.
        footer = unlock(read_tail(file), keys)
        old = self._old_entry(footer)
        if old is not None and old.filter is not None and not self.replace:
            kept = self._report(footer, old.filter, action="kept", reason="it was there already")
            return RewritePlan(keep=file.size, tail=(), filters=(kept,))
        chunks = list(key_chunks(footer, self.column))
        self._check_protection(file.path, footer, chunks)
        # All keys are held before the filter is made: its size depends on how many there are.
        found: list[pa.Array] = []
        held = DecodedBytes("the set of record keys")
        for array in (array for chunk in chunks for array in read_keys(file, chunk)):
            held.add(decoded_size(array))
            found.append(array)
        # Packed only when the size of all is known, because a dictionary may have few long texts.
        parts = [packed(array) for array in found]
        built = self.options.empty_filter(sum(map(len, parts)))
        for part in parts:
            built.insert_packed(part)
        plain = with_entry(footer, built, key_range(parts), column=self.column)
        # An append keeps the old footer too: a crash can then cut back to it.
        keep = file.size if self.mode.in_place else reclaimed_end(file, footer, {})
        append = keep == file.size
        report = self._built_report(footer, chunks, built, old, parts)
        tail = new_tail(close_footer(footer, plain), keep, append=append)
        return RewritePlan(keep=keep, tail=tail, filters=(report,))

    def _check_protection(self, path: str, footer: Footer, chunks: Iterable[Chunk]) -> None:
        """Raise PolicyError if the footer would show the keys of an encrypted column."""
        clear = {chunk.leaf.path for chunk in chunks if chunk.cipher is None}
        footer.keys.trust.check_shown(path, clear, [leaf.path for leaf in footer.leaves])
        is_open = footer.tail.mode is not FooterMode.ENCRYPTED
        if is_open and not self.allow_clear_entry and any(chunk.cipher for chunk in chunks):
            raise PolicyError(
                "the key column is encrypted, and the footer is not: it would show anyone the "
                "smallest and the largest record key, and anyone could test for any other key",
                hint="secure-bloom add puts an encrypted filter into the file; "
                "allow_clear_entry (--allow-clear-entry) writes this filter all the same",
                column=self.column,
            )

    def _old_entry(self, footer: Footer) -> RecordKeyEntry | None:
        """Return the entry of the existing filter, or None.

        A damaged filter, or a filter of another column, is an error unless it is to be replaced.
        """
        try:
            entry = read_entry(footer)
            if entry is None or entry.filter is None:
                return None
        except SecureBloomError as error:
            if self.replace:
                return None
            error.hint = error.hint or "a damaged filter can be built anew: --replace-filters"
            raise
        if entry.column != self.column and not self.replace:
            raise _of_another_column(entry)
        return entry

    def _built_report(
        self,
        footer: Footer,
        chunks: list[Chunk],
        built: HudiBloomFilter,
        old: RecordKeyEntry | None,
        parts: list[PackedKeys],
    ) -> FilterReport:
        values = sum(map(len, parts))
        # A file without keys has nothing to hide.
        exposure = _exposure(footer, chunks) if values else ()
        remarks = [*exposure, *self._taken_for_another(footer), *self._remarks(built, old, parts)]
        return self._report(
            footer,
            built,
            values=values,
            source="pages",
            action="added" if old is None else "replaced",
            reason="; ".join(remarks) or None,
        )

    def _taken_for_another(self, footer: Footer) -> Iterator[str]:
        has_record_key = any(leaf.path == (RECORD_KEY,) for leaf in footer.leaves)
        if self.column != RECORD_KEY and has_record_key:
            yield (
                f"the filter is of column {self.column}, and Hudi takes it for one of "
                f"{RECORD_KEY}: it would not find records of the file"
            )

    def _remarks(
        self, built: HudiBloomFilter, old: RecordKeyEntry | None, parts: list[PackedKeys]
    ) -> Iterator[str]:
        missed = 0 if old is None else self._missed(old, parts)
        if missed:
            keys = counted(missed, "key")
            yield f"the old filter missed {keys} of the file: lookups did not find them"
        # Without num_entries the filter was made for as many keys as there are.
        held = built.rows * (self.options.num_entries or INT_MAX)
        if sum(map(len, parts)) > held:
            yield f"the filter is for {counted(held, 'key')}, the file has more: raise num_entries"

    def _missed(self, old: RecordKeyEntry, parts: list[PackedKeys]) -> int:
        """Return how many keys of the column are not in its old filter."""
        if old.filter is None or old.column != self.column:
            return 0
        return sum(int((~old.filter.check_packed(part)).sum()) for part in parts)

    def _report(
        self, footer: Footer, bloom_filter: HudiBloomFilter, **fields: object
    ) -> FilterReport:
        encrypted = footer.tail.mode is FooterMode.ENCRYPTED
        return FilterReport(
            row_group=None,
            column=self.column,
            bytes=bloom_filter.byte_count,
            fpp_requested=self.options.fpp,
            fpp=bloom_filter.fpp(),
            encrypted=encrypted,
            key=footer.key.name if encrypted and footer.key is not None else None,
            **fields,  # type: ignore[arg-type]
        )


def _of_another_column(entry: RecordKeyEntry) -> PolicyError:
    if entry.column is None:
        said = f"the filter there does not say which column it is of, and there is no {RECORD_KEY}"
    else:
        said = f"the filter there is of {named_columns((entry.column,))}"
    hint = "a file has one record key filter: --replace-filters builds it anew of this column"
    return PolicyError(said, hint=hint)


def _exposure(footer: Footer, chunks: Iterable[Chunk]) -> Iterator[str]:
    """Yield remarks that say who can learn from the new entries what was hidden before."""
    column_keys = {None if chunk.cipher is None else chunk.cipher.key for chunk in chunks}
    if footer.tail.mode is not FooterMode.ENCRYPTED:
        hidden = "; the key column is encrypted" if column_keys - {None} else ""
        yield (
            "a plaintext footer shows anyone the smallest and the largest record key, and answers "
            f"for any other whether it may be there{hidden}"
        )
    elif column_keys - {None, footer.key}:
        yield (
            "whoever has the footer key alone can read the smallest and the largest record key, "
            "and ask for any other whether it may be there; the key column has its own key"
        )


def _notes(reports: Iterable[FileAddReport]) -> Iterator[str]:
    """Yield each remark once, with the first file that it is about."""
    places: dict[str, list[str]] = defaultdict(list)
    for report in reports:
        for filter_ in report.filters:
            if report.changes and filter_.reason is not None:
                places[filter_.reason].append(report.path)
    for reason, paths in places.items():
        others = f" and {counted(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
        yield f"{paths[0]}{others}: {reason}"
