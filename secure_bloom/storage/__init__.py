"""Local paths and object-store URIs: bounded reads, atomic replace, listing.

    paths, listing       what a path names, and the Parquet files below it
    dispatch             each operation on one file, local or in a store
    inputs, local        a file open for reading; `objects` and `pinned_objects` for stores
    replace, append      new bytes on a local disk: whole or not at all
    stores               the kinds of object stores, and what each can do
    object_writes        new bytes in a store: `s3`, `azure_blobs`, `gcs`, by conditions
    write_permit         what a task on another machine asks before it writes; `offered_permit`
    os_errors            errors of the system and of stores, as errors of this package

For data files, only this package touches a disk or a network; all other code works on the bytes
that it gives.  Importing it loads neither pyarrow nor numpy.  The order of calls::

    for path in find_files("out/"):
        with open_input(path) as file:
            start = file.read_at(0, 4)
            replace_tail(file, keep, [tail])  # if nobody changed the file since
"""

from secure_bloom.storage.append import APPEND_ALIGNMENT, remove_kept, truncate_to
from secure_bloom.storage.dispatch import (
    append_tail,
    has_conditional_writes,
    open_in_table,
    open_input,
    open_pinned,
    refuse_append,
    reopen_pinned,
    replace_tail,
    replacement,
    write_new,
)
from secure_bloom.storage.inputs import CountedFile, InputFile
from secure_bloom.storage.listing import (
    DATA_SUFFIXES,
    file_key,
    file_keys,
    find_files,
    summary_files,
)
from secure_bloom.storage.paths import (
    below,
    files_at_once,
    is_object_uri,
    join,
    local_path,
    name_of,
    sibling,
)
from secure_bloom.storage.staged_file import remove_leftover

__all__ = [
    "APPEND_ALIGNMENT",
    "DATA_SUFFIXES",
    "CountedFile",
    "InputFile",
    "append_tail",
    "below",
    "file_key",
    "file_keys",
    "files_at_once",
    "find_files",
    "has_conditional_writes",
    "is_object_uri",
    "join",
    "local_path",
    "name_of",
    "open_in_table",
    "open_input",
    "open_pinned",
    "refuse_append",
    "remove_kept",
    "remove_leftover",
    "reopen_pinned",
    "replace_tail",
    "replacement",
    "sibling",
    "summary_files",
    "truncate_to",
    "write_new",
]
