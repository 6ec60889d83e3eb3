"""Write data files together with their key material files.

    lock | old and new material | data file replaced | old material removed | lock released

At every moment, a key material file opens the data file beside it. Concurrent runs lose no key,
with locks (local files) and without (objects), because of four rules:

    1. Each run uses references of its own, and publishes them before the data that names them.
    2. A data file is replaced only if it is still the file that was read.
    3. A run removes references only after it has replaced the data, and only references that
       existed before it published its own. By rule 2, the run that published the older references
       can no longer replace the data.
    4. Each change of a material file is made on its latest content, or not at all.

Only a run that was killed or failed leaves references that no data names. They open nothing, and a
later run removes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count

from secure_bloom.encryption.file_keys import KeyMaterial
from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    MissingPathError,
    SecureBloomError,
    UnfinishedWriteError,
    UnsupportedFeatureError,
)
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.key_material_files import (
    key_material_name,
    outside_material,
    parsed_material,
    reference_of,
)
from secure_bloom.storage import (
    InputFile,
    has_conditional_writes,
    is_object_uri,
    name_of,
    open_input,
    remove_leftover,
    replace_tail,
    replacement,
    sibling,
    write_new,
)
from secure_bloom.storage.dispatch import remove_file
from secure_bloom.storage.rewritten_file import RewrittenFile

#: A change of a material file is tried so often while other runs change it, too.
_TRIES = 20
_Material = Mapping[str, str]


def replace_with_material(
    source: InputFile, keep: int, tail: Sequence[bytes], new: _Material, *, output: str | None
) -> tuple[int, tuple[str, ...]]:
    """Replace a data file as :func:`.storage.replace_tail` does, together with its key material.

    ``new`` is the material of the new file, empty if all its keys are inside the file.  Returns the
    new size in bytes, and notes on old key material that could not be removed.  Before anything is
    written, raises UnsupportedFeatureError if one reference would name a key of the old file and
    another key of the new file, and for a store without conditional writes.
    """
    path = source.path if output is None else output
    with (
        _replaced_by(output) as (over, must_be_new),
        replacement(source, keep, tail, output=output, over=over, must_be_new=must_be_new) as put,
    ):
        # Read under the lock: what was read earlier may be of another run by now.
        kept = _material_at(path)
        if not kept and not new:
            return put(), ()
        _require_conditions(path)
        added = _published(source, path, new, kept)
        try:
            size = put()
        except UnfinishedWriteError:
            # The data may be the new one.
            raise
        except (SecureBloomError, OSError):
            # The file that is there now decides.  If this fails too, references are left that
            # nothing names.
            with suppress(SecureBloomError):
                if _has_ended(source, path):
                    _remove_unnamed(source, path, added)
            raise
        return size, _retired(source, path, kept.keys() - new.keys())


def write_new_with_material(
    source: InputFile, keep: int, tail: Sequence[bytes], new: _Material, output: str
) -> int:
    """Write a new data file as :func:`.storage.write_new` does, together with its key material.

    The material is written first and never removed after an error: another attempt at the same file
    may have succeeded meanwhile.
    """
    if new:
        _require_conditions(output)
        _published(source, output, new, _material_at(output))
    return write_new(source, keep, tail, output)


def renew_material(
    file: InputFile, old: Mapping[str, KeyMaterial], new: Mapping[str, KeyMaterial]
) -> None:
    """Replace the key material of a file that stays unchanged.

    ``old`` is the material as read before. Other references are removed if no other run can have
    published them.  Raises FileChangedError if another run has renewed the keys meanwhile.  Hold
    the lock of the file.
    """
    _require_conditions(file.path)
    file.check_unchanged()
    texts = serialized(new)

    def renewed(found: _Material) -> _Material:
        if any(_parsed(found.get(name)) != material for name, material in old.items()):
            raise FileChangedError("its key material was changed after it was read")
        return texts if file.is_locked else {**found, **texts}

    _change(file, file.path, renewed)


def tidy_material(file: InputFile, named: set[str]) -> None:
    """Remove entries of the key material beside a data file that the file does not refer to.

    ``named`` are the references in the file, which this run left unchanged.  A run that was killed
    left the other entries.  Without a lock nothing is removed, because another run may be about to
    refer to them.
    """
    # What cannot be removed now is removed by a later run.
    with suppress(SecureBloomError):
        if not outside_material(file).keys() - named:
            return
        with file.exclusive():
            file.check_unchanged()
            if file.is_locked:
                _change(file, file.path, lambda found: _only(found, named))


def remove_leftovers(path: str) -> None:
    """Remove what a killed run left beside a data file that needs no writing."""
    remove_leftover(path)
    remove_leftover(_place(path))


def serialized(materials: Mapping[str, KeyMaterial]) -> dict[str, str]:
    """Return the content of a key material file."""
    return {reference: it.serialize().decode() for reference, it in materials.items()}


@contextmanager
def _replaced_by(output: str | None) -> Iterator[tuple[InputFile | None, bool]]:
    """Yield the file at ``output``, and whether no file may be there.

    Yield no file without output.
    """
    if output is None:
        yield None, False
        return
    try:
        over = open_input(output)
    except MissingPathError:
        yield None, True
    except FormatError:
        # A folder, which is refused later, or an empty file, which names no key.
        yield None, False
    else:
        with over:
            yield over, False


def _require_conditions(path: str) -> None:
    if not has_conditional_writes(path):
        raise UnsupportedFeatureError(
            "key material outside files is not written to this store: it has no conditional "
            "writes, so one of two runs at once could lose the keys of a file",
            hint='keys inside the files (key_material = "internal") are safe there',
        )


def _published(source: InputFile, path: str, new: _Material, kept: _Material) -> frozenset[str]:
    """Write the new material beside the existing one. Return the references that are new."""

    # Old references stay until the data is replaced: a run that is killed here leaves a file that
    # opens.
    def merged(found: _Material) -> _Material:
        _refuse_one_name_for_two(found, new)
        return {**found, **new}

    _refuse_one_name_for_two(kept, new)
    _change(source, path, merged)
    return frozenset(new.keys() - kept.keys())


def _refuse_one_name_for_two(found: _Material, new: _Material) -> None:
    # parquet-java calls the keys of each file footerKey, columnKey1 and so on.
    if any(found.get(reference, text) != text for reference, text in new.items()):
        raise UnsupportedFeatureError(
            "another file with key material outside is there, and both call their keys by the "
            "same names: a run that is killed could leave data with the key material of the other",
            hint="remove that file with its key material, or name another folder",
        )


def _retired(source: InputFile, path: str, old: set[str]) -> tuple[str, ...]:
    """Remove the old references. If that fails, return a note, because the data file is written."""
    try:
        _remove_unnamed(source, path, old)
    except SecureBloomError as error:
        return (f"key material of the old file stays, the next run removes it: {error}",)
    return ()


def _remove_unnamed(source: InputFile, path: str, references: frozenset[str] | set[str]) -> None:
    """Remove references beside the data file at ``path``, unless that file names one of them."""
    if references and not _names_any(path, references):
        _change(source, path, lambda found: _only(found, found.keys() - references))


def _has_ended(source: InputFile, path: str) -> bool:
    """Return whether a write of ``path`` that failed cannot take effect any more.

    A layer below may have repeated the request to a store. The first request may then still be
    under way, whatever the answer to the second request is.  The first request cannot take effect
    once another object has replaced its target.
    """
    if not is_object_uri(path):
        return True
    if path != source.path:
        return False
    try:
        source.check_unchanged()
    except (FileChangedError, MissingPathError):
        return True
    return False


def _names_any(path: str, references: frozenset[str] | set[str]) -> bool:
    """Return whether the footer of the file at ``path`` is under one of these references."""
    try:
        with open_input(path) as file:
            # Each writing has a key of its own for the footer, so that one decides.
            return reference_of(read_tail(file).key_metadata) in references
    except MissingPathError:
        return False


def _material_at(path: str) -> _Material:
    try:
        with open_input(_place(path)) as stored:
            return parsed_material(stored.name, stored.all_bytes())
    except MissingPathError:
        return {}


def _change(like: InputFile, path: str, change: Callable[[_Material], _Material]) -> None:
    """Change the key material beside the data file at ``path``, from its latest content.

    A new file gets the permissions of the file ``like``.
    """
    place = _place(path)
    for number in count(1):
        try:
            stored = open_input(place)
        except MissingPathError:
            stored = None
        found = {} if stored is None else parsed_material(stored.name, stored.all_bytes())
        new = change(found)
        try:
            if new != found:
                _put(like, place, stored, new)
            else:
                # A run that was killed right after its write left the old content beside it.
                remove_leftover(place)
            return
        except FileChangedError:
            # Another run has changed it meanwhile.
            if number == _TRIES:
                raise
        finally:
            if stored is not None:
                stored.close()


def _put(like: InputFile, place: str, stored: InputFile | None, new: _Material) -> None:
    """Write the whole file if it is still the file that was read."""
    content = json.dumps(dict(new), separators=(",", ":")).encode()
    if stored is None:
        new_file = RewrittenFile(like, [content])
        replace_tail(new_file, 0, (), output=place, must_be_new=True)
    # An empty one stays where a file cannot be removed on a condition.
    elif new or not remove_file(place, only=stored):
        replace_tail(stored, 0, [content])


def _place(path: str) -> str:
    return sibling(path, key_material_name(name_of(path)))


def _only(material: _Material, references: set[str]) -> _Material:
    return {name: text for name, text in material.items() if name in references}


def _parsed(text: str | None) -> object:
    return None if text is None else KeyMaterial.parse(text.encode())
