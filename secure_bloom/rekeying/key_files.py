"""Key material files of files whose keys change: at every moment one opens the data beside it.

    old and new material | data file replaced | new material alone

References of a new writing are fresh, so old and new material can stand in one file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from secure_bloom.parquet.key_material_files import key_material_name, read_material
from secure_bloom.storage import InputFile, name_of, open_input, replace_tail, sibling
from secure_bloom.storage.siblings import remove_sibling


def carried(file: InputFile, target: str | None) -> Mapping[str, str]:
    """The material that must stay until the data file is replaced; none for a new file."""
    if target is not None or file.read_sibling(key_material_name(file.name)) is None:
        return {}
    return read_material(file)


def publish_material(
    file: InputFile, target: str | None, new: Mapping[str, str], *, kept: Mapping[str, str]
) -> None:
    """Write the new material, with what is kept, beside the data file that is to be."""
    if new:
        write_material(file, file.path if target is None else target, {**kept, **new})


def retire_material(file: InputFile, target: str | None, new: Mapping[str, str]) -> None:
    """Leave the new material alone beside a data file that was replaced."""
    if target is not None or file.read_sibling(key_material_name(file.name)) is None:
        return
    with open_input(file.path) as replaced:
        if new:
            write_material(replaced, file.path, new)
        else:
            remove_sibling(replaced, key_material_name(file.name))


def write_material(file: InputFile, data_path: str, material: Mapping[str, str]) -> None:
    """Write the whole key material file beside a data file, atomically; ``file`` is one like it."""
    content = json.dumps(dict(material), separators=(",", ":")).encode()
    path = sibling(data_path, key_material_name(name_of(data_path)))
    replace_tail(file, 0, [content], output=path)
