"""Rules about statements that cannot be true of a sound file."""

from __future__ import annotations

from secure_bloom.auditing.findings import Rule, Severity

IMPOSSIBLE_COUNTS = Rule(
    id="impossible-counts",
    severity=Severity.HIGH,
    meaning="Counts of rows or values contradict each other or the schema: readers give other "
    "rows, or none.",
    fix="write the file again from its rows, read by a reader that does not use the counts",
)
IMPOSSIBLE_SIZES = Rule(
    id="impossible-sizes",
    severity=Severity.HIGH,
    meaning="Pages are placed where they cannot be: outside the file's data, or where those of "
    "another column chunk are.",
    fix="restore the file from a copy, or write it again",
)
IMPOSSIBLE_STATISTICS = Rule(
    id="impossible-statistics",
    severity=Severity.HIGH,
    meaning="Statistics of a column chunk cannot be true: secure-bloom does not believe them, "
    "other readers lose rows by them.",
    fix="write the file again",
)
IMPOSSIBLE_ENCODINGS = Rule(
    id="impossible-encodings",
    severity=Severity.HIGH,
    meaning="A type or the encodings in the footer cannot be those of the column's pages: by such "
    "counts readers take a dictionary for all values of a column, and lose rows.",
    fix="write the file again",
)
IMPOSSIBLE_PAGE_INDEX = Rule(
    id="impossible-page-index",
    severity=Severity.HIGH,
    meaning="A page index cannot be that of the column chunk: secure-bloom does not believe it, "
    "other readers lose rows by it, or read those of other pages.",
    fix="write the file again",
)
IMPOSSIBLE_PAGES = Rule(
    id="impossible-pages",
    severity=Severity.HIGH,
    meaning="The headers of pages contradict what the footer says of them, or the bytes after "
    "them. They are looked at with `--check-values`.",
    fix="restore the file from a copy, or write it again",
)
CHECKSUM_STALE = Rule(
    id="checksum-stale",
    severity=Severity.MEDIUM,
    meaning="The checksums that Hadoop left beside a data file (`.name.crc`) are not of its bytes: "
    "Spark and Hadoop refuse to read the file from a local disk. Their count is compared, and "
    "those of the first and last bytes.",
    fix="remove the .crc file if the data file is right: secure-bloom add removes it "
    "where it writes",
)
