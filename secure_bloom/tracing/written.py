"""Collect the words of files exactly as written, to look them up in the filters of a table.

    words = written_words(found, jobs=2)    None if there are too many for filters

A Bloom filter in a Parquet file has values as they are written. So a word is a part of a text
between white space, quotes, commas or brackets. Decoded texts are included, and words are also read
backwards. Files are opened and decoded as in a whole search (:mod:`.search`). Some forms of a value
are not found, because finding them needs all values: other capitals, marks and notations, parts of
a value, and digests.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.kernels.words import Found, Room
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import FoundFile, search_files

#: More words leave most row groups of a table: reading all values is as cheap.
MOST_WRITTEN: Final = 5_000
_SHORTEST: Final = 4
#: What may be a value: lines, cells of tables, words, and parts of words such as those of a URL.
_SPANS: Final = tuple(
    map(
        re.compile,
        (
            rb"[^\r\n\0]+",
            rb"[^\t\r\n,;|\"'<>\[\]{}\0]+",
            rb"[^\s,;|\"'<>\[\]{}()=\\\0]+",
            rb"[^\s,;|\"'<>\[\]{}()=\\:/&?#*\0]+",
        ),
    )
)
_LONGEST: Final = 255
#: Marks of a sentence.
_ENDS: Final = b".,:;!? \t"


def written_words(
    found: Sequence[FoundFile], jobs: int, keys: KeyResolver | None = None
) -> list[bytes] | None:
    """Return the words of files and of their names, or None if there are too many."""
    words = _Written()
    search_files(found, words, jobs=jobs, keys=keys)
    return list(words.words) if len(words.words) <= MOST_WRITTEN else None


class _Written(WordIndex):
    """Collects every word that is looked up. It replaces an index, and has no entries."""

    def __init__(self) -> None:
        super().__init__((), ())
        self.words: dict[bytes, None] = {}

    def found_in(self, text: bytes, _: Room) -> Iterator[tuple[NDArray[np.uint8], Found]]:
        """Collect the words of a text, and yield nothing."""
        plain = text.replace(codecs.BOM_UTF8, b"\n")
        for span in _SPANS:
            for match in span.finditer(plain):
                if len(self.words) > MOST_WRITTEN:
                    return iter(())
                self._take(match[0])
        return iter(())

    def _take(self, written: bytes) -> None:
        for word in (written, written.strip(), written.strip(_ENDS), written.rpartition(b".")[0]):
            if _SHORTEST <= len(word) <= _LONGEST:
                self.words[word] = None
                self.words[
                    word.decode("utf-8", "surrogateescape")[::-1].encode("utf-8", "surrogateescape")
                ] = None
