"""Check keys: what the policy protects is encrypted, under its key, with keys of enough bits.

These checks need no key: key material names its master key, and its length shows the length of the
key inside.  Whether the key unwraps is noticed when the file is opened.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from dataclasses import replace

from secure_bloom.auditing.checks.contents import holds_keys
from secure_bloom.auditing.checks.subjects import ChunkSubject, FileSubject, Findings, FooterSubject
from secure_bloom.auditing.failures import Subject, with_causes
from secure_bloom.auditing.naming import short
from secure_bloom.auditing.rules import Rule
from secure_bloom.auditing.rules.key_rules import (
    COLUMN_IN_CLEAR,
    COLUMN_UNDER_FOOTER_KEY,
    COLUMN_WRONG_KEY,
    FOOTER_NOT_ENCRYPTED,
    FOOTER_NOT_SIGNED,
    FOOTER_WRONG_KEY,
    KEY_MATERIAL_DAMAGED,
    KEY_MATERIAL_MISSING,
    KEY_NOT_IN_POLICY,
    KEY_RETIRED,
    KEY_TOO_SHORT,
    KEYS_IN_LAKE,
    WEAKER_ALGORITHM,
)
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_KEY_NAME
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption import cipher
from secure_bloom.encryption.file_keys import DataKey, FileKeys, KeyMaterial
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import Algorithm
from secure_bloom.errors import FormatError, KeyUnavailableError

#: Findings that say why a key is not available; what depends on the key need not say it again.
LOST_KEY = frozenset({KEY_MATERIAL_DAMAGED.id, KEY_MATERIAL_MISSING.id})
#: Findings that explain why a file is protected in another way than others.
BROKEN_RULES = LOST_KEY | {
    rule.id
    for rule in (
        COLUMN_IN_CLEAR,
        COLUMN_WRONG_KEY,
        COLUMN_UNDER_FOOTER_KEY,
        FOOTER_NOT_ENCRYPTED,
        FOOTER_NOT_SIGNED,
        FOOTER_WRONG_KEY,
        KEY_RETIRED,
        WEAKER_ALGORITHM,
        UNCHECKED_KEY_NAME,
    )
}


def check_footer_mode(subject: FileSubject) -> Findings:
    """Check that the footer is encrypted, or signed, if the policy says so."""
    wanted, found = subject.request.policy.footer_mode, subject.tail.mode
    if wanted is FooterMode.ENCRYPTED and found is not FooterMode.ENCRYPTED:
        yield subject.finding(
            FOOTER_NOT_ENCRYPTED, f"the policy says encrypted, the footer is {found}"
        )
    elif wanted is FooterMode.SIGNED and found is FooterMode.PLAINTEXT:
        yield subject.finding(FOOTER_NOT_SIGNED, "the policy says signed, the footer is not")


def check_algorithm(subject: FileSubject) -> Findings:
    """Check that the algorithm is not weaker than the policy's."""
    algorithm = subject.tail.algorithm
    if algorithm is None:
        return
    wanted, found = subject.request.policy.encryption.algorithm, algorithm.member()
    # AES_GCM_CTR_V1 gives page bodies no tag: nobody notices when they are changed (Encryption.md
    # 4.2).
    if wanted is Algorithm.AES_GCM_V1 and found != wanted:
        yield subject.finding(WEAKER_ALGORITHM, f"the policy says {wanted}, the file uses {found}")


def check_key_texts(subject: FileSubject) -> Findings:
    """Check that a footer that anyone can read holds no key."""
    if subject.is_readable and holds_keys(subject.tail.clear, subject.run.key_forms):
        yield subject.finding(KEYS_IN_LAKE, "the footer, which anyone can read, holds keys")


def check_sealed_key_texts(subject: FooterSubject) -> Findings:
    """Check that an encrypted footer holds no key that the footer key would give away."""
    if subject.of.is_readable:
        return
    pairs = subject.footer.metadata.key_value_metadata or []
    texts = "\n".join(f"{pair.key}={pair.value or ''}" for pair in pairs)
    if holds_keys(texts.encode("utf-8", "surrogatepass"), subject.of.run.key_forms):
        yield subject.finding(KEYS_IN_LAKE, "the encrypted footer holds keys")


def check_footer_key(subject: FileSubject) -> Findings:
    """Check that the footer's key is the policy's."""
    if subject.tail.algorithm is not None:
        wanted = subject.request.policy.footer_key
        yield from _check_name(
            subject, subject, subject.tail.key_metadata, wanted, FOOTER_WRONG_KEY
        )


def check_footer_key_length(subject: FooterSubject) -> Findings:
    """Check that the footer's key has as many bits as the policy wants."""
    if subject.of.tail.algorithm is not None:
        bits = _key_bits(subject.of.keys, subject.footer.key, subject.of.tail.key_metadata)
        yield from _check_bits(subject.of, subject.of, bits)


def check_column_key(subject: ChunkSubject) -> Findings:
    """Check that a sensitive column is encrypted, under its key."""
    yield from check_under(subject, subject.wanted.key)


def check_under(subject: ChunkSubject, wanted: str | None) -> Findings:
    """Check that a column is encrypted under a master key, if one is wanted."""
    crypto = subject.column_chunk.crypto_metadata
    if crypto is None:
        if wanted is not None:
            yield subject.finding(
                COLUMN_IN_CLEAR, f"the policy says {wanted}, the column is stored in clear"
            )
        return
    own = crypto.ENCRYPTION_WITH_COLUMN_KEY
    if own is not None:
        yield from _check_name(subject, subject.of, own.key_metadata, wanted, COLUMN_WRONG_KEY)
    elif crypto.member() and wanted is not None:
        yield from _check_under_footer_key(subject, wanted)


