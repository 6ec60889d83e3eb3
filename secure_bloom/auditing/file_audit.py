"""Audit one file: open it as far as the keys allow, then run every check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from secure_bloom.auditing.checks import (
    classification,
    clear_structures,
    column_filters,
    column_keys,
    column_names,
    contradictions,
    leaks,
    paimon_indexes,
    unreferenced_bytes,
)
from secure_bloom.auditing.checks.mixed_protection import Protection, protection_of
from secure_bloom.auditing.checks.subjects import (
    AuditRun,
    ChunkSubject,
    FileSubject,
    Findings,
    FooterSubject,
)
from secure_bloom.auditing.failures import (
    error_message,
    failure,
    file_failure,
    rule_of,
    run_checks,
    with_causes,
)
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules import Rule
from secure_bloom.auditing.rules.unchecked_rules import (
    UNCHECKED_COLUMN,
    UNCHECKED_FILE,
    UNCHECKED_FOOTER,
    UNCHECKED_SIGNATURE,
)
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import KeyMisfitError
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    KmsUnavailableError,
    SecureBloomError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import TRAILER_SIZE, read_tail
from secure_bloom.parquet.footer.opened import Footer, read_unverified, unlock
from secure_bloom.parquet.key_material_files import file_keys, read_material
from secure_bloom.running.memory_budget import MemoryShare
from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.inputs import CountedFile

# Loaded to search for values alone.
if TYPE_CHECKING:
    from secure_bloom.auditing.checks.traced_values import TracedValues

#: Room for the end of the file, and for the heads of parts, which are read before the parts.
_ROOM = 1024 * 1024
#: Once gaps, indexes and filters; once sampled pages; twice the pages of a chunk whose zeros are
#: looked for, and those whose values explain a filter.  With ``check_values`` columns in clear,
#: headers and gaps are read twice more, and pages of encrypted columns, of which one at the end of
#: what was read ahead is read again.
_TIMES = 11


class MeteredFile(CountedFile):
    """A file of which only a limited number of bytes is read, counted over all reads.

    A hostile footer may point a thousand times at the same 128 MiB.  The parts of a sound file do
    not overlap, so reading each of them once reads no more than the file has.
    """

    def _read(self, offset: int, length: int) -> bytes:
        if self.bytes_read + length > _TIMES * self.size + _ROOM:
            raise FormatError("parts of the file overlap: together they are larger than the file")
        return super()._read(offset, length)


_FILE_CHECKS: tuple[Callable[[FileSubject], Findings], ...] = (
    column_keys.check_footer_mode,
    column_keys.check_algorithm,
    column_keys.check_footer_key,
    column_keys.check_key_texts,
    clear_structures.check_part_in_clear,
    contradictions.check_checksums,
)
_FOOTER_CHECKS: tuple[Callable[[FooterSubject], Findings], ...] = (
    contradictions.check_footer_counts,
    contradictions.check_overlaps,
    contradictions.check_page_indexes,
    column_keys.check_footer_key_length,
    column_keys.check_shared_keys,
    column_keys.check_sealed_key_texts,
    leaks.check_hudi,
    leaks.check_hudi_filter,
    leaks.check_schemas,
    clear_structures.check_sealed_part,
    unreferenced_bytes.check_gaps,
    column_filters.check_doubts,
    column_names.check_spelling,
    column_names.check_older_names,
    paimon_indexes.check_index_bits,
    classification.check_classified,
)
_CHUNK_CHECKS: tuple[Callable[[ChunkSubject], Findings], ...] = (
    column_keys.check_column_key,
    column_keys.check_column_key_length,
    leaks.check_statistics,
    leaks.check_own_texts,
    leaks.check_page_indexes,
    leaks.check_pages,
    column_filters.check_filter,
    clear_structures.check_headers,
    contradictions.check_counts,
    contradictions.check_sizes,
    contradictions.check_statistics,
    contradictions.check_encodings,
    contradictions.check_pages,
)
#: A footer of 10,000 column chunks has a few MiB.  A larger one than this would take minutes.
_MOST_FOOTER = 64 * 1024 * 1024
#: A hostile footer could have millions of findings.
_MOST_FINDINGS = 10_000
#: Bytes of footers that stay in memory while the columns of all files are read.
_KEPT_FOOTERS = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAudit:
    """The result of one file.

    ``columns`` are its leaves by their dotted names. ``columns_checked`` is how many of them were
    checked completely.  ``protection`` says how the file is protected, if it breaks no rule about
    keys.  ``traced`` has the words of sensitive columns that it shows, to be confirmed.  ``bytes``
    is the size of the file, and ``filters`` the number of the Bloom filters that its footer names.
    """

    path: str
    findings: tuple[Finding, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns_checked: int = 0
    protection: Protection | None = None
    traced: tuple[TracedValues, ...] = ()
    bytes: int = 0
    filters: int = 0


def audit_file(
    path: str,
    run: AuditRun,
    open_file: Callable[[str], InputFile] = open_input,
) -> FileAudit:
    """Audit one file. A KMS outage is raised, every other error becomes a finding."""
    try:
        with located(path=path), open_file(path) as file:
            return _audit(_subject(MeteredFile(file), run.for_file(path)))
    except Exception as error:
        findings: tuple[Finding, ...] = (file_failure(path, error),)
    # A file of no table of the policy, or one that is no Parquet file, may be a copy of values.
    traced: tuple[TracedValues, ...] = ()
    try:
        with suppress(SecureBloomError), open_file(path) as file:
            traced = _traced_whole(file, run)
    except Exception as error:
        # Not an error of the file, which is a finding already: the search itself failed.
        findings = tuple(dict.fromkeys((*findings, file_failure(path, error))))
    return FileAudit(path=path, findings=findings, traced=traced)


class SensitiveChunks:
    """The chunks of sensitive columns in files that can be read, by column.

    Each file is asked for each column, so footers are kept, as far as they fit into memory.
    """

    def __init__(
        self,
        paths: Iterable[str],
        run: AuditRun,
        *,
        open_file: Callable[[str], InputFile] = open_input,
    ) -> None:
        self._paths = tuple(paths)
        self._run = run
        self._open_file = open_file
        self._kept: dict[str, _Sensitive | None] = {}
        self._room = MemoryShare(_KEPT_FOOTERS)
        #: The files and columns whose values could not be read, with the reasons.
        self.unread: dict[tuple[str, str | None], str] = {}

    def columns(self) -> list[str]:
        """Return the names of all sensitive columns, in the order of the files."""
        found = (self._of(path) for path in self._paths)
        return list(dict.fromkeys(name for it in found if it is not None for name in it.places))

    def of(self, column: str) -> Iterator[tuple[InputFile, Chunk]]:
        """Yield the chunks of a column that can be opened, each with its open file."""
        for path in self._paths:
            found = self._of(path)
            if found is None or column not in found.places:
                continue
            with self._noted(path, column), located(path=path), self._open_file(path) as file:
                for row_group, ordinal in found.places[column]:
                    chunk, _ = _open_chunk(found.footer, row_group, ordinal)
                    if chunk is not None:
                        yield file, chunk

    def _of(self, path: str) -> _Sensitive | None:
        """Return the sensitive columns of a file, or None if it cannot be read."""
        if path in self._kept:
            return self._kept[path]
        found = None
        with self._noted(path), located(path=path), self._open_file(path) as file:
            subject = _subject(file, self._run.for_file(path), lambda: self._material(path))
            footer, _ = _unlocked(subject)
            if footer is not None:
                found = _Sensitive(footer, _sensitive_places(subject, footer))
        if found is None or self._room.take(found.footer.memory):
            self._kept[path] = found
        return found

    @contextmanager
    def _noted(self, path: str, column: str | None = None) -> Iterator[None]:
        """Suppress every error in the block except KMS errors, and note the reason."""
        try:
            yield
        except KmsUnavailableError:
            raise
        except Exception as error:
            self.unread[path, column] = error_message(error)

    def _material(self, path: str) -> Mapping[str, str]:
        # A kept footer asks for it after its file was closed.
        with self._open_file(path) as file:
            return read_material(file)


class _Sensitive(NamedTuple):
    """A footer, and the row groups and ordinals of chunks by the name of their column."""

    footer: Footer
    places: Mapping[str, Sequence[tuple[int, int]]]


def _sensitive_places(
    subject: FileSubject, footer: Footer
) -> Mapping[str, Sequence[tuple[int, int]]]:
    """Return the chunks of columns with a key, and of encrypted columns that no rule names.

    A column that the policy allows in clear is no secret because one file encrypts it, for example
    in uniform mode.
    """
    policy = subject.request.policy
    has_key = [policy.key_for(leaf.path) is not None for leaf in footer.leaves]
    may_be_clear = [policy.is_classified(leaf.path) for leaf in footer.leaves]
    found: dict[str, list[tuple[int, int]]] = {}
    for row_group, chunks in enumerate(footer.column_chunks):
        for ordinal, chunk in enumerate(chunks):
            is_sealed = chunk.crypto_metadata is not None and not may_be_clear[ordinal]
            if has_key[ordinal] or is_sealed:
                places = found.setdefault(footer.leaves[ordinal].name, [])
                places.append((row_group, ordinal))
    return found


def _subject(
    file: InputFile, run: AuditRun, material: Callable[[], Mapping[str, str]] | None = None
) -> FileSubject:
    """Return the subject of a file. ``material`` reads the key material beside it."""
    _check_footer_length(file)
    resolver = run.resolver if run.request.with_keys else KeyResolver(None)
    return FileSubject(
        file=file,
        tail=read_tail(file),
        keys=file_keys(resolver, file) if material is None else resolver.for_file(material),
        run=run,
    )


def _audit(subject: FileSubject) -> FileAudit:
    findings = list(run_checks(_FILE_CHECKS, subject))
    footer, error = _unlocked(subject)
    if error is not None and not _tells_of_lost_key(findings):
        finding = subject.finding(_footer_rule(subject, error), error.message)
        findings.append(with_causes(finding, error))
    if footer is None:
        # No footer says which bytes are whose, so only those before it are searched for filters.
        findings += run_checks((unreferenced_bytes.check_before_footer,), subject)
        return FileAudit(
            path=subject.file.path,
            findings=tuple(findings),
            traced=_traced_whole(subject.file, subject.run),
            bytes=subject.file.size,
        )
    opened = _opened(subject, footer)
    findings += islice(_inside(opened), _MOST_FINDINGS)
    if len(findings) >= _MOST_FINDINGS:
        what = f"more than {_MOST_FINDINGS:,} findings, the rest of the file was not looked at"
        findings.append(subject.finding(UNCHECKED_FILE, what))
    traced, failed = _traced(opened)
    findings += failed
    return FileAudit(
        path=subject.file.path,
        findings=tuple(findings),
        traced=traced,
        columns={leaf.name: leaf.path for leaf in footer.leaves},
        columns_checked=0 if error is not None else _count_checked(opened, findings),
        protection=None if _breaks_rules(findings) else protection_of(opened),
        bytes=subject.file.size,
        filters=sum(map(_has_filter, opened.chunks)),
    )


def _has_filter(chunk: ChunkSubject) -> bool:
    return chunk.chunk is not None and chunk.chunk.meta_data.bloom_filter_offset is not None


def _traced(opened: FooterSubject) -> tuple[tuple[TracedValues, ...], list[Finding]]:
    """Return the values of sensitive columns that the file shows, or the error of the search."""
    words = opened.of.run.words
    if words is None:
        return (), []
    from secure_bloom.auditing.checks.traced_values import trace_footer

    try:
        return (trace_footer(opened, words),), []
    except Exception as error:
        return (), [failure(opened, error)]


def _traced_whole(file: InputFile, run: AuditRun) -> tuple[TracedValues, ...]:
    """Return the values of sensitive columns in a file whose footer is not audited.

    The findings of the file say that it is not, and why.
    """
    if run.words is None:
        return ()
    from secure_bloom.auditing.checks.traced_values import trace_other

    traced = trace_other(file, run.words)
    traced.trace.unread.clear()
    return (traced,)


def _check_footer_length(file: InputFile) -> None:
    if file.size < TRAILER_SIZE:
        return
    length = int.from_bytes(file.read_at(file.size - TRAILER_SIZE, 4), "little")
    if _MOST_FOOTER < length < file.size:
        raise UnsupportedFeatureError(
            f"the footer has {length} bytes, an audit reads at most {_MOST_FOOTER}"
        )


def _unlocked(subject: FileSubject) -> tuple[Footer | None, SecureBloomError | None]:
    """Return the footer as far as it can be read, and the error of checking it, or None."""
    try:
        return unlock(subject.tail, subject.keys), None
    except KmsUnavailableError:
        raise
    except SecureBloomError as error:
        return (read_unverified(subject.tail, subject.keys) if subject.is_readable else None), error


def _footer_rule(subject: FileSubject, error: SecureBloomError) -> Rule:
    if isinstance(error, KeyUnavailableError) and not isinstance(error, KeyMisfitError):
        return UNCHECKED_SIGNATURE if subject.is_readable else UNCHECKED_FOOTER
    return rule_of(error)


def _opened(subject: FileSubject, footer: Footer) -> FooterSubject:
    wanted = subject.request.wanted(footer.leaves)
    if subject.request.has_secrets:
        # The checks of its fields decode the whole footer: no chunk is decoded again.
        whole = subject.known_fields("FileMetaData", footer.plain)
        if whole is not None:
            footer.scan.take_chunks(whole.row_groups)
    chunks = []
    for row_group, column_chunks in enumerate(footer.column_chunks):
        for ordinal, column_chunk in enumerate(column_chunks):
            chunk, error = _open_chunk(footer, row_group, ordinal)
            chunks.append(
                ChunkSubject(
                    of=subject,
                    row_group=row_group,
                    leaf=footer.leaves[ordinal],
                    wanted=wanted[ordinal],
                    column_chunk=column_chunk,
                    chunk=chunk,
                    error=error,
                )
            )
    return FooterSubject(of=subject, footer=footer, chunks=tuple(chunks))


def _open_chunk(
    footer: Footer, row_group: int, ordinal: int
) -> tuple[Chunk | None, SecureBloomError | None]:
    try:
        return footer.chunk(row_group, ordinal), None
    except KmsUnavailableError:
        raise
    except SecureBloomError as error:
        return None, error


def _inside(opened: FooterSubject) -> Iterator[Finding]:
    """Yield the findings that need an open footer: chunk by chunk, then for the whole file."""
    for chunk in opened.chunks:
        yield from _chunk_findings(chunk)
    yield from run_checks(_FOOTER_CHECKS, opened)


def _chunk_findings(chunk: ChunkSubject) -> Iterator[Finding]:
    findings = list(run_checks(_CHUNK_CHECKS, chunk))
    yield from findings
    if chunk.error is not None and not _tells_of_lost_key(findings):
        yield from _not_opened(chunk, chunk.error)


def _not_opened(chunk: ChunkSubject, error: SecureBloomError) -> Iterator[Finding]:
    if not isinstance(error, KeyUnavailableError) or isinstance(error, KeyMisfitError):
        yield failure(chunk, error)
    # Without a rule for the column, its key answers nothing that the policy asks about.
    elif chunk.wanted.key is not None or chunk.wanted.bloom is not None:
        yield with_causes(chunk.finding(UNCHECKED_COLUMN, error.message), error)


def _tells_of_lost_key(findings: list[Finding]) -> bool:
    return any(finding.id in column_keys.LOST_KEY for finding in findings)


def _breaks_rules(findings: list[Finding]) -> bool:
    return any(finding.id in column_keys.BROKEN_RULES for finding in findings)


def _count_checked(opened: FooterSubject, findings: list[Finding]) -> int:
    """Return the number of columns that were opened in every row group and fully checked."""
    stopped = {chunk.leaf.name for chunk in opened.chunks if chunk.chunk is None}
    stopped |= {f.column for f in findings if f.column and f.id.startswith("unchecked-")}
    return len({leaf.name for leaf in opened.footer.leaves} - stopped)
