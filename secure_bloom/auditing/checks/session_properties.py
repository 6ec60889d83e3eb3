"""Check Spark properties: what a session with them would leave unprotected.

parquet-java takes its keys from `parquet.encryption.*`.  Spark passes on those that begin with
`spark.hadoop.`.  Both silently ignore a misspelt name.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.policy_rules import (
    SPARK_COLUMN_UNKNOWN,
    SPARK_COLUMN_UNPROTECTED,
    SPARK_COLUMN_WRONG_KEY,
    SPARK_FOOTER_KEY,
    SPARK_FOOTER_MODE,
    SPARK_INVALID,
    SPARK_KMS_ADDRESS,
    SPARK_NO_ENCRYPTION,
    SPARK_NOT_A_LEAF,
    SPARK_TWO_KEYS,
    SPARK_UNKNOWN_WORD,
    SPARK_WEAKER,
)
from secure_bloom.calling.close_names import CloseNames
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import DATA_KEY_BITS, Algorithm
from secure_bloom.encryption.spark_columns import SparkColumns
from secure_bloom.encryption.spark_properties import CRYPTO_FACTORY, JVM_PACKAGE

_PREFIX = "spark.hadoop."
_FACTORY = "parquet.crypto.factory.class"
_ENCRYPTION, _BLOOM = "parquet.encryption.", "parquet.bloom.filter."
#: The properties that parquet-java 1.17 reads.
_WORDS = {
    _ENCRYPTION: (
        "footer.key",
        "column.keys",
        "uniform.key",
        "complete.columns",
        "plaintext.footer",
        "algorithm",
        "data.key.length.bits",
        "kek.length.bits",
        "double.wrapping",
        "key.material.store.internally",
        "kms.client.class",
        "kms.instance.id",
        "kms.instance.url",
        "key.access.token",
        "cache.lifetime.seconds",
    ),
    _BLOOM: (
        "enabled",
        "expected.ndv",
        "fpp",
        "max.bytes",
        "adaptive.enabled",
        "candidates.number",
    ),
}
#: Another property of parquet-java that is spelt like one of these.
_OTHERS = {"parquet.filter.bloom.enabled"}
_DEFAULT_BITS = 128
#: A name, which may have escapes, and its value after ``=``, ``:`` or blanks.
_LINE = re.compile(r"((?:\\.|[^\\\s=:])*)\s*[=:]?\s*(.*)\Z", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# An odd number of backslashes: of an even number each second one is escaped, and the line ends.
_ENDS_OPEN = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
#: A name is misspelt if it is as like a known one as this, by difflib's ratio; longer names are not
#: compared.
_ALIKE, _LONGEST = 0.88, 200


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties in a Java properties file or a `spark-defaults.conf`.

    Both have the syntax of `java.util.Properties.load`. Spark strips blanks off the ends of values.
    """
    found = (_LINE.match(line) for line in _logical_lines(text))
    return {_plain(match[1]): _plain(match[2]).strip() for match in found if match is not None}


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the logical lines: a backslash joins a line with the next one, but not in a comment."""
    begun: str | None = None
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        if begun is None and (not line or line[0] in "#!"):
            continue
        line = (begun or "") + line
        goes_on = _ENDS_OPEN.search(line) is not None
        begun = line[:-1] if goes_on else None
        if not goes_on:
            yield line
    if begun:
        yield begun


def _plain(text: str) -> str:
    """Return the text without its escapes."""
    return _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2]), text
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """The properties as parquet-java understands them."""

    properties: Mapping[str, str]
    #: Pairs of column and key, repeated ones too.
    column_keys: tuple[tuple[str, str], ...]

    def get(self, word: str) -> str:
        """Return the value of an encryption property, or "" if it is not set."""
        return self.properties.get(_ENCRYPTION + word, "").strip()

    def is_true(self, word: str) -> bool:
        """Return whether a flag is set, as Hadoop reads it."""
        return self.get(word).lower() == "true"

    @property
    def footer_key(self) -> str:
        """The footer's key or, in uniform mode, the key of everything."""
        return self.get("uniform.key") or self.get("footer.key")

    def key_of(self, column: str) -> str | None:
        """Return the key of a column, or None if it stays in clear."""
        if self.get("uniform.key"):
            return self.get("uniform.key")
        named = dict(self.column_keys).get(column)
        return named or (self.footer_key if self.is_true("complete.columns") else None)


