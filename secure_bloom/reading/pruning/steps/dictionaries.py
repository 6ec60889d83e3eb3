"""Skip row groups whose dictionaries are complete and have no value of a lookup.

The PLAIN encoding of a value is searched in the bytes of the dictionary page.  If the bytes are not
there, the chunk does not have the value.  Nothing is decoded.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from secure_bloom.errors import located
from secure_bloom.parquet.decompression import decompressed, is_decompressed_here
from secure_bloom.parquet.dictionary_pages import claims_full_dictionary, open_dictionary
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.structures.metadata import Encoding, Type
from secure_bloom.reading.pruning.column_predicates import encodings_of
from secure_bloom.reading.pruning.file_pruner import FilePruner, Lookup, RowGroupState
from secure_bloom.reading.pruning.filter_reads import has_filter
from secure_bloom.reading.pruning.plan import Reason, Step
from secure_bloom.storage import InputFile

#: Values times bytes of the page: more than this, of all conditions, costs more than it can save.
_MAX_WORK = 4 * 1024 * 1024
#: A page header may claim any size; larger pages are not decompressed here.
_MAX_PAGE = 64 * 1024 * 1024
_LENGTH_SIZE = 4


def dictionary_size(chunk: Chunk) -> int:
    """Return the stored size of the dictionary page in bytes, or 0 if there is none."""
    start = chunk.meta_data.dictionary_page_offset or 0
    return max(0, chunk.meta_data.data_page_offset - start) if start > 0 else 0


def has_all_values(chunk: Chunk) -> bool:
    """Return whether the footer calls the dictionary complete and its form is searchable."""
    if not claims_full_dictionary(chunk.meta_data):
        return False
    # A decimal's bytes may be padded in more ways than are looked for.
    return chunk.leaf.type is not Type.BYTE_ARRAY or chunk.leaf.logical.kind is not Kind.DECIMAL


class ChunkDictionary:
    """The dictionary of a chunk, read and decompressed once for all lookups.

    Use it only if :func:`has_all_values` is true for the chunk.
    """

    def __init__(self, file: InputFile, chunk: Chunk) -> None:
        self._chunk = chunk
        self._claimed = open_dictionary(file, chunk)
        self._work = 0

    def may_have(self, encodings: Sequence[bytes]) -> bool:
        """Return whether one of the values, in PLAIN encoding, may be in the chunk.

        False is certain.
        """
        content = self._content
        self._work += len(encodings) * len(content or b"")
        if content is None or self._work > _MAX_WORK:
            return True
        if any(_is_there(self._chunk, content, value) for value in encodings):
            return True
        # The headers of the data pages are worth reading only where a row group could be skipped.
        return not self._is_full

    @functools.cached_property
    def _content(self) -> bytes | None:
        """Return the entries, or None if they are not in a form that can be searched."""
        if self._claimed is None:
            return None
        page, codec = self._claimed.page, self._chunk.meta_data.codec
        size = page.uncompressed_size
        is_plain = page.encoding in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY)
        if not is_plain or not is_decompressed_here(codec) or not 0 <= size <= _MAX_PAGE:
            return None
        return bytes(decompressed(codec, page.body(), size))

    @functools.cached_property
    def _is_full(self) -> bool:
        return self._claimed is not None and self._claimed.is_full()


def _is_there(chunk: Chunk, content: bytes, value: bytes) -> bool:
    width = chunk.leaf.width
    if width is None:
        # The bytes that are looked for may span two values: then the answer is a false "maybe",
        # which is allowed.
        return content.find(len(value).to_bytes(_LENGTH_SIZE, "little") + value) >= 0
    place = content.find(value)
    while place >= 0 and place % width:
        place = content.find(value, place + 1)
    return place >= 0


def prune_by_dictionaries(pruner: FilePruner) -> None:
    """Look values up in dictionaries, unless a Bloom filter answers with fewer bytes."""
    choose = has_all_values if pruner.context.ignores_filters else _is_cheaper
    for group in pruner.alive():
        known: dict[int, ChunkDictionary] = {}
        for lookup in pruner.lookups(group, choose):
            if _ends(pruner, group, lookup, known):
                break


def _ends(
    pruner: FilePruner, group: RowGroupState, lookup: Lookup, known: dict[int, ChunkDictionary]
) -> bool:
    """Return whether the dictionary's answer to one lookup skips the row group."""
    predicate, chunk, values = lookup
    with located(row_group=group.index, column=predicate.leaf.name):
        if predicate.ordinal not in known:
            known[predicate.ordinal] = ChunkDictionary(pruner.file, chunk)
        found = known[predicate.ordinal].may_have(encodings_of(values))
    if not found and pruner.rule_out(group, Step.DICTIONARY, predicate.condition.ordinal):
        return True
    text = "maybe: the dictionary has it" if found else "the dictionary does not have it"
    reason = Reason.DICTIONARY_MAYBE if found else None
    pruner.note(group, predicate, Step.DICTIONARY, text, reason=reason)
    return False


def _is_cheaper(chunk: Chunk) -> bool:
    """Return whether the dictionary is complete, and no filter answers with fewer bytes."""
    size = dictionary_size(chunk)
    if size == 0 or (has_filter(chunk) and size >= (chunk.meta_data.bloom_filter_length or 0)):
        return False
    return has_all_values(chunk)
