"""Rules about Bloom filters: missing, in clear, damaged or wrong."""

from __future__ import annotations

from secure_bloom.auditing.findings import Rule, Severity

FILTER_MISSING = Rule(
    id="filter-missing",
    severity=Severity.LOW,
    meaning="The policy asks for a Bloom filter and the column chunk has none. parquet-java writes "
    "none for a chunk that is all dictionary-encoded.",
    fix="`secure-bloom add PATH --policy FILE`",
)
FILTER_IMPOSSIBLE = Rule(
    id="filter-impossible",
    severity=Severity.LOW,
    meaning="The policy asks for a Bloom filter of a column that cannot have one, or not safely.",
    fix="remove 'bloom' from the column's rule",
)
FILTER_IN_CLEAR = Rule(
    id="filter-in-clear",
    severity=Severity.CRITICAL,
    meaning="The Bloom filter of an encrypted column is in clear: anyone can ask it which values "
    "are there. The Rust parquet crate, so DataFusion, writes them before 60.2.0, and in its 57 "
    "line before 57.3.3; since then it refuses filters of encrypted columns.",
    fix="write the file again from its rows and destroy this copy, then add the filter: a command "
    "would leave the bits in clear in the file",
)
FILTER_STRAY = Rule(
    id="filter-stray-in-clear",
    severity=Severity.HIGH,
    meaning="A Bloom filter in clear is between the parts of a file that has sensitive "
    "columns, where no footer refers to it, and its bits are not those of a filter of a column in "
    "clear: hidden, or left by a rewrite. Its column is unknown: it may be "
    "a damaged or very small filter of a column in clear that was replaced in place.",
    fix="write the file again from its rows (secure-bloom add copies bytes that it does not know), "
    "and destroy this copy if the filter may be of a sensitive column",
)
FILTER_NOT_AUTHENTIC = Rule(
    id="filter-not-authentic",
    severity=Severity.HIGH,
    meaning="The header or the bits of an encrypted filter do not authenticate. parquet-java "
    "skips the filter in silence, and fails queries with long IN lists.",
    fix="`secure-bloom add PATH --policy FILE --replace-filters`",
)
FILTER_DAMAGED = Rule(
    id="filter-damaged",
    severity=Severity.HIGH,
    meaning="A filter is not one: its header does not parse, or its size cannot be.",
    fix="`secure-bloom add PATH --policy FILE --replace-filters`",
)
FILTER_LENGTH_ABSENT = Rule(
    id="filter-length-absent",
    severity=Severity.MEDIUM,
    meaning="The metadata has a filter's offset and not its length. parquet-java 1.14.0 to 1.15.2 "
    "returned empty results from such files.",
    fix="`secure-bloom add PATH --policy FILE`, which enters the length",
)
FILTER_SATURATED = Rule(
    id="filter-saturated",
    severity=Severity.LOW,
    meaning="The exact false-positive probability of the filter's bits is far above the policy's: "
    "four times as much, or more than one half.",
    fix="`secure-bloom add PATH --policy FILE --replace-filters`",
)
FILTER_CROWDED = Rule(
    id="filter-crowded",
    severity=Severity.HIGH,
    meaning="A filter has bits set that no value of its column chunk sets: it holds other values, "
    "perhaps of a sensitive column, and whoever may read it can ask for them. The values of a "
    "column in clear are read if they take at most 1 MiB or are all in the dictionary, in an "
    "object store only with `--check-values`, which reads those of every column with a filter. "
    "Else the bits are counted: a value sets eight in each of its forms. Filters of Paimon's "
    "indexes are compared in the same way.",
    fix="write the file again from its rows and destroy this copy; find the writer of the filter",
)
FILTER_WRONG = Rule(
    id="filter-wrong",
    severity=Severity.CRITICAL,
    meaning="The filter does not contain values that its column has: queries lose rows. Both the "
    "smallest and the largest value are missing, or with `--check-values` others: the filter "
    "may be that of another column, which it then shows.",
    fix="`secure-bloom add PATH --policy FILE --replace-filters`",
)
FILTER_ONE_ZERO = Rule(
    id="filter-one-zero",
    severity=Severity.HIGH,
    meaning="A floating-point column has a zero and its filter holds one sign of zero only: "
    "engines find 0.0 equal to -0.0, and queries for the other one lose rows.",
    fix="`secure-bloom add PATH --policy FILE --replace-filters`",
)
