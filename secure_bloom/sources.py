"""What a caller points at: paths in, files out, and the keys of each file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from secure_bloom.errors import FormatError, KeyUnavailableError, PolicyError
from secure_bloom.keys import FileKeys, KeyResolver
from secure_bloom.storage import InputFile, below, join, local_path, name_of

#: How names of key material files begin.
KEY_MATERIAL_PREFIX = "_KEY_MATERIAL_FOR_"

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


def as_paths(paths: Paths) -> list[str]:
    """One path or many, as a list of texts; PolicyError for none."""
    try:
        many = [paths] if isinstance(paths, str | PathLike) else list(paths)
        texts = [os.fspath(path) for path in many]
    except TypeError as exc:
        raise PolicyError("a path is neither a text nor a Path") from exc
    if not texts:
        raise PolicyError("no path is given")
    return texts


def file_keys(resolver: KeyResolver, file: InputFile) -> FileKeys:
    """The keys of one file; key material stored beside it is read when it is first referred to."""
    return resolver.for_file(lambda: _external_material(file))


def _external_material(file: InputFile) -> Mapping[str, str]:
    """The key material file: reference -> key material, both text."""
    name = key_material_name(file.name)
    content = file.read_sibling(name)
    if content is None:
        raise KeyUnavailableError(
            f"its key material is stored outside, {name} is not beside it",
            hint="a data file that is moved or renamed needs its key material file to follow",
        )
    try:
        material = json.loads(content)
    except (ValueError, RecursionError):
        material = None
    if not isinstance(material, dict) or not all(isinstance(v, str) for v in material.values()):
        raise FormatError(f"{name} is not a JSON object of texts")
    return material


def key_material_name(name: str) -> str:
    """The name of the file beside the data file ``name`` that holds its key material."""
    return f"{KEY_MATERIAL_PREFIX}{name}.json"


def output_paths(files: Iterable[str], paths: Iterable[str], output: str) -> dict[str, str]:
    """Where each file goes below ``output``: its place below the folder it was found in."""
    folders = [local_path(path) for path in paths]
    targets: dict[str, str] = {}
    for file in files:
        places = [place for folder in folders if (place := below(file, folder)) is not None]
        targets[file] = join(local_path(output), min(places, key=len, default=name_of(file)))
    for file, target in targets.items():
        if Path(file).absolute() == Path(target).absolute():
            raise PolicyError(
                "the output would overwrite the input",
                hint="name another folder, or leave --output out to replace the files",
                path=file,
            )
    if len(set(targets.values())) < len(targets):
        raise PolicyError(
            "two input files would become one output file",
            hint="give the folder that holds them, so that their places below it are kept",
        )
    return targets
