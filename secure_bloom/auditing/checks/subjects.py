"""The subjects of checks: the end of a file, its footer, or one of its column chunks.

They also count what only all chunks of a file together show: bytes of filters, and signs of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from secure_bloom.adding.request import WantedFilters
from secure_bloom.auditing.checks.contents import forms_of
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules import Rule
from secure_bloom.calling.options import BloomFilterOptions, FooterMode
from secure_bloom.encryption.access import Access, GivenKeys
from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import Tail
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.format_fields import known_fields
from secure_bloom.parquet.structures.metadata import ColumnChunk, ColumnMetaData
from secure_bloom.storage import InputFile
from secure_bloom.storage.column_mapping import ColumnMapping

# Loaded to search for values alone.
if TYPE_CHECKING:
    from secure_bloom.lakes.paimon.table import PaimonFile
    from secure_bloom.tracing.index import WordIndex


#: The columns of which the answers of a policy are kept. Names are as long as a file makes them.
_MOST_KEPT = 512
#: The schemas of which the requirements are kept.
_MOST_SCHEMAS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The policy's requirements for one leaf: the master key that protects it, and a filter."""

    key: str | None
    bloom: BloomFilterOptions | None


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """The policy, and how much to check.

    Without ``with_keys`` the audit checks only what an outsider sees.  With ``check_values`` it
    reads all values of each column that has a filter, and looks them up in the filter.  With
    ``strict`` a column that no rule names is a finding.
    """

    policy: KeyPolicy
    with_keys: bool = True
    check_values: bool = False
    strict: bool = False

    def key_source(self, keys: GivenKeys = None) -> GivenKeys:
        """Return the keys of an audit: the given keys, else the policy's KMS.

        Return None for an outsider's view.
        """
        if not self.with_keys:
            return None
        return Access(keys=keys, policy=self.policy).required_key_source()

    def wanted(self, leaves: tuple[Leaf, ...]) -> tuple[Wanted, ...]:
        """Return the policy's requirements for each leaf of a file."""
        # Files of one schema share the very leaves, so these need no comparison. An entry keeps
        # them, so that no others get their id.
        known = self._wanted.get(id(leaves))
        if known is not None:
            return known[1]
        blooms = WantedFilters(columns=self.policy.bloom_columns()).resolve(leaves)
        found = tuple(
            Wanted(key=self.policy.key_for(leaf.path), bloom=blooms.get(ordinal))
            for ordinal, leaf in enumerate(leaves)
        )
        if len(self._wanted) < _MOST_SCHEMAS:
            self._wanted[id(leaves)] = leaves, found
        return found

    @cached_property
    def _wanted(self) -> dict[int, tuple[tuple[Leaf, ...], tuple[Wanted, ...]]]:
        return {}

    @cached_property
    def is_classified(self) -> Callable[[tuple[str, ...]], bool]:
        """:meth:`.KeyPolicy.is_classified`. The files of a table have the same columns."""
        return lru_cache(maxsize=_MOST_KEPT)(self.policy.is_classified)

    @cached_property
    def has_secrets(self) -> bool:
        """Whether the policy names any sensitive column."""
        return any(rule.key is not None for rule in self.policy.columns.values())


@dataclass(frozen=True, kw_only=True)
class AuditRun:
    """What the audits of all files of a run share.

    ``words`` are the words of all values of sensitive columns, if they are searched for.
    ``older_names`` returns the names that the table of a file had for its columns. ``paimon_file``
    returns what a Paimon table says of a live file.
    """

    request: AuditRequest
    resolver: KeyResolver
    older_names: Callable[[str], Sequence[ColumnMapping]] = lambda _: ()
    paimon_file: Callable[[str], PaimonFile | None] = lambda _: None
    words: WordIndex | None = field(default=None, repr=False)
    _policies: dict[int, AuditRun] = field(default_factory=dict, repr=False)

    def for_file(self, path: str) -> AuditRun:
        """Return the run for one file, under the policy of its table.

        Raises PolicyError for a file of no table, or of several.
        """
        return self.under(self.request.policy.for_table(path))

    def with_words(self, words: WordIndex) -> AuditRun:
        """Return the run with other words to search for."""
        return replace(self, words=words, _policies={})

    def under(self, policy: KeyPolicy) -> AuditRun:
        """Return the run under a policy of some files, which is kept as long as the run."""
        if policy is self.request.policy:
            return self
        if id(policy) not in self._policies:
            request = replace(self.request, policy=policy)
            self._policies[id(policy)] = replace(self, request=request, _policies={})
        return self._policies[id(policy)]

    @cached_property
    def key_forms(self) -> tuple[bytes, ...]:
        """The spellings of the keys in memory, which no file may contain."""
        return forms_of(self.resolver.known_keys()) if self.request.has_secrets else ()