def check_properties(
    properties: Mapping[str, str], policy: KeyPolicy, columns: Mapping[str, tuple[str, ...]]
) -> Iterator[Finding]:
    """Yield findings for properties that contradict the policy.

    ``columns`` are the leaves of the files by their dotted names, if known.
    """
    plain = {name.removeprefix(_PREFIX): value for name, value in properties.items()}
    yield from _check_words(plain)
    entries = [entry for entry in plain.get(f"{_ENCRYPTION}column.keys", "").split(";") if entry]
    malformed = [entry for entry in entries if not _is_well_formed(entry)]
    if malformed:
        yield SPARK_INVALID.finding("parquet.encryption.column.keys is not key:column,column")
    named = [pair for entry in entries if entry not in malformed for pair in _pairs(entry)]
    session = _Session(properties=plain, column_keys=tuple(named))
    yield from _check_kms_address(session)
    found = [*_check_names(session, policy, columns)]
    if policy.footer_key is not None:
        found += _check_session(session, policy, columns)
    yield from (replace(it, table=policy.table) for it in found)


def _check_kms_address(session: _Session) -> Iterator[Finding]:
    """Yield a finding if another maker's KMS client may be sent to an address that a file names."""
    client = session.get("kms.client.class")
    # Our classes have their own properties, and never look at the address of a file.
    if client and not client.startswith(f"{JVM_PACKAGE}.") and not session.get("kms.instance.url"):
        yield SPARK_KMS_ADDRESS.finding(
            f"{client} is the KMS client, and parquet.encryption.kms.instance.url is not set"
        )


def _is_well_formed(entry: str) -> bool:
    key, colon, columns = entry.partition(":")
    return (
        bool(colon and key.strip())
        and ":" not in columns
        and all(column.strip() for column in columns.split(","))
    )


def _pairs(entry: str) -> Iterator[tuple[str, str]]:
    key, _, columns = entry.partition(":")
    for column in columns.split(","):
        yield column.strip(), key.strip()


def _check_words(properties: Mapping[str, str]) -> Iterator[Finding]:
    for name in sorted(properties):
        if not name.startswith(tuple(_WORDS)) and name != _FACTORY:
            yield from _check_name(name)
        for prefix, words in _WORDS.items():
            # In properties of filters the name of a column may follow.
            word = name.removeprefix(prefix).partition("#")[0]
            if name.startswith(prefix) and word not in words:
                hint = close_match(word, words)
                yield SPARK_UNKNOWN_WORD.finding(f"there is no {prefix}{word}: {hint}")


def _check_name(name: str) -> Iterator[Finding]:
    """Yield findings for names that look like properties of encryption but are not."""
    full = [_FACTORY, *(prefix + word for prefix, words in _WORDS.items() for word in words)]
    # In properties of filters the name of a column may follow.
    plain = name.partition("#")[0]
    if len(plain) <= _LONGEST and plain not in _OTHERS:
        known = [*full, *(_PREFIX + each for each in full)]
        for match in difflib.get_close_matches(plain, known, n=1, cutoff=_ALIKE):
            yield SPARK_UNKNOWN_WORD.finding(f"there is no {plain}: did you mean {match!r}?")


