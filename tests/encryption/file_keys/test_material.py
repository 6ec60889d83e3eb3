"""PKMT1 key material: both ways, as others write it, and hostile."""

from __future__ import annotations

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.encryption.file_keys import ExternalReference, KeyMaterial
from secure_bloom.encryption.file_keys.material import WrappedKek
from secure_bloom.errors import FormatError, SecureBloomError, UnsupportedFeatureError

#: All that `str.isprintable` lets pass.
names = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1)
#: What pyarrow 26 wrote for the footer of a file with double wrapping.
PYARROW_FOOTER = (
    b'{"keyMaterialType":"PKMT1","internalStorage":true,"isFooterKey":true,'
    b'"kmsInstanceID":"DEFAULT","kmsInstanceURL":"DEFAULT","masterKeyID":"kf",'
    b'"wrappedDEK":"ldmqF3tNlcZrt5osV4FL37LYe6ffrfQM/ZfhMCbOoh/W9WuSBbAD6/vkiiY=",'
    b'"doubleWrapping":true,"keyEncryptionKeyID":"WIDFqfCyipL9pe58MtUuag==",'
    b'"wrappedKEK":"edkcAE5dg2/oO6WJzide5A=="}'
)
FIELDS = json.loads(PYARROW_FOOTER)


def encoded(**changes: object) -> bytes:
    """The fields of a valid material with changes; None takes a field out."""
    fields = {**FIELDS, **changes}
    return json.dumps({k: v for k, v in fields.items() if v is not None}).encode()


def test_pyarrows_material_both_ways() -> None:
    material = KeyMaterial.parse(PYARROW_FOOTER)
    assert material == KeyMaterial(
        is_footer_key=True,
        master_key_id="kf",
        wrapped_dek=FIELDS["wrappedDEK"],
        kek=WrappedKek(
            kek_id=base64.b64decode(FIELDS["keyEncryptionKeyID"]), wrapped=FIELDS["wrappedKEK"]
        ),
        kms_instance_id="DEFAULT",
        kms_instance_url="DEFAULT",
    )
    assert isinstance(material, KeyMaterial)
    assert material.serialize() == PYARROW_FOOTER


@given(
    st.builds(
        KeyMaterial,
        is_footer_key=st.booleans(),
        master_key_id=names,
        wrapped_dek=names,
        kek=st.none()
        | st.builds(WrappedKek, kek_id=st.binary(min_size=16, max_size=16), wrapped=names),
        kms_instance_id=st.none() | names,
        kms_instance_url=st.none() | names,
        internal_storage=st.booleans(),
    )
)
def test_any_material_both_ways(material: KeyMaterial) -> None:
    assert KeyMaterial.parse(material.serialize()) == material


def test_a_reference_to_external_material() -> None:
    metadata = b'{"keyMaterialType":"PKMT1","internalStorage":false,"keyReference":"columnKey0"}'
    assert KeyMaterial.parse(metadata) == ExternalReference(key_reference="columnKey0")


@pytest.mark.parametrize(
    "metadata", [b"", b"kf", b"\xff\xfe", b"{", b"[]", b"5", b'"PKMT1"', b"{}", b'{"a":1,"a":2}']
)
def test_free_form_metadata(metadata: bytes) -> None:
    assert KeyMaterial.parse(metadata) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"isFooterKey": None},
        {"isFooterKey": "true"},
        {"isFooterKey": 1},
        {"internalStorage": "true"},
        {"internalStorage": False},
        {"masterKeyID": None},
        {"masterKeyID": ""},
        {"masterKeyID": 7},
        {"masterKeyID": "\x1b[2J"},
        {"masterKeyID": "\ud800"},
        {"wrappedDEK": None},
        {"wrappedDEK": ["AAAA"]},
        {"doubleWrapping": None},
        {"doubleWrapping": "yes"},
        {"keyEncryptionKeyID": None},
        {"keyEncryptionKeyID": "%"},
        {"keyEncryptionKeyID": "é"},
        {"keyEncryptionKeyID": "AAAA"},
        {"wrappedKEK": None},
        {"wrappedKEK": {}},
        {"kmsInstanceID": 5},
    ],
)
def test_damaged_material_is_refused_by_the_fields_name(changes: dict[str, object]) -> None:
    (name,) = changes
    wanted = "keyReference" if changes == {"internalStorage": False} else name
    with pytest.raises(FormatError, match=wanted):
        KeyMaterial.parse(encoded(**changes))


def test_a_field_that_stands_twice_is_refused() -> None:
    doubled = PYARROW_FOOTER.replace(b'"masterKeyID":"kf"', b'"masterKeyID":"a","masterKeyID":"b"')
    with pytest.raises(FormatError, match="twice"):
        KeyMaterial.parse(doubled)


def test_another_type_of_material_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="PKMT1"):
        KeyMaterial.parse(encoded(keyMaterialType="PKMT2"))


def test_the_size_is_bounded() -> None:
    with pytest.raises(FormatError, match="at most 65536"):
        KeyMaterial.parse(encoded(wrappedDEK="A" * 70_000))


def test_deep_nesting_is_free_form() -> None:
    assert KeyMaterial.parse(b"[" * 60_000) is None


@given(st.data())
def test_altered_bytes_raise_nothing_unexpected(data: st.DataObject) -> None:
    altered = bytearray(PYARROW_FOOTER)
    for _ in range(data.draw(st.integers(1, 4))):
        altered[data.draw(st.integers(0, len(altered) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(SecureBloomError):
        KeyMaterial.parse(bytes(altered))


@given(names)
def test_a_reference_to_outside_material_both_ways(name: str) -> None:
    reference = ExternalReference(key_reference=name)
    assert KeyMaterial.parse(reference.serialize()) == reference
