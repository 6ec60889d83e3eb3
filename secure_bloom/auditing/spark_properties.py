"""Checks of Spark properties: what a session with them would leave unprotected.

parquet-java takes its keys from `parquet.encryption.*`; Spark passes on what stands behind
`spark.hadoop.`.  A name that is misspelt is ignored in silence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from secure_bloom.auditing import rules
from secure_bloom.findings import Finding
from secure_bloom.keys.configuration import close_match
from secure_bloom.options import FooterMode
from secure_bloom.policy import Algorithm, KeyPolicy

_PREFIX = "spark.hadoop."
_FACTORY = "parquet.crypto.factory.class"
_ENCRYPTION, _BLOOM = "parquet.encryption.", "parquet.bloom.filter."
#: What parquet-java 1.17 reads.
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
_DEFAULT_BITS = 128
#: `name=value` and `name: value` of Java properties, `name value` of spark-defaults.conf.
_LINE = re.compile(r"\s*([^\s=:!#][^\s=:]*)\s*[\s=:]\s*(.*?)\s*\Z")


def parse_properties(text: str) -> dict[str, str]:
    """The properties in the text of a Java properties file or of a `spark-defaults.conf`."""
    found = (_LINE.match(line) for line in text.splitlines())
    return {match[1]: match[2] for match in found if match is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """What parquet-java makes of the properties."""

    properties: Mapping[str, str]
    #: Column and key, as often as they are named.
    column_keys: tuple[tuple[str, str], ...]

    def get(self, word: str) -> str:
        """The value of an encryption property, empty where it is not set."""
        return self.properties.get(_ENCRYPTION + word, "").strip()

    def is_true(self, word: str) -> bool:
        """Whether a flag is set, as Hadoop reads it."""
        return self.get(word).lower() == "true"

    @property
    def footer_key(self) -> str:
        """The footer's key; in uniform mode that of everything."""
        return self.get("uniform.key") or self.get("footer.key")

    def key_of(self, column: str) -> str | None:
        """The key of a column; None where it stays in clear."""
        if self.get("uniform.key"):
            return self.get("uniform.key")
        named = dict(self.column_keys).get(column)
        return named or (self.footer_key if self.is_true("complete.columns") else None)


def check_properties(
    properties: Mapping[str, str], policy: KeyPolicy, columns: Collection[str]
) -> Iterator[Finding]:
    """Hold properties against the policy; ``columns`` are those of the files, as far as known."""
    plain = {name.removeprefix(_PREFIX): value for name, value in properties.items()}
    yield from _check_words(plain)
    entries = [entry for entry in plain.get(f"{_ENCRYPTION}column.keys", "").split(";") if entry]
    malformed = [entry for entry in entries if not _is_well_formed(entry)]
    if malformed:
        yield rules.SPARK_INVALID.finding("parquet.encryption.column.keys is not key:column,column")
    named = [pair for entry in entries if entry not in malformed for pair in _pairs(entry)]
    session = _Session(properties=plain, column_keys=tuple(named))
    yield from _check_names(session, policy, columns)
    if policy.footer_key is not None:
        yield from _check_session(session, policy, columns)


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
        for prefix, words in _WORDS.items():
            # Of filters a column may follow.
            word = name.removeprefix(prefix).partition("#")[0]
            if name.startswith(prefix) and word not in words:
                hint = close_match(word, words)
                yield rules.SPARK_UNKNOWN_WORD.finding(f"there is no {prefix}{word}: {hint}")


def _check_names(
    session: _Session, policy: KeyPolicy, columns: Collection[str]
) -> Iterator[Finding]:
    """Every column that a property names is there, once."""
    counts = Counter(column for column, _ in session.column_keys)
    for column in sorted(column for column, count in counts.items() if count > 1):
        yield rules.SPARK_TWO_KEYS.finding(
            "parquet.encryption.column.keys names it twice", column=column
        )
    known = set(columns) or set(policy.columns)
    filtered = {name.partition("#")[2] for name in session.properties if name.startswith(_BLOOM)}
    for column in sorted((counts.keys() | filtered - {""}) - known):
        if columns or policy.key_for(column.split(".")) is None:
            hint = close_match(column, known)
            yield rules.SPARK_COLUMN_UNKNOWN.finding(
                f"neither the policy nor a file has it: {hint}", column=column
            )


def _check_session(
    session: _Session, policy: KeyPolicy, columns: Collection[str]
) -> Iterator[Finding]:
    if not session.properties.get(_FACTORY, "").strip() or not session.footer_key:
        yield rules.SPARK_NO_ENCRYPTION.finding("a session with these properties encrypts nothing")
        return
    if session.footer_key != policy.footer_key:
        yield rules.SPARK_FOOTER_KEY.finding(
            f"the policy says {policy.footer_key}, the properties {session.footer_key}"
        )
    if policy.footer_mode is FooterMode.ENCRYPTED and session.is_true("plaintext.footer"):
        yield rules.SPARK_FOOTER_MODE.finding("the policy says encrypted, the properties plaintext")
    yield from _check_strength(session, policy)
    for column, wanted in _sensitive(policy, columns, session).items():
        found = session.key_of(column)
        if found is None:
            yield rules.SPARK_COLUMN_UNPROTECTED.finding(
                f"the policy says {wanted}, the properties leave it in clear", column=column
            )
        elif found != wanted:
            yield rules.SPARK_COLUMN_WRONG_KEY.finding(
                f"the policy says {wanted}, the properties {found}", column=column
            )


def _check_strength(session: _Session, policy: KeyPolicy) -> Iterator[Finding]:
    algorithm = session.get("algorithm") or Algorithm.AES_GCM_V1
    if policy.encryption.algorithm is Algorithm.AES_GCM_V1 and algorithm != Algorithm.AES_GCM_V1:
        yield rules.SPARK_WEAKER.finding(
            f"the policy says {policy.encryption.algorithm}, the properties {algorithm}"
        )
    bits = session.get("data.key.length.bits") or str(_DEFAULT_BITS)
    if not bits.isdecimal():
        yield rules.SPARK_INVALID.finding(f"{_ENCRYPTION}data.key.length.bits is not a number")
    elif int(bits) < policy.encryption.data_key_bits:
        yield rules.SPARK_WEAKER.finding(
            f"the policy says keys of {policy.encryption.data_key_bits} bits, the properties {bits}"
        )


def _sensitive(policy: KeyPolicy, columns: Collection[str], session: _Session) -> dict[str, str]:
    """The sensitive leaves with their keys: of the files, else as policy and properties name them.

    A parent in the policy is no leaf where the properties name what is below it.
    """
    named = {column for column, _ in session.column_keys}
    leaves = set(columns) or named | {
        path for path in policy.columns if not any(n.startswith(f"{path}.") for n in named)
    }
    keys = {leaf: policy.key_for(leaf.split(".")) for leaf in sorted(leaves)}
    return {leaf: key for leaf, key in keys.items() if key is not None}
