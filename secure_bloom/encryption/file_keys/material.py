"""Key material PKMT1: the JSON of parquet-java and pyarrow that says how a data key is wrapped.

With internal storage the material is the file's ``key_metadata`` itself. With external storage it
is in ``_KEY_MATERIAL_FOR_<file>.json``, and the ``key_metadata`` refers to it.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from secure_bloom.errors import FormatError, UnsupportedFeatureError

_TYPE = "PKMT1"
#: parquet-java and pyarrow draw 16 random bytes for the id of a key encryption key.
KEK_ID_SIZE = 16
#: Most bytes to parse.  Real material has about 400 bytes, or a few thousand with the ciphertexts
#: and ARNs of a cloud KMS.
_MAX_SIZE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalReference:
    """Key metadata that refers to key material stored beside the file, by the name of its entry."""

    key_reference: str

    def serialize(self) -> bytes:
        """Return the JSON that :meth:`KeyMaterial.parse` reads."""
        fields = {
            "keyMaterialType": _TYPE,
            "internalStorage": False,
            "keyReference": self.key_reference,
        }
        return json.dumps(fields, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedKek:
    """A key encryption key (KEK) as the KMS wrapped it, and its id of 16 random bytes."""

    kek_id: bytes
    wrapped: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMaterial:
    """The wrapped form of one data encryption key (DEK).

    Single wrapping: ``wrapped_dek`` is the DEK wrapped by the KMS under ``master_key_id``. Double
    wrapping: ``kek`` is a key encryption key wrapped by the KMS, and ``wrapped_dek`` is
    base64(nonce | ciphertext | tag) of the DEK under that KEK, with the 16 bytes of the KEK's id as
    AAD.
    """

    is_footer_key: bool
    master_key_id: str
    wrapped_dek: str = field(repr=False)
    kek: WrappedKek | None = None
    kms_instance_id: str | None = None
    kms_instance_url: str | None = None
    internal_storage: bool = True

    @classmethod
    def parse(cls, key_metadata: bytes) -> KeyMaterial | ExternalReference | None:
        """Return the material in ``key_metadata``.

        Return None for free-form metadata, which is not PKMT1 JSON. Raises FormatError for PKMT1
        JSON with missing or wrong fields, UnsupportedFeatureError for key material of another type.
        """
        fields = _json_object(key_metadata)
        # JSON of another tool is no key material, and may still name a key.
        if fields is None or "keyMaterialType" not in fields:
            return None
        if fields["keyMaterialType"] != _TYPE:
            raise UnsupportedFeatureError(f"key material of a type other than {_TYPE}")
        # Material in its external file has no word on its storage.
        if "internalStorage" in fields and not _flag(fields, "internalStorage"):
            return ExternalReference(key_reference=_text(fields, "keyReference"))
        return cls(
            is_footer_key=_flag(fields, "isFooterKey"),
            master_key_id=_master_key_id(fields),
            wrapped_dek=_text(fields, "wrappedDEK"),
            kek=_kek(fields) if _flag(fields, "doubleWrapping") else None,
            kms_instance_id=_optional_text(fields, "kmsInstanceID"),
            kms_instance_url=_optional_text(fields, "kmsInstanceURL"),
            # Written again as it was read: with the word if it had one, which was true.
            internal_storage="internalStorage" in fields,
        )

    def serialize(self) -> bytes:
        """Return the JSON as pyarrow writes it: without spaces, the fields in pyarrow's order."""
        fields: dict[str, object] = {"keyMaterialType": _TYPE}
        # In its external file parquet-java writes material without the word, and so do we.
        if self.internal_storage:
            fields["internalStorage"] = True
        fields["isFooterKey"] = self.is_footer_key
        if self.kms_instance_id is not None:
            fields["kmsInstanceID"] = self.kms_instance_id
        if self.kms_instance_url is not None:
            fields["kmsInstanceURL"] = self.kms_instance_url
        fields["masterKeyID"] = self.master_key_id
        fields["wrappedDEK"] = self.wrapped_dek
        fields["doubleWrapping"] = self.kek is not None
        if self.kek is not None:
            fields["keyEncryptionKeyID"] = base64.b64encode(self.kek.kek_id).decode("ascii")
            fields["wrappedKEK"] = self.kek.wrapped
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


#: All fields of key material, and of a reference to it.
#: The fields of a reference to material outside, and those of a key that wraps another one.
_REFERENCE = frozenset({"keyMaterialType", "internalStorage", "keyReference"})
_OF_KEK = frozenset({"keyEncryptionKeyID", "wrappedKEK"})
_FIELDS = frozenset(
    {
        *("keyMaterialType", "internalStorage", "keyReference", "isFooterKey", "masterKeyID"),
        *("kmsInstanceID", "kmsInstanceURL", "wrappedDEK", "doubleWrapping"),
        *("keyEncryptionKeyID", "wrappedKEK"),
    }
)


def count_unknown_fields(key_metadata: bytes) -> int:
    """Return how many fields of key material no reader reads. Free-form metadata has no fields."""
    fields = _json_object(key_metadata)
    if fields is None or "keyMaterialType" not in fields:
        return 0
    known = _FIELDS - {"keyReference"} if "wrappedDEK" in fields else _REFERENCE
    if not fields.get("doubleWrapping"):
        known = known - _OF_KEK
    return sum(name not in known and value is not None for name, value in fields.items())


# An audit parses each text of a file and counts its unknown fields.
@functools.lru_cache(maxsize=16)
def _json_object(key_metadata: bytes) -> Mapping[str, object] | None:
    # The bytes come from a file, and JSON needs many times its size in memory.
    if len(key_metadata) > _MAX_SIZE:
        raise FormatError(
            f"key metadata of {len(key_metadata)} bytes, at most {_MAX_SIZE} are read"
        )
    try:
        value = _DECODER.decode(key_metadata.decode())
    # Free-form metadata may be any bytes (Encryption.md 4.3), and so may nested brackets be.
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    # If a name occurs twice, some parsers take the first field, others the last.  A file could show
    # one master key to an auditor and another one to a reader.
    if len(fields) < len(pairs) and "keyMaterialType" in fields:
        raise FormatError("a field of the key material occurs twice")
    return fields


#: Made once: every file of a table has such metadata, for each of its keys.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def _kek(fields: Mapping[str, object]) -> WrappedKek:
    try:
        # `validate`, because Python else skips foreign characters, and two texts would be one id.
        kek_id = base64.b64decode(_text(fields, "keyEncryptionKeyID"), validate=True)
    except ValueError as exc:
        raise FormatError("keyEncryptionKeyID of the key material is not base64") from exc
    # The id is the AAD of the wrapped DEK, and KEKs are cached by it.
    if len(kek_id) != KEK_ID_SIZE:
        raise FormatError(
            f"keyEncryptionKeyID of the key material has {len(kek_id)} bytes, wanted {KEK_ID_SIZE}"
        )
    return WrappedKek(kek_id=kek_id, wrapped=_text(fields, "wrappedKEK"))


def _master_key_id(fields: Mapping[str, object]) -> str:
    name = _text(fields, "masterKeyID")
    # The id is shown to people: control characters in it could drive their terminal.
    if not name.isprintable():
        raise FormatError("masterKeyID of the key material is not printable text")
    return name


def _flag(fields: Mapping[str, object], name: str) -> bool:
    value = fields.get(name)
    if not isinstance(value, bool):
        raise FormatError(f"{name} of the key material is missing, or not true or false")
    return value


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise FormatError(f"{name} of the key material is missing, or not a text")
    return value


def _optional_text(fields: Mapping[str, object], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)
