"""Replace and remove objects: choose the store's package, and hand it the object and its source.

S3, Azure and Google Cloud Storage are written through their own SDKs, with conditions. HDFS is
written through pyarrow, under a hidden name beside the old file, and then renamed.

pyarrow's output streams cannot be aborted: closing one, leaving its ``with`` block or losing the
last reference to it completes the file with the bytes so far (apache/arrow#40502), and opening one
empties the old file.  Hence the new file is written under another name.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from pyarrow import fs

from secure_bloom.errors import FileChangedError, FormatError, MissingPathError
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.object_writer import (
    NO_CONDITIONS,
    Conditions,
    Origin,
    Sdk,
    StoredObject,
    sdk_of,
    uploaded_parts,
)
from secure_bloom.storage.objects import (
    arrow_location,
    first_contact,
    open_object,
    require_answer,
    store_errors,
)
from secure_bloom.storage.paths import is_object_uri
from secure_bloom.storage.stores import store_of
from secure_bloom.storage.write_permit import require_permit


def write_beside(
    filesystem: Any,
    key: str,
    chunks: Iterable[bytes],
    size: int,
    check: Callable[[], None],
) -> None:
    """Write under a hidden name, then rename. The rename is atomic if the store's is.

    ``check`` is called right before the file becomes visible, and may raise to prevent that.  After
    an exception, the old object of the key is still there.  HDFS refuses to rename onto a file, so
    pyarrow deletes the old file first: a kill between the two leaves the new content under the
    hidden name only.  A kill before that leaves a part of the new content under the hidden name.
    """
    folder, _, name = key.rpartition("/")
    # Hidden by its dot: Spark and this package pass over such names when they list a folder.
    staged = f"{folder}/.{name}.{secrets.token_hex(4)}.secure-bloom"
    filesystem.create_dir(folder)
    try:
        with filesystem.open_output_stream(staged, compression=None) as stream:
            for chunk in chunks:
                stream.write(chunk)
        # Asked of the store, because closing a stream may complete a file that lacks its last
        # bytes.
        written = filesystem.get_file_info(staged).size
        if written != size:
            raise FormatError(f"the store holds {written} bytes of the new file, not {size}")
        check()
        filesystem.move(staged, key)
    except BaseException:
        with contextlib.suppress(Exception):
            filesystem.delete_file(staged)
        raise


def replace_object(
    source: InputFile,
    keep: int,
    tail: Sequence[bytes],
    path: str,
    *,
    over: InputFile | None = None,
    must_be_new: bool = False,
) -> int:
    """Write ``keep`` bytes of source and the tail as the object at ``path``. Return its size.

    With ``must_be_new`` no object may be there, and with ``over`` no other one.  Stores with an SDK
    check this by conditions.  HDFS is asked right before the new file becomes visible, so another
    writer can still be faster.
    """
    filesystem, key = arrow_location(path)
    with store_errors(path), source.exclusive():
        _require_ready(filesystem, key)
        if store_of(filesystem).module:
            sdk, target = stored_at(path, filesystem, key)
            with sdk.errors(path):
                origin = _origin(source, target)
                write = sdk.Writer(
                    target,
                    origin,
                    source.check_unchanged,
                    must_be_new=must_be_new,
                    over=None if over is None else store_of(filesystem).mark(over.identity),
                )
                return write.replace(source, keep, tail)
        return _replace_file(source, keep, tail, path, must_be_new=must_be_new)


def put_object(path: str, content: bytes, *, must_be_new: bool) -> None:
    """Write an object, in one request if it is small.

    Raises FileChangedError for an object that ``must_be_new`` but is there with other content: a
    layer below may have repeated the request.  A store without an SDK cannot know that.
    """
    filesystem, key = arrow_location(path)
    with store_errors(path):
        _require_ready(filesystem, key)
    if store_of(filesystem).module is None and not must_be_new:
        with (
            store_errors(path),
            filesystem.open_output_stream(key, compression=None) as stream,
        ):
            stream.write(content)
        return
    sdk, target = stored_at(path, filesystem, key)
    try:
        with store_errors(path), sdk.errors(path):
            write = sdk.Writer(target, None, _no_source, must_be_new=must_be_new)
            write.write(uploaded_parts([content], len(content)))
    except FileChangedError:
        with open_object(path) as found:
            if found.size != len(content) or found.all_bytes() != content:
                raise


def _no_source() -> None:
    """Check nothing, because the content comes from memory."""


def remove_object(path: str, *, only: InputFile | None = None) -> bool:
    """Remove the object at ``path``. With ``only``, remove just that object.

    Return False, and remove nothing, if the store cannot do that on a condition.
    """
    require_permit()
    filesystem, key = arrow_location(path)
    with store_errors(path):
        _require_ready(filesystem, key)
    if only is None and store_of(filesystem).module is None:
        with store_errors(path):
            filesystem.delete_file(key)
        return True
    mark = None if only is None else store_of(filesystem).mark(only.identity)
    if only is not None and (mark is None or not conditions_at(path).removals):
        return False
    # Not by pyarrow, which leaves an empty object in the place of an empty folder.
    sdk, target = stored_at(path, filesystem, key)
    try:
        with sdk.errors(path):
            sdk.remove(target, mark)
    except (FileChangedError, MissingPathError):
        # A repeated request finds the object gone that the first one has removed.
        with store_errors(path):
            if filesystem.get_file_info(key).type != fs.FileType.NotFound:
                raise
    return True


def _require_ready(filesystem: Any, key: str) -> None:
    """Raise an error if the store lacks its SDK here, or does not answer."""
    if store_of(filesystem).module:
        sdk_of(store_of(filesystem))
    require_answer(filesystem, key)


def conditions_at(path: str) -> Conditions:
    """Return the conditions that the store of ``path`` honours."""
    filesystem, key = arrow_location(path)
    if not store_of(filesystem).module:
        return NO_CONDITIONS
    with store_errors(path):
        _require_ready(filesystem, key)
    sdk, target = stored_at(path, filesystem, key)
    with sdk.errors(path):
        return sdk.conditions(target)


def stored_at(path: str, filesystem: Any, key: str) -> tuple[Sdk, StoredObject]:
    """Return the module with the requests to the store of an object, and the object.

    Raises MissingExtraError without the store's SDK.
    """
    sdk = sdk_of(store_of(filesystem))
    # The SDK may look for credentials in the network.
    store, client = first_contact(path, partial(sdk.connect, path, filesystem))
    bucket, _, name = key.partition("/")
    return sdk, StoredObject(path=path, bucket=bucket, key=name, store=store, client=client)


def _origin(source: InputFile, target: StoredObject) -> Origin | None:
    """Return the source as an object that the store of ``target`` can copy from, or None."""
    if not is_object_uri(source.path):
        return None
    filesystem, key = arrow_location(source.path)
    mark = store_of(filesystem).mark(source.identity)
    # Without a mark a copy could take ranges of two different objects.
    if mark is None or filesystem.type_name != arrow_location(target.path)[0].type_name:
        return None
    _, found = stored_at(source.path, filesystem, key)
    return Origin(object=found, mark=mark) if found.store == target.store else None


def _replace_file(
    source: InputFile, keep: int, tail: Sequence[bytes], path: str, *, must_be_new: bool
) -> int:
    filesystem, key = arrow_location(path)
    size = keep + sum(map(len, tail))

    def check() -> None:
        require_permit()
        source.check_unchanged()
        if must_be_new and filesystem.get_file_info(key).type != fs.FileType.NotFound:
            raise FileChangedError("the object is there already", path=path)

    check()
    write_beside(filesystem, key, source.chunks(keep, tail), size, check)
    return size
