"""Local paths and object-store URIs: bounded reads, atomic replace, listing.

The one package that touches a disk or a network for data files; everything below it works on
bytes.  Importing it loads neither pyarrow nor numpy.
"""

from secure_bloom.storage.append import truncate_to
from secure_bloom.storage.direct import APPEND_ALIGNMENT
from secure_bloom.storage.files import append_tail, open_input, replace_tail
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.listing import find_files, summary_files
from secure_bloom.storage.managed import refuse_managed

__all__ = [
    "APPEND_ALIGNMENT",
    "InputFile",
    "append_tail",
    "find_files",
    "open_input",
    "refuse_managed",
    "replace_tail",
    "summary_files",
    "truncate_to",
]