@dataclass(slots=True, kw_only=True)
class ZeroTally:
    """The row groups of one column whose filter has exactly one of the two zeros.

    ``by_chance`` is how many of them chance explains: the expected number over the row groups whose
    statistics do not say whether there is a zero.
    """

    row_groups: list[int] = field(default_factory=list)
    by_chance: float = 0.0


@dataclass(slots=True, kw_only=True)
class Tally:
    """Sums over one file: ``filter_bytes`` that were read, and ``zeros`` by column name."""

    filter_bytes: int = 0
    zeros: dict[str, ZeroTally] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSubject:
    """A file whose tail, the part with the footer, has been read. ``keys`` may be empty."""

    file: InputFile
    tail: Tail
    keys: FileKeys
    run: AuditRun
    tally: Tally = field(default_factory=Tally)
    _records: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def request(self) -> AuditRequest:
        """The request of the run."""
        return self.run.request

    @property
    def is_readable(self) -> bool:
        """Whether anyone can read the footer."""
        return self.tail.mode is not FooterMode.ENCRYPTED

    def known_fields(self, structure: str, buffer: bytes) -> Any | None:
        """Return :func:`.known_fields` of the file's only ``structure``, which is decoded once."""
        if structure not in self._records:
            self._records[structure] = known_fields(structure, buffer)
        return self._records[structure]

    def finding(self, rule: Rule, what: str, *, column: str | None = None) -> Finding:
        """Return a finding of this file."""
        return rule.finding(what, path=self.file.path, column=column)


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterSubject:
    """A file whose footer could be read too. ``chunks`` are in row-group and column order."""

    of: FileSubject
    footer: Footer
    chunks: tuple[ChunkSubject, ...]

    def finding(self, rule: Rule, what: str) -> Finding:
        """Return a finding of this file."""
        return self.of.finding(rule, what)

    def sensitive(self) -> dict[str, Leaf]:
        """Return, by name, the columns with a key in the policy or encrypted in the file."""
        found = {chunk.leaf.name: chunk.leaf for chunk in self.chunks if chunk.is_sensitive}
        if self.chunks:
            return found
        # Without row groups the schema alone names the columns.
        policy = self.of.request.policy
        return {leaf.name: leaf for leaf in self.footer.leaves if policy.key_for(leaf.path)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSubject:
    """One column chunk: ``column_chunk`` as the footer lists it, and ``chunk`` once it is opened.

    The metadata of ``column_chunk`` may be only what an outsider sees, while ``chunk`` has all of
    it.  ``error`` says why the chunk could not be opened.
    """

    of: FileSubject
    row_group: int
    leaf: Leaf
    wanted: Wanted
    column_chunk: ColumnChunk
    chunk: Chunk | None = None
    error: SecureBloomError | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether the file says that the chunk is encrypted."""
        return self.column_chunk.crypto_metadata is not None

    @property
    def is_sensitive(self) -> bool:
        """Whether the column has a key in the policy, or is encrypted in the file."""
        return self.wanted.key is not None or self.is_encrypted

    @property
    def meta_data(self) -> ColumnMetaData | None:
        """As much of the chunk's metadata as can be read."""
        return self.column_chunk.meta_data if self.chunk is None else self.chunk.meta_data

    def finding(self, rule: Rule, what: str) -> Finding:
        """Return a finding of this chunk."""
        return rule.finding(
            what, path=self.of.file.path, row_group=self.row_group, column=self.leaf.name
        )


#: The result of a check.
Findings = Iterator[Finding]