def _check_names(
    session: _Session, policy: KeyPolicy, columns: Mapping[str, tuple[str, ...]]
) -> Iterator[Finding]:
    """Check that every column that a property names exists, and is named once."""
    counts = Counter(column for column, _ in session.column_keys)
    for column in sorted(column for column, count in counts.items() if count > 1):
        yield SPARK_TWO_KEYS.finding("parquet.encryption.column.keys names it twice", column=column)
    leaves = columns or _by_name(policy.columns)
    parents = set()
    spark = SparkColumns(leaves.values())
    for column in sorted(counts):
        # A column that no file has gets a finding below.
        problem = spark.problem(column) if column in spark else None
        if problem is not None:
            parents.add(column)
            what = f"{problem.message} ({problem.hint})"
            yield SPARK_NOT_A_LEAF.finding(what, column=column)
    known = {*leaves, *parents}
    names = CloseNames(known)
    filtered = {name.partition("#")[2] for name in session.properties if name.startswith(_BLOOM)}
    for column in sorted((counts.keys() | filtered - {""}) - known):
        if columns or policy.key_for(column.split(".")) is None:
            hint = close_match(column, names)
            yield SPARK_COLUMN_UNKNOWN.finding(
                f"neither the policy nor a file has it: {hint}", column=column
            )


def _by_name(columns: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return leaves derived from dotted names, for columns that no file has."""
    return {column: tuple(column.split(".")) for column in columns}


def _check_session(
    session: _Session, policy: KeyPolicy, columns: Collection[str]
) -> Iterator[Finding]:
    if not session.properties.get(_FACTORY, "").strip() or not session.footer_key:
        yield SPARK_NO_ENCRYPTION.finding("a session with these properties encrypts nothing")
        return
    if session.properties[_FACTORY].strip() != CRYPTO_FACTORY:
        yield SPARK_INVALID.finding(
            f"{_FACTORY} names another class; only {CRYPTO_FACTORY} reads these properties"
        )
    if session.footer_key != policy.footer_key:
        yield SPARK_FOOTER_KEY.finding(
            f"the policy says {policy.footer_key}, the properties {session.footer_key}"
        )
    if policy.footer_mode is FooterMode.ENCRYPTED and session.is_true("plaintext.footer"):
        yield SPARK_FOOTER_MODE.finding("the policy says encrypted, the properties plaintext")
    yield from _check_strength(session, policy)
    for column, wanted in _sensitive(policy, columns, session).items():
        found = session.key_of(column)
        if found is None:
            yield SPARK_COLUMN_UNPROTECTED.finding(
                f"the policy says {wanted}, the properties leave it in clear", column=column
            )
        elif found != wanted:
            yield SPARK_COLUMN_WRONG_KEY.finding(
                f"the policy says {wanted}, the properties {found}", column=column
            )


def _check_strength(session: _Session, policy: KeyPolicy) -> Iterator[Finding]:
    algorithm = session.get("algorithm") or Algorithm.AES_GCM_V1
    if policy.encryption.algorithm is Algorithm.AES_GCM_V1 and algorithm != Algorithm.AES_GCM_V1:
        yield SPARK_WEAKER.finding(
            f"the policy says {policy.encryption.algorithm}, the properties {algorithm}"
        )
    lengths = [str(length) for length in DATA_KEY_BITS]
    for word in ("data.key.length.bits", "kek.length.bits"):
        if session.get(word) and session.get(word) not in lengths:
            yield SPARK_INVALID.finding(f"{_ENCRYPTION}{word} is none of 128, 192 and 256")
    bits = session.get("data.key.length.bits") or str(_DEFAULT_BITS)
    if bits in lengths and int(bits) < policy.encryption.data_key_bits:
        yield SPARK_WEAKER.finding(
            f"the policy says keys of {policy.encryption.data_key_bits} bits, the properties {bits}"
        )


def _sensitive(policy: KeyPolicy, columns: Collection[str], session: _Session) -> dict[str, str]:
    """Return the sensitive leaves with their keys.

    The leaves are the leaves of the files, or else the columns that policy and properties name. A
    parent in the policy is not a leaf if the properties name a column below it.
    """
    named = {column for column, _ in session.column_keys}
    leaves = set(columns) or named | {
        path for path in policy.columns if not any(n.startswith(f"{path}.") for n in named)
    }
    keys = {leaf: policy.key_for(leaf.split(".")) for leaf in sorted(leaves)}
    return {leaf: key for leaf, key in keys.items() if key is not None}