def check_column_key_length(subject: ChunkSubject) -> Findings:
    """Check that a column's own key has as many bits as the policy wants."""
    crypto = subject.column_chunk.crypto_metadata
    own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
    if own is not None:
        opened = None if subject.chunk is None else subject.chunk.cipher
        key = None if opened is None else opened.key
        bits = _key_bits(subject.of.keys, key, own.key_metadata)
        yield from _check_bits(subject, subject.of, bits)


def check_shared_keys(subject: FooterSubject) -> Findings:
    """Check that no data key serves two master keys.

    Whoever may use one of the master keys could read what both protect.
    """
    served: defaultdict[bytes, set[str | None]] = defaultdict(set)
    if subject.footer.key is not None and subject.of.request.policy.footer_key is not None:
        served[subject.footer.key.key].add(subject.of.request.policy.footer_key)
    own = {(key, chunk.leaf.name): chunk for chunk in subject.chunks if (key := _own_key(chunk))}
    for (key, _), chunk in own.items():
        served[key].add(chunk.wanted.key)
    for (key, _), chunk in own.items():
        if others := sorted(name for name in served[key] - {chunk.wanted.key} if name):
            what = f"its data key also serves what the policy puts under {' and '.join(others)}"
            yield chunk.finding(COLUMN_WRONG_KEY, what)


def _own_key(chunk: ChunkSubject) -> bytes | None:
    """Return the data key of a sensitive column that has its own key, or None if it is missing."""
    crypto, opened = chunk.column_chunk.crypto_metadata, chunk.chunk
    has_own = crypto is not None and crypto.ENCRYPTION_WITH_COLUMN_KEY is not None
    if not has_own or chunk.wanted.key is None or opened is None or opened.cipher is None:
        return None
    return opened.cipher.key.key


def _check_name(
    subject: Subject, of: FileSubject, key_metadata: bytes | None, wanted: str | None, rule: Rule
) -> Findings:
    """Check that the key material is undamaged, and names the ``wanted`` master key."""
    try:
        material = None if key_metadata is None else of.keys.material(key_metadata)
        if material is not None:
            _wrapped_bits(material)
    except KeyUnavailableError as error:
        yield with_causes(subject.finding(KEY_MATERIAL_MISSING, error.message), error)
        return
    except FormatError as error:
        yield subject.finding(KEY_MATERIAL_DAMAGED, error.message)
        return
    name = of.keys.describe(key_metadata)
    if name in of.request.policy.retired_keys:
        # One finding and one remedy: that the key is also another than the policy's is no news.
        yield subject.finding(KEY_RETIRED, f"it depends on {short(name or '')}, which is retired")
        return
    if wanted is None:
        # Another wanted key is reported below; free-form metadata names no master key.  A policy
        # without any key says nothing about keys.
        named = of.request.policy.named_keys()
        if material is not None and named and name not in named:
            what = f"it depends on {short(name or '')}, which the policy does not name"
            yield subject.finding(KEY_NOT_IN_POLICY, what)
        return
    if name is None:
        yield subject.finding(
            UNCHECKED_KEY_NAME, f"the policy says {wanted}, the file does not name the key"
        )
    elif name != wanted:
        found = subject.finding(rule, f"the policy says {wanted}, the file {short(name)}")
        yield replace(found, fix=_fix_of_key(name, of.request.policy, rule))


def _fix_of_key(name: str, policy: KeyPolicy, rule: Rule) -> str:
    """Return the fix for a file under another key than the policy's."""
    # A key that the policy lists as older is one that is being rotated away from.
    if name in policy.older_keys:
        return KEY_RETIRED.fix
    return rule.fix if name in policy.named_keys() else f"{_NAME_FIRST}; then {rule.fix}"


_NAME_FIRST = (
    "name the old key under [keys] of the policy, because a KMS is asked for no key that the "
    "policy does not name"
)


def _check_under_footer_key(subject: ChunkSubject, wanted: str) -> Findings:
    tail = subject.of.tail
    try:
        name = subject.of.keys.describe(tail.key_metadata)
    except FormatError:
        # The check of the footer's key reports the damage.
        return
    if name is None:
        yield subject.finding(
            UNCHECKED_KEY_NAME,
            f"the policy says {wanted}, the column is under a footer key without a name",
        )
    elif name != wanted:
        yield subject.finding(
            COLUMN_UNDER_FOOTER_KEY,
            f"the policy says {wanted}, the column is under the footer key {short(name)}",
        )


def _key_bits(keys: FileKeys, key: DataKey | None, key_metadata: bytes | None) -> int | None:
    """Return the length of a data key in bits, from the key itself or its key material."""
    if key is not None:
        return 8 * len(key.key)
    try:
        material = None if key_metadata is None else keys.material(key_metadata)
        return None if material is None else _wrapped_bits(material)
    except (FormatError, KeyUnavailableError):
        # The check of the key's name reports the damage.
        return None


def _wrapped_bits(material: KeyMaterial) -> int | None:
    """Return the length of the wrapped key.

    Return None for a key that a KMS wrapped in a form of its own.
    """
    if material.kek is None:
        return None
    try:
        # Under a KEK the data key is sealed in a known form: nonce | ciphertext | tag.
        sealed = base64.b64decode(material.wrapped_dek, validate=True)
    except ValueError as exc:
        raise FormatError("wrappedDEK of the key material is not base64") from exc
    return 8 * (len(sealed) - cipher.NONCE_SIZE - cipher.TAG_SIZE)


def _check_bits(subject: Subject, of: FileSubject, bits: int | None) -> Findings:
    wanted = of.request.policy.encryption.data_key_bits
    if bits is not None and bits < wanted:
        yield subject.finding(
            KEY_TOO_SHORT, f"the policy says {wanted} bits, the data key has {bits}"
        )
