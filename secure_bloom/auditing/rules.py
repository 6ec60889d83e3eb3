"""The table of everything an audit can find: id, severity, what it means, what to do about it.

An id never changes its meaning; `docs/audit.md` shows the same table with an example of each.
"""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.auditing.findings import Finding, Severity

#: A hostile file may call its key by a name of 60,000 letters.
_LONGEST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding; the four texts are those of the page on audits."""

    id: str
    severity: Severity
    meaning: str
    fix: str

    def finding(
        self,
        what: str,
        *,
        path: str | None = None,
        row_group: int | None = None,
        column: str | None = None,
    ) -> Finding:
        """A finding of this kind; ``what`` says it without the place."""
        return Finding(
            id=self.id,
            severity=self.severity,
            what=what if len(what) <= _LONGEST else f"{what[:_LONGEST]}…",
            fix=self.fix,
            path=path,
            row_group=row_group,
            column=column,
        )


_CRITICAL, _HIGH = Severity.CRITICAL, Severity.HIGH
_MEDIUM, _LOW = Severity.MEDIUM, Severity.LOW

# The policy itself.

POLICY_UNKNOWN_WORD = Rule(
    id="policy-unknown-word",
    severity=_HIGH,
    meaning="The policy has a word that means nothing there; no file was held against it.",
    fix="correct the word in the policy, then audit again: until then no file is looked at",
)
POLICY_INVALID = Rule(
    id="policy-invalid",
    severity=_HIGH,
    meaning="The policy says something that cannot be, such as a value out of its range; no file "
    "was held against it.",
    fix="correct the policy, then audit again: until then no file is looked at",
)
POLICY_TWO_KEYS = Rule(
    id="policy-two-keys",
    severity=_HIGH,
    meaning="A column and one that it stands in are given different keys: the inner one counts, "
    "and other tools may read it the other way.",
    fix="give both the same key, or name the leaves alone",
)
POLICY_FILTER_WITHOUT_KEY = Rule(
    id="policy-filter-without-key",
    severity=_MEDIUM,
    meaning="A column inside a sensitive one asks for a filter and names no key: it reads as if "
    "the column were in clear, and the key of the outer one counts.",
    fix="name the key at the column itself",
)
POLICY_PARENT_NAMED = Rule(
    id="policy-parent-named",
    severity=_LOW,
    meaning="A sensitive column and one inside it are both named, the inner one without a key: it "
    "reads as if it were left in clear, and it is not.",
    fix="name the key at every leaf, or remove the empty rule",
)
POLICY_KEY_UNKNOWN = Rule(
    id="policy-key-unknown",
    severity=_HIGH,
    meaning="The policy names a master key that the KMS does not have: no writer can follow it.",
    fix="correct the key's name, or create the key in the KMS",
)
POLICY_KEY_UNUSABLE = Rule(
    id="policy-key-unusable",
    severity=_HIGH,
    meaning="The KMS does not wrap a key under this master key and unwrap it again.",
    fix="check the key's state and who may use it, at the KMS",
)
POLICY_COLUMN_UNKNOWN = Rule(
    id="policy-column-unknown",
    severity=_HIGH,
    meaning="No file has a column of this name: a misspelt rule protects nothing.",
    fix="correct the column's name in the policy, or remove the rule",
)

# Spark properties beside the policy.

SPARK_NO_ENCRYPTION = Rule(
    id="spark-no-encryption",
    severity=_CRITICAL,
    meaning="The properties name no crypto factory or no footer key, so Spark writes everything "
    "in clear and ignores the rest.",
    fix="set parquet.crypto.factory.class and parquet.encryption.footer.key: session_config does",
)
SPARK_COLUMN_UNPROTECTED = Rule(
    id="spark-column-unprotected",
    severity=_CRITICAL,
    meaning="The properties leave a sensitive column in clear.",
    fix="name the column in parquet.encryption.column.keys under the policy's key",
)
SPARK_COLUMN_WRONG_KEY = Rule(
    id="spark-column-wrong-key",
    severity=_HIGH,
    meaning="The properties put a sensitive column under another master key than the policy.",
    fix="name the column in parquet.encryption.column.keys under the policy's key",
)
SPARK_TWO_KEYS = Rule(
    id="spark-two-keys",
    severity=_HIGH,
    meaning="parquet.encryption.column.keys names a column twice: parquet-java refuses the write.",
    fix="name the column once, under the policy's key",
)
SPARK_COLUMN_UNKNOWN = Rule(
    id="spark-column-unknown",
    severity=_MEDIUM,
    meaning="A property names a column that neither the policy nor a file has; of filters "
    "parquet-java ignores such names in silence.",
    fix="correct the column's name: the dotted path of a leaf, with its capitals",
)
SPARK_FOOTER_KEY = Rule(
    id="spark-footer-key",
    severity=_HIGH,
    meaning="The properties name another footer key than the policy.",
    fix="set parquet.encryption.footer.key to the policy's key",
)
SPARK_FOOTER_MODE = Rule(
    id="spark-footer-mode",
    severity=_HIGH,
    meaning="The properties leave the footer in clear, and the policy wants it encrypted.",
    fix="set parquet.encryption.plaintext.footer to false",
)
SPARK_WEAKER = Rule(
    id="spark-weaker",
    severity=_MEDIUM,
    meaning="The properties ask for a weaker algorithm, or shorter keys, than the policy.",
    fix="set parquet.encryption.algorithm and parquet.encryption.data.key.length.bits as the "
    "policy has them",
)
SPARK_UNKNOWN_WORD = Rule(
    id="spark-unknown-word",
    severity=_MEDIUM,
    meaning="parquet-java knows no such property and ignores it in silence.",
    fix="correct the property's name",
)
SPARK_INVALID = Rule(
    id="spark-invalid",
    severity=_HIGH,
    meaning="A property has a value that parquet-java cannot read.",
    fix="correct the value: column keys are written key1:columnA,columnB;key2:columnC, lengths of "
    "keys are 128, 192 or 256, and the crypto factory's class is the one that session_config sets",
)

# Keys.

COLUMN_IN_CLEAR = Rule(
    id="column-in-clear",
    severity=_CRITICAL,
    meaning="A sensitive column is stored without encryption: pages, statistics and all.",
    fix="write the file again under the policy and destroy this copy; look for a misspelt column "
    "in the writer's options",
)
COLUMN_ALIKE = Rule(
    id="column-alike-in-clear",
    severity=_HIGH,
    meaning="A file lacks a sensitive column and has one in clear that is spelt like it: in other "
    "capitals, which Spark takes for the same, with other marks, or, in names of five letters or "
    "more, with about one letter in five changed. Compared are the first 2,000 columns in clear.",
    fix="write the file again with the policy's name and destroy this copy; if it is another "
    "column, give it a rule without a key",
)
COLUMN_WRONG_KEY = Rule(
    id="column-wrong-key",
    severity=_HIGH,
    meaning="A sensitive column is encrypted under another master key than the policy names: other "
    "people can read it.",
    fix="write the file again under the policy's key",
)
COLUMN_UNDER_FOOTER_KEY = Rule(
    id="column-under-footer-key",
    severity=_HIGH,
    meaning="A sensitive column has no key of its own: whoever may read the footer can read it.",
    fix="write the file again with column keys: uniform encryption knows the footer key alone",
)
FOOTER_NOT_ENCRYPTED = Rule(
    id="footer-not-encrypted",
    severity=_HIGH,
    meaning="The policy wants the footer encrypted, and anyone can read it: schema, row counts, "
    "statistics of all columns that are in clear.",
    fix="write the file again with an encrypted footer (parquet.encryption.plaintext.footer=false)",
)
FOOTER_NOT_SIGNED = Rule(
    id="footer-not-signed",
    severity=_HIGH,
    meaning="The policy wants the footer signed, and it is not: nobody can tell if it was altered.",
    fix="write the file again under the policy",
)
FOOTER_WRONG_KEY = Rule(
    id="footer-wrong-key",
    severity=_HIGH,
    meaning="The footer is under another master key than the policy names.",
    fix="write the file again under the policy's footer key",
)
WEAKER_ALGORITHM = Rule(
    id="weaker-algorithm",
    severity=_MEDIUM,
    meaning="The file uses AES_GCM_CTR_V1, the policy AES_GCM_V1: altered pages go unnoticed.",
    fix="write the file again with parquet.encryption.algorithm=AES_GCM_V1",
)
KEY_TOO_SHORT = Rule(
    id="key-too-short",
    severity=_MEDIUM,
    meaning="A data key has fewer bits than the policy's data_key_bits.",
    fix="write the file again with parquet.encryption.data.key.length.bits as the policy says",
)
KEY_MATERIAL_DAMAGED = Rule(
    id="key-material-damaged",
    severity=_HIGH,
    meaning="The key material is not the JSON that it must be: nobody can open what it protects.",
    fix="restore the file from a copy, or write it again",
)
KEY_MATERIAL_MISSING = Rule(
    id="key-material-missing",
    severity=_HIGH,
    meaning="The key material is stored outside the file and is not there: nobody can open it.",
    fix="bring _KEY_MATERIAL_FOR_<file name>.json back: it must follow when a file moves",
)
KEY_MATERIAL_UNUSABLE = Rule(
    id="key-material-unusable",
    severity=_HIGH,
    meaning="The master key that the file names does not unwrap its data key: the key was "
    "exchanged, or the material altered.",
    fix="find the master key the file was written with, or write the file again",
)
KEY_MATERIAL_ORPHANED = Rule(
    id="key-material-orphaned",
    severity=_LOW,
    meaning="A key material file has no data file beside it: one was renamed without the other, "
    "or a deleted file left it.",
    fix="rename it after its data file, or remove it",
)
NOT_AUTHENTIC = Rule(
    id="not-authentic",
    severity=_CRITICAL,
    meaning="The footer, or a column's metadata in it, does not authenticate under its key: the "
    "bytes were altered.",
    fix="treat the file as tampered with; restore it from a copy that authenticates",
)
MIXED_RULES = Rule(
    id="mixed-rules",
    severity=_MEDIUM,
    meaning="The file obeys the policy and is yet protected in another way than most files of its "
    "dataset: two writers follow different rules.",
    fix="find the writer with the other options, and write its files again",
)

# What cannot be true.

IMPOSSIBLE_COUNTS = Rule(
    id="impossible-counts",
    severity=_HIGH,
    meaning="Counts of rows or values contradict each other or the schema: readers give other "
    "rows, or none.",
    fix="write the file again from its rows, as a reader gives them that does not use the counts",
)
IMPOSSIBLE_SIZES = Rule(
    id="impossible-sizes",
    severity=_HIGH,
    meaning="Pages are said to stand where they cannot: outside the file's data, or where those of "
    "another column chunk are.",
    fix="restore the file from a copy, or write it again",
)
IMPOSSIBLE_STATISTICS = Rule(
    id="impossible-statistics",
    severity=_HIGH,
    meaning="Statistics of a column chunk cannot be true: secure-bloom does not believe them, "
    "other readers lose rows by them.",
    fix="write the file again",
)
IMPOSSIBLE_ENCODINGS = Rule(
    id="impossible-encodings",
    severity=_HIGH,
    meaning="The encodings that the footer counts cannot be those of the pages: by such counts "
    "readers take a dictionary for all values of a column, and lose rows.",
    fix="write the file again",
)
IMPOSSIBLE_PAGE_INDEX = Rule(
    id="impossible-page-index",
    severity=_HIGH,
    meaning="A page index cannot be that of the column chunk: secure-bloom does not believe it, "
    "other readers lose rows by it, or read those of other pages.",
    fix="write the file again",
)
IMPOSSIBLE_PAGES = Rule(
    id="impossible-pages",
    severity=_HIGH,
    meaning="The headers of pages contradict what the footer says of them, or the bytes behind "
    "them. They are looked at with `--check-values`.",
    fix="restore the file from a copy, or write it again",
)
CHECKSUM_STALE = Rule(
    id="checksum-stale",
    severity=_MEDIUM,
    meaning="The checksums that Hadoop left beside a data file (`.name.crc`) are not of its bytes: "
    "Spark and Hadoop refuse to read the file from a local disk. Their count is compared, and "
    "those of the first and last bytes.",
    fix="remove the .crc file if the data file is the one you mean: secure-bloom add removes it "
    "where it writes",
)

# Bloom filters.

FILTER_MISSING = Rule(
    id="filter-missing",
    severity=_LOW,
    meaning="The policy asks for a Bloom filter and the column chunk has none. parquet-java writes "
    "none for a chunk that is all dictionary-encoded.",
    fix="run: secure-bloom add PATH --policy FILE",
)
FILTER_IMPOSSIBLE = Rule(
    id="filter-impossible",
    severity=_LOW,
    meaning="The policy asks for a Bloom filter of a column that cannot have one, or not safely.",
    fix="remove 'bloom' from the column's rule",
)
FILTER_IN_CLEAR = Rule(
    id="filter-in-clear",
    severity=_CRITICAL,
    meaning="The Bloom filter of an encrypted column is in clear: anyone can ask it which values "
    "are there. The Rust parquet crate up to 59.2, so DataFusion, writes such filters.",
    fix="write the file again and destroy this copy, then: secure-bloom add PATH --policy FILE",
)
FILTER_STRAY = Rule(
    id="filter-stray-in-clear",
    severity=_HIGH,
    meaning="A Bloom filter in clear stands between the parts of a file that has sensitive "
    "columns, where no footer refers to it, and its bits are not those of a filter of a column in "
    "clear: hidden, or left behind by a rewrite. Of which column it is cannot be told: it may be "
    "a damaged or very small filter of a column in clear that was replaced in place.",
    fix="write the file again from its rows (secure-bloom add copies bytes that it does not know), "
    "and destroy this copy if the filter may be of a sensitive column",
)
FILTER_NOT_AUTHENTIC = Rule(
    id="filter-not-authentic",
    severity=_HIGH,
    meaning="The header or the bits of an encrypted filter do not authenticate. parquet-java "
    "skips such a filter in silence, and fails queries with long IN lists.",
    fix="run: secure-bloom add PATH --policy FILE --replace-filters",
)
FILTER_DAMAGED = Rule(
    id="filter-damaged",
    severity=_HIGH,
    meaning="A filter is not one: its header does not parse, or its size cannot be.",
    fix="run: secure-bloom add PATH --policy FILE --replace-filters",
)
FILTER_LENGTH_ABSENT = Rule(
    id="filter-length-absent",
    severity=_MEDIUM,
    meaning="The metadata has a filter's offset and not its length. parquet-java 1.14.0 to 1.15.2 "
    "returned empty results from such files.",
    fix="run: secure-bloom add PATH --policy FILE, which enters the length",
)
FILTER_SATURATED = Rule(
    id="filter-saturated",
    severity=_LOW,
    meaning="The exact false-positive probability of the filter's bits is far above the policy's: "
    "four times as much, or more than one half.",
    fix="run: secure-bloom add PATH --policy FILE --replace-filters",
)
FILTER_WRONG = Rule(
    id="filter-wrong",
    severity=_CRITICAL,
    meaning="The filter does not contain values that its column has: queries lose rows.",
    fix="run: secure-bloom add PATH --policy FILE --replace-filters",
)
FILTER_ONE_ZERO = Rule(
    id="filter-one-zero",
    severity=_HIGH,
    meaning="A floating-point column has a zero and its filter holds one sign of zero only: "
    "engines find 0.0 equal to -0.0, and queries for the other one lose rows.",
    fix="run: secure-bloom add PATH --policy FILE --replace-filters",
)

# Leaks beside the filter.

STATISTICS_IN_CLEAR = Rule(
    id="statistics-in-clear",
    severity=_CRITICAL,
    meaning="The footer shows the smallest and largest values of an encrypted column to whoever "
    "does not have the column's key.",
    fix="write the file again with a writer that strips them, or without statistics, and destroy "
    "this copy",
)
ENCODING_DATA_IN_CLEAR = Rule(
    id="encoding-data-in-clear",
    severity=_LOW,
    meaning="The footer shows sizes, counts or encodings of an encrypted column: how long its "
    "values are, how many are null. Signed footers of parquet-java 1.17 and pyarrow 26 do.",
    fix='write the file with an encrypted footer, mode = "encrypted" in the policy; where the '
    "policy's own mode is plaintext, writers leave this open: --ignore encoding-data-in-clear "
    "accepts it",
)
PAGE_INDEX_IN_CLEAR = Rule(
    id="page-index-in-clear",
    severity=_CRITICAL,
    meaning="A page index of an encrypted column is in clear: a column index shows the smallest "
    "and largest values of every page.",
    fix="write the file again, with encrypted page indexes or without any, and destroy this copy",
)
HUDI_KEYS_IN_CLEAR = Rule(
    id="hudi-record-keys-in-clear",
    severity=_CRITICAL,
    meaning="A readable footer holds Hudi's Bloom filter of record keys, or the smallest and "
    "largest of them: anyone can ask which keys are there.",
    fix="write the table with an encrypted footer, and destroy this copy",
)
HUDI_KEYS_UNRULED = Rule(
    id="hudi-record-keys-without-rule",
    severity=_LOW,
    meaning="Hudi's column of record keys is in clear and the policy has no rule for it: record "
    "keys are made of other columns, and repeat a sensitive one if it is among them.",
    fix="give _hoodie_record_key a key, or a rule without one where no sensitive column is in it",
)
PAIMON_INDEX_IN_CLEAR = Rule(
    id="paimon-index-in-clear",
    severity=_CRITICAL,
    meaning="A Paimon file index beside a data file holds filters of a sensitive column. Paimon "
    "does not encrypt them.",
    fix="take the column out of file-index.bloom-filter.columns and destroy the index files",
)
SUMMARY_IN_CLEAR = Rule(
    id="summary-in-clear",
    severity=_CRITICAL,
    meaning="A summary file (_metadata, _common_metadata) shows the smallest and largest values of "
    "a sensitive column.",
    fix="destroy the summary file, and set parquet.summary.metadata.level=NONE",
)
SCHEMA_IN_CLEAR = Rule(
    id="schema-in-clear",
    severity=_LOW,
    meaning="The Arrow, pandas or Spark schema in a readable footer, or the column's own metadata "
    "there, says more of a sensitive column than its name and type: comments, categories, "
    "attributes.",
    fix="write the file with an encrypted footer, or without the column's metadata",
)
PARTITION_IN_CLEAR = Rule(
    id="partition-in-clear",
    severity=_CRITICAL,
    meaning="A sensitive column partitions the table: its values are the names of folders.",
    fix="write the table again, partitioned by something else, and destroy this copy",
)

# What could not be checked.

UNCHECKED_FILE = Rule(
    id="unchecked-file",
    severity=_MEDIUM,
    meaning="A file, or a part of it, cannot be read: damaged, cut short, or not to be opened.",
    fix="see what is wrong with the file, or remove it from the dataset",
)
UNCHECKED_COPY = Rule(
    id="unchecked-copy",
    severity=_MEDIUM,
    meaning="A folder holds Parquet files with a readable footer that no reader of the table "
    "takes: hidden ones, temporary ones, or with another ending. They were not held against the "
    "policy.",
    fix="destroy what a writer or a backup left, or audit it: a file that is named outright is "
    "taken whatever its name",
)
UNCHECKED_FEATURE = Rule(
    id="unchecked-feature",
    severity=_MEDIUM,
    meaning="A file uses something that is not known here.",
    fix="look at the file with the tool that wrote it",
)
UNCHECKED_FOOTER = Rule(
    id="unchecked-footer",
    severity=_MEDIUM,
    meaning="The footer is encrypted and its key is not at hand: nothing inside was checked.",
    fix="audit with a keyring or KMS that has the footer key",
)
UNCHECKED_SIGNATURE = Rule(
    id="unchecked-signature",
    severity=_MEDIUM,
    meaning="The footer is signed and its key is not at hand: what it says may be forged.",
    fix="audit with a keyring or KMS that has the footer key",
)
UNCHECKED_COLUMN = Rule(
    id="unchecked-column",
    severity=_MEDIUM,
    meaning="The key of a column is not at hand: its metadata and filter were not checked.",
    fix="audit with a keyring or KMS that has the column's key",
)
UNCHECKED_KEY_NAME = Rule(
    id="unchecked-key-name",
    severity=_MEDIUM,
    meaning="The file does not name the master key of its footer or of a sensitive column.",
    fix="write files with key material (PKMT1), as parquet-java and pyarrow do by default",
)
UNCHECKED_FILTER = Rule(
    id="unchecked-filter",
    severity=_LOW,
    meaning="A filter in clear stands before a footer that cannot be read: of a column that the "
    "policy leaves in clear, or of a sensitive one.",
    fix="audit with a keyring or KMS that has the footer key",
)
UNCHECKED_GAPS = Rule(
    id="unchecked-gaps",
    severity=_LOW,
    meaning="The file has more bytes that nothing refers to than are searched for stray filters.",
    fix="write the file again: 64 MiB that nothing refers to are no part of a sound file",
)
UNCHECKED_ZEROS = Rule(
    id="unchecked-zeros",
    severity=_LOW,
    meaning="Filters of a floating-point column know one sign of zero, in more row groups of a "
    "file than chance explains; statistics do not tell whether the column has a zero.",
    fix="audit with --check-values, which looks whether the column has a zero",
)
UNCHECKED_VALUES = Rule(
    id="unchecked-values",
    severity=_LOW,
    meaning="The values of a column could not be read to be looked for in its filter.",
    fix="see what is wrong with the column's pages: secure-bloom inspect PATH --check",
)
UNCHECKED_SAMPLE = Rule(
    id="unchecked-sample",
    severity=_LOW,
    meaning="A sample of the files was asked for; the others were not looked at.",
    fix="audit without --sample",
)

#: Every rule by its id, in the order of this file.
RULES: dict[str, Rule] = {
    rule.id: rule for rule in vars().copy().values() if isinstance(rule, Rule)
}
