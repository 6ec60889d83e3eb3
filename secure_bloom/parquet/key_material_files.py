"""Key material stored outside the data file, in ``_KEY_MATERIAL_FOR_<name>.json`` beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from secure_bloom.encryption.file_keys import ExternalReference, FileKeys, KeyMaterial, KeyResolver
from secure_bloom.errors import FormatError, KeyUnavailableError
from secure_bloom.running.bounded_documents import parsed_json
from secure_bloom.storage import InputFile

#: The beginning of the names of key material files.
KEY_MATERIAL_PREFIX = "_KEY_MATERIAL_FOR_"


def file_keys(resolver: KeyResolver, file: InputFile) -> FileKeys:
    """Return the keys of one file.

    Key material stored beside the file is read when the file first refers to it.
    """
    return resolver.for_file(lambda: read_material(file), path=file.path)


def read_material(file: InputFile) -> Mapping[str, str]:
    """Return the key material file beside ``file``: reference -> key material, both texts."""
    name = key_material_name(file.name)
    content = file.read_sibling(name)
    if content is None:
        raise KeyUnavailableError(
            f"its key material is stored outside, {name} is not beside it",
            hint="a data file that is moved or renamed needs its key material file to follow",
        )
    return parsed_material(name, content)


@contextmanager
def changed_before_missing(file: InputFile) -> Iterator[None]:
    """Raise FileChangedError instead of KeyUnavailableError if the file was replaced meanwhile.

    The key material beside the file then belongs to the new file.
    """
    try:
        yield
    except KeyUnavailableError:
        file.check_unchanged()
        raise


def outside_material(file: InputFile) -> Mapping[str, str]:
    """Return what :func:`read_material` returns, or {} if no such file is beside ``file``."""
    name = key_material_name(file.name)
    content = file.read_sibling(name)
    return {} if content is None else parsed_material(name, content)


def reference_of(key_metadata: bytes | None) -> str | None:
    """Return the name of the key material file's entry to which key metadata refers.

    Return None if the key material is inside the data file.
    """
    parsed = None if key_metadata is None else KeyMaterial.parse(key_metadata)
    return parsed.key_reference if isinstance(parsed, ExternalReference) else None


def parsed_material(name: str, content: bytes) -> Mapping[str, str]:
    """Return the content of the key material file ``name``.

    Raises FormatError unless it is a JSON object of texts.
    """
    try:
        material = parsed_json(content, "the key material")
    # The cause is not chained: the text of the file is wrapped keys, and json's errors hold it.
    except (ValueError, RecursionError):
        material = None
    if not isinstance(material, dict) or not all(isinstance(v, str) for v in material.values()):
        raise FormatError(f"{name} is not a JSON object of texts")
    return material


def key_material_name(name: str) -> str:
    """Return the name of the file beside the data file ``name`` that holds its key material."""
    return f"{KEY_MATERIAL_PREFIX}{name}.json"
