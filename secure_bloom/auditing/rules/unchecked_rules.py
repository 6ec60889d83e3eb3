"""Rules about what could not be checked; their ids begin with ``unchecked-``."""

from __future__ import annotations

from secure_bloom.auditing.findings import Rule, Severity

UNCHECKED_FILE = Rule(
    id="unchecked-file",
    severity=Severity.MEDIUM,
    meaning="A file, or a part of it, cannot be read: it is damaged or cut short, or opening "
    "it failed.",
    fix="see what is wrong with the file, or remove it from the dataset",
)
UNCHECKED_COPY = Rule(
    id="unchecked-copy",
    severity=Severity.MEDIUM,
    meaning="A file that readers of the table skip has pages of a Parquet file in clear and no "
    "footer that can be read: torn, packed (gzip, bzip2, xz, zstd, zip, tar), or with bytes after "
    "its end. Of which columns they are is unknown. Or a path has more such files than are opened. "
    "Copies with a footer are checked as live files are. With `--check-values` also a file of any "
    "kind, live files among them, that could not be searched whole.",
    fix="look at what the file is and why it was not read; destroy it only if it is a copy that a "
    "writer or a backup left",
)
OTHER_FILES = Rule(
    id="other-files",
    severity=Severity.NOTE,
    meaning="Files below the given paths are neither Parquet files nor parts of a table, and were "
    "searched for pages of Parquet files and for keys alone: an export as CSV may hold anything. "
    "Counted below each path are all such files, hidden ones too, but not those that belong to a "
    "data file (`.crc`, key material). `--check-values` searches them for values.",
    fix="look at the files, and remove what the lake does not need",
)
UNCHECKED_FEATURE = Rule(
    id="unchecked-feature",
    severity=Severity.MEDIUM,
    meaning="A file uses something that is not known here.",
    fix="look at the file with the tool that wrote it",
)
UNCHECKED_FIELDS = Rule(
    id="unchecked-fields",
    severity=Severity.MEDIUM,
    meaning="A structure that people without the keys of columns can read has fields that the "
    "Parquet format does not have, as far as it is known here, or key material has fields that no "
    "reader knows, or names a KMS by a text that is no address: they may hold anything. Looked "
    "through are the footer, key material, and the headers of filters in clear; with "
    "`--check-values` also page headers and page indexes of columns in clear.",
    fix="look at the file with the tool that wrote it; if it needs no such fields, write the file "
    "again and destroy this copy",
)
UNCHECKED_FOOTER = Rule(
    id="unchecked-footer",
    severity=Severity.MEDIUM,
    meaning="The footer is encrypted and its key is missing: nothing inside was checked.",
    fix="audit with a keyring or KMS that has the footer key",
)
UNCHECKED_SIGNATURE = Rule(
    id="unchecked-signature",
    severity=Severity.MEDIUM,
    meaning="The footer is signed and its key is missing: what it says may be forged.",
    fix="audit with a keyring or KMS that has the footer key",
)
UNCHECKED_COLUMN = Rule(
    id="unchecked-column",
    severity=Severity.MEDIUM,
    meaning="The key of a column is missing: its metadata and filter were not checked.",
    fix="audit with a keyring or KMS that has the column's key",
)
UNCHECKED_KEY_NAME = Rule(
    id="unchecked-key-name",
    severity=Severity.MEDIUM,
    meaning="The file does not name the master key of its footer or of a sensitive column.",
    fix="write files with key material (PKMT1), as parquet-java and pyarrow do by default",
)
UNCHECKED_FILTER = Rule(
    id="unchecked-filter",
    severity=Severity.LOW,
    meaning="A filter in clear precedes a footer that cannot be read. Whether its column is "
    "sensitive is unknown.",
    fix="audit with a keyring or KMS that has the footer key",
)
UNCHECKED_GAPS = Rule(
    id="unchecked-gaps",
    severity=Severity.LOW,
    meaning="Nothing refers to more than 64 MiB of the file: only a part of these bytes was "
    "searched for stray filters.",
    fix="write the file again: 64 MiB that nothing refers to are no part of a sound file",
)
UNCHECKED_ZEROS = Rule(
    id="unchecked-zeros",
    severity=Severity.LOW,
    meaning="In more row groups of a file than chance explains, filters of a floating-point "
    "column hold only one of 0.0 and -0.0. Statistics do not show whether the column has a zero.",
    fix="audit with --check-values, which looks whether the column has a zero",
)
UNCHECKED_VALUES = Rule(
    id="unchecked-values",
    severity=Severity.LOW,
    meaning="The values of a column could not be read to be looked for in its filter, or are too "
    "many for the memory that decoding may take, so that not all were searched for elsewhere.",
    fix="see what is wrong with the column's pages: `secure-bloom inspect PATH --check`; if they "
    "are too many, set SECURE_BLOOM_MEMORY=8GiB",
)
UNCHECKED_SAMPLE = Rule(
    id="unchecked-sample",
    severity=Severity.LOW,
    meaning="A sample of the files was asked for; the others were not looked at.",
    fix="audit without --sample",
)
