"""Sampled values of sensitive columns, and the forms in which they may be elsewhere in clear.

A value is looked for as it is, in other capitals, in Base64, in hexadecimal, quoted as in a URL, in
UTF-16, and as a digest without a salt.  A whole number is looked for as a number and as its digits.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from urllib.parse import quote, unquote_to_bytes

#: Shorter texts occur everywhere, and so do smaller numbers.
SHORTEST, _FEWEST_DIGITS = 6, 8
#: This many values show that something repeats a column; or one of this many bytes.
LEAST_MATCHES, _TELLING = 3, 10
#: With fewer values than these, short ones are not looked for in texts.
_FEW = 10
#: The most values of a column that are looked for inside longer texts.
MOST_INSIDE = 100
_DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b")
#: Seeds of XXH64: that of Spark's function `xxhash64`, and none.
_SEEDS = (42, 0)
#: What texts in files are cut at: lines and fields of a table, and words.
_CUTS = (re.compile(rb"[\t\r\n\",;|]+"), re.compile(rb"[\s\"',;|<>(){}\[\]=]+"))
_DIGIT = frozenset(b"0123456789")


class SensitiveValues:
    """Values of sensitive columns, by the names of the columns.  None of them shows in a repr."""

    def __init__(self, columns: Mapping[str, Iterable[bytes | int]] | None = None) -> None:
        self._columns = {
            name: tuple(dict.fromkeys(value for value in values if _is_looked_for(value)))
            for name, values in (columns or {}).items()
        }

    def __bool__(self) -> bool:
        """Whether there is any value."""
        return any(self._columns.values())

    def __or__(self, other: SensitiveValues) -> SensitiveValues:
        """Return the values of both; for a column of both, those of the first."""
        return SensitiveValues({**other._columns, **self._columns})

    def columns_in(self, text: bytes) -> Iterator[str]:
        """Yield the columns that a text holds values of."""
        lowered = _unquoted(text.lower())
        parts = {part for cut in _CUTS for part in cut.split(lowered)}
        for name, inside in self._inside.items():
            found = {value for value in inside if value in parts or _is_in(value, lowered)}
            found |= {value for value in self._as_texts[name] if value in parts}
            # A few short words, such as states of an order, are in any description of the table.
            are_many = len(self._columns[name]) >= _FEW and len(found) >= LEAST_MATCHES
            if are_many or any(len(value) >= _TELLING for value in found):
                yield name

    def columns_repeated(self, values: Collection[bytes]) -> Iterator[str]:
        """Yield the columns that some values of another column repeat, in whatever form."""
        known = {value.lower() for value in values}
        # The end of a value is no letter, so that no match lies across two of them.
        whole = _unquoted(b"\0".join(known))
        for name, forms in self._forms.items():
            found = {forms[value] for value in known if value in forms}
            inside = self._inside[name] if len(found) < LEAST_MATCHES else ()
            found |= {forms[value] for value in inside if value in forms and _is_in(value, whole)}
            if len(found) >= min(LEAST_MATCHES, len(self._columns[name])):
                yield name

    def columns_bounding(self, bounds: Collection[bytes]) -> Iterator[str]:
        """Yield the columns whose values are the bounds of another column."""
        lowered = {bound.lower() for bound in bounds}
        for name, texts in self._as_texts.items():
            if lowered and lowered <= texts:
                yield name

    @cached_property
    def _as_texts(self) -> dict[str, frozenset[bytes]]:
        return {name: frozenset(map(_text, values)) for name, values in self._columns.items()}

    @cached_property
    def _inside(self) -> dict[str, tuple[bytes, ...]]:
        """The values that are looked for inside texts."""
        found = {name: map(_text, values[:MOST_INSIDE]) for name, values in self._columns.items()}
        return {name: tuple(values) for name, values in found.items() if self._columns[name]}

    @cached_property
    def _forms(self) -> dict[str, dict[bytes, int]]:
        """Form -> the number of the value that has it."""
        return {
            name: {form: i for i, value in enumerate(values) for form in _forms_of(value)}
            for name, values in self._columns.items()
            if values
        }


def sparse(numbers: Collection[int]) -> Collection[int]:
    """Return the numbers; none if they are so dense that other columns have some by chance."""
    if not numbers or max(numbers) - min(numbers) < _SPREAD * len(numbers):
        return ()
    return numbers


#: Numbers are looked for if there is one of them among this many.
_SPREAD = 1_000


def _is_looked_for(value: bytes | int) -> bool:
    return (
        len(value) >= SHORTEST
        if isinstance(value, bytes)
        else len(str(abs(value))) >= _FEWEST_DIGITS
    )


def _unquoted(text: bytes) -> bytes:
    """Return a text, and the text without the escapes of URLs if it may have some."""
    return text + b"\n" + unquote_to_bytes(text) if b"%40" in text or b"%20" in text else text


def _text(value: bytes | int) -> bytes:
    return value.lower() if isinstance(value, bytes) else str(value).encode()


def _is_in(value: bytes, text: bytes) -> bool:
    """Return whether a text holds the value; digits must not go on before or after a number."""
    at = text.find(value)
    if at < 0 or not value.isdigit():
        return at >= 0
    return not _DIGIT & {*text[max(0, at - 1) : at], *text[at + len(value) : at + len(value) + 1]}


def _forms_of(value: bytes | int) -> Iterator[bytes]:
    """Yield the forms of a value in small letters, as the values that are searched are."""
    if isinstance(value, int):
        for width in (4, 8):
            if abs(value) < 1 << (8 * width - 1):
                yield value.to_bytes(width, "little", signed=True).lower()
        value = str(value).encode()
    import xxhash

    yield value.lower()
    yield base64.b64encode(value).lower()
    yield value.hex().encode()
    yield quote(value).lower().encode()
    yield value.decode("utf-8", "replace").encode("utf-16-le").lower()
    for text in {value, value.lower()}:
        for seed in _SEEDS:
            yield xxhash.xxh64_intdigest(text, seed).to_bytes(8, "little").lower()
        for kind in _DIGESTS:
            digest = hashlib.new(kind, text, usedforsecurity=False)
            yield digest.hexdigest().encode()
            yield digest.digest().lower()
            yield base64.b64encode(digest.digest()).lower()
