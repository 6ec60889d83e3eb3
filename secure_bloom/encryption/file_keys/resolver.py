"""Find the data keys of a file by its key metadata.

PKMT1 key material is unwrapped by the KMS.  Free-form metadata is the name of a data key, as UTF-8
text.  If neither gives a key, the key that the caller gave for the footer or the column is used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from secure_bloom.encryption.file_keys import wrapping
from secure_bloom.encryption.file_keys.material import ExternalReference, KeyMaterial
from secure_bloom.encryption.file_keys.wrapping import KekCache
from secure_bloom.encryption.kms.client import KeyInventory, KmsClient
from secure_bloom.encryption.kms.keyring import ExplicitKeys, Keyring
from secure_bloom.encryption.trust import Trust
from secure_bloom.errors import FormatError, KeyUnavailableError, PolicyError, SecureBloomError

#: Content of a `_KEY_MATERIAL_FOR_<file>.json`: reference -> the JSON of its key material.
ExternalMaterial = Mapping[str, bytes | str]

#: Key metadata whose parsed form is kept for one file, which has one for each of its keys.
_MOST_PARSED = 1_000
#: Characters of free-form metadata that are shown.
_MAX_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DataKey:
    """The data key of a footer or a column.

    ``name`` is the master key's id, or the file's own name for the key.
    """

    key: bytes = field(repr=False)
    name: str | None


class KeyResolver:
    """Finds the keys of many files during one run. Safe for threads. Cannot be pickled.

    ``keys`` is a :class:`Keyring`, any :class:`KmsClient`, :class:`ExplicitKeys`, or None if the
    run needs no key.  Raises PolicyError for anything else.  ``trust`` is what the run requires of
    files.  ``explicit`` replaces the keys that need no KMS.
    """

    def __init__(
        self,
        keys: Keyring | KmsClient | ExplicitKeys | None,
        trust: Trust | None = None,
        *,
        explicit: ExplicitKeys | None = None,
    ) -> None:
        self.trust = Trust() if trust is None else trust
        self._kms, self._explicit = _sources(keys)
        if explicit is not None:
            self._explicit = explicit
        self._has_keys = keys is not None
        # isinstance of a Protocol is slow, and a table has many keys: so it is called once.
        self._inventory: KeyInventory | None = (
            self._kms if isinstance(self._kms, KeyInventory) else None
        )
        self._keks = KekCache()
        #: The master keys that were asked for.
        self.used: set[str] = set()

    def for_file(
        self,
        external: Callable[[], ExternalMaterial] | None = None,
        *,
        path: str | None = None,
    ) -> FileKeys:
        """Return the keys of one file. Its ``path`` says which table's rules it must fulfil.

        ``external`` returns the content of the file's key material file.  It is called at most
        once, when the file first refers to it, and may raise a SecureBloomError if there is no such
        file.
        """
        trust = self.trust if path is None else self.trust.for_file(path)
        return FileKeys(self, external, trust)

    def unwrap(self, material: KeyMaterial) -> bytes | None:
        """Return the data key in ``material``, or None if no known KMS has its master key.

        Raises KeyUnavailableError when the KMS refuses, or when its master key did not wrap this
        key.
        """
        kms = self._kms
        # None and no error: the caller may have the key by its place.
        if kms is None or not self._may_have(material.master_key_id):
            return None
        # Noted before the call, because a key that the KMS refuses was asked for too.
        self.used.add(material.master_key_id)
        return wrapping.unwrap(material, kms, self._keks)

    def known_keys(self) -> tuple[bytes, ...]:
        """Return the keys that are in memory: keyring keys and explicit keys, none of a KMS."""
        explicit = self._explicit
        held = [*explicit.columns.values(), *explicit.data_keys.values()]
        held += [] if explicit.footer is None else [explicit.footer]
        held += self._kms.master_keys.values() if isinstance(self._kms, Keyring) else []
        return tuple(held)

    @property
    def calls(self) -> int:
        """Number of calls that a KMS has answered. Always 0 for a keyring, which needs no call."""
        return 0 if isinstance(self._kms, Keyring) else self._keks.unwrapped

    def _may_have(self, master_key_id: str) -> bool:
        """Return whether the KMS may have the master key. True for a KMS that cannot say."""
        return self._inventory is None or self._inventory.has_key(master_key_id)

    @property
    def accepts_unverified(self) -> bool:
        """Whether a signed footer whose key is missing may be read.

        A caller who gives keys or a policy expects signatures to be checked.  Without both, no
        signature could be checked.
        """
        with_any = self._has_keys or self.trust.policy is not None
        return self.trust.allow_unverified or not with_any

    @property
    def kms(self) -> KmsClient | None:
        """The client that unwraps keys, or None."""
        return self._kms

    @property
    def explicit(self) -> ExplicitKeys:
        """The keys that need no KMS."""
        return self._explicit


class FileKeys:
    """The keys of one file, from :meth:`KeyResolver.for_file`.

    ``key_metadata`` is the footer's or the column's key metadata as the file stores it, or None if
    the file stores none.  Every method raises FormatError for damaged key material.
    """

    def __init__(
        self,
        resolver: KeyResolver,
        external: Callable[[], ExternalMaterial] | None,
        trust: Trust,
    ) -> None:
        self._resolver = resolver
        self.trust = trust
        self.accepts_unverified = resolver.accepts_unverified
        self._explicit = resolver.explicit
        self._external = external
        self._material: ExternalMaterial | None = None
        self._parsed: dict[bytes, KeyMaterial | ExternalReference | None] = {}

    @property
    def aad_prefix(self) -> bytes | None:
        """The AAD prefix that the caller supplies, for files that do not store their prefix."""
        return self._explicit.aad_prefix

    def footer_key(self, key_metadata: bytes | None) -> DataKey:
        """Return the key of the footer. Raises KeyUnavailableError when it is not available."""
        return self._find("the footer", key_metadata, self._explicit.footer)

    def column_key(self, path: str, key_metadata: bytes | None) -> DataKey:
        """Return the key of the column at a dotted ``path``.

        Raises KeyUnavailableError when the key is not available.
        """
        return self._find(f"column {path}", key_metadata, self._explicit.columns.get(path))

    def describe(self, key_metadata: bytes | None) -> str | None:
        """Return the name of the key without using any key.

        Return None if the file does not name the key. The name is a master key's id, or free-form
        metadata that is printable text.
        """
        if key_metadata is None:
            return None
        material = self.parsed(key_metadata)
        if isinstance(material, ExternalReference):
            try:
                material = self._referred(material)
            except SecureBloomError:
                # A file that lost its key material can still be described, without this name.
                return None
        return _printable(_utf8(key_metadata)) if material is None else material.master_key_id

    def material(self, key_metadata: bytes) -> KeyMaterial | None:
        """Return the key material in the metadata, or the material in the file that it refers to.

        Return None for free-form metadata.  Raises KeyUnavailableError if the material file has no
        entry of that name.
        """
        material = self.parsed(key_metadata)
        return self._referred(material) if isinstance(material, ExternalReference) else material

    def parsed(self, key_metadata: bytes) -> KeyMaterial | ExternalReference | None:
        """Return what :meth:`KeyMaterial.parse` returns. Each row group of a file repeats it."""
        if key_metadata not in self._parsed:
            found = KeyMaterial.parse(key_metadata)
            if len(self._parsed) >= _MOST_PARSED:
                return found
            self._parsed[key_metadata] = found
        return self._parsed[key_metadata]

    def _find(self, owner: str, key_metadata: bytes | None, explicit: bytes | None) -> DataKey:
        # The metadata goes first: the file itself says which key it was written with, while a key
        # given by its place may belong to another version of the table.
        name = None
        if key_metadata is not None:
            name, key = self._by_metadata(key_metadata)
            if key is not None:
                return self._accepted(owner, DataKey(key=key, name=name))
        if explicit is not None:
            return self._accepted(owner, DataKey(key=explicit, name=name))
        raise _unavailable(owner, name)

    def _accepted(self, owner: str, key: DataKey) -> DataKey:
        """Return the key. Raises PolicyError if the policy wants a longer key."""
        self.trust.check_key_length(owner, 8 * len(key.key))
        return key

    def _by_metadata(self, key_metadata: bytes) -> tuple[str | None, bytes | None]:
        material = self.material(key_metadata)
        if material is not None:
            return material.master_key_id, self._resolver.unwrap(material)
        text = _utf8(key_metadata)
        key = None if text is None else self._explicit.data_keys.get(text)
        return _printable(text), key

    def _referred(self, reference: ExternalReference) -> KeyMaterial:
        if self._material is None:
            # The file is read when it is referred to: most files have none, and looking costs a
            # request in an object store.
            self._material = {} if self._external is None else self._external()
        stored = self._material.get(reference.key_reference)
        if stored is None:
            raise KeyUnavailableError(
                f"there is no key material {reference.key_reference!r} beside the file",
                hint="`_KEY_MATERIAL_FOR_<file name>.json` must be in the folder of the data file",
            )
        material = KeyMaterial.parse(stored if isinstance(stored, bytes) else stored.encode())
        # A reference here is refused too: one that leads to another could lead round in a circle.
        if not isinstance(material, KeyMaterial):
            raise FormatError(
                f"{reference.key_reference!r} beside the file is not PKMT1 key material"
            )
        return material


def explicit_keys(keys: Keyring | KmsClient | ExplicitKeys | None) -> ExplicitKeys:
    """Return the data keys in ``keys`` that need no KMS."""
    return _sources(keys)[1]


def _sources(
    keys: Keyring | KmsClient | ExplicitKeys | None,
) -> tuple[KmsClient | None, ExplicitKeys]:
    if keys is None:
        return None, ExplicitKeys()
    if isinstance(keys, ExplicitKeys):
        return None, keys
    # Before the test for a KmsClient, which a keyring is too.
    if isinstance(keys, Keyring):
        explicit = keys.explicit or ExplicitKeys()
        data_keys = {**keys.data_keys, **explicit.data_keys}
        return keys, dataclasses.replace(explicit, data_keys=data_keys)
    if isinstance(keys, KmsClient):
        return keys, ExplicitKeys()
    raise PolicyError(
        f"keys are of type {type(keys).__name__}, wanted a Keyring, ExplicitKeys or an object with "
        "wrap_key and unwrap_key"
    )


def _utf8(key_metadata: bytes) -> str | None:
    try:
        return key_metadata.decode()
    except UnicodeDecodeError:
        return None


def _printable(text: str | None) -> str | None:
    """Return the text if it can be the name of a key, or None for other texts, such as JSON."""
    # It comes from a file and is shown: control characters could drive a terminal.
    if not text or not text.isprintable() or text.startswith("{"):
        return None
    return text if len(text) <= _MAX_NAME else f"{text[:_MAX_NAME]}..."


def _unavailable(owner: str, name: str | None) -> KeyUnavailableError:
    if name is None:
        return KeyUnavailableError(
            f"the key of {owner} is not available, and the file does not name it",
            hint="give the key of the footer or column: in the 'explicit' part of a keyring, "
            "or by ExplicitKeys",
        )
    return KeyUnavailableError(
        f"key {name!r} of {owner} is not available",
        hint="give a keyring that has it, or the KMS that the file was written with: --keyring "
        "FILE or --policy FILE, in Python keys= or policy=",
    )
