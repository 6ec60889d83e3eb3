"""Rules about what reveals a sensitive column, other than its pages and its filter."""

from __future__ import annotations

from secure_bloom.auditing.findings import Rule, Severity

STATISTICS_IN_CLEAR = Rule(
    id="statistics-in-clear",
    severity=Severity.CRITICAL,
    meaning="The footer shows the smallest and largest values of an encrypted column to whoever "
    "does not have the column's key.",
    fix="write the file again with a writer that strips them, or without statistics, and destroy "
    "this copy",
)
ENCODING_DATA_IN_CLEAR = Rule(
    id="encoding-data-in-clear",
    severity=Severity.LOW,
    meaning="The footer shows sizes, counts or encodings of an encrypted column: how long its "
    "values are, how many are null. Signed footers of parquet-java 1.17 and pyarrow 26 do.",
    fix='write the file with an encrypted footer, mode = "encrypted" in the policy',
)
SIZES_IN_CLEAR = Rule(
    id="sizes-in-clear",
    severity=Severity.NOTE,
    meaning="The policy asks for signed footers, and those of parquet-java 1.17 and pyarrow 26 "
    "always show size statistics of encrypted columns: how long the values of a row group are "
    "together, and how many are null.",
    fix='nothing, if people may know that much; else mode = "encrypted" in the policy, and write '
    "the files again",
)
PAGE_INDEX_IN_CLEAR = Rule(
    id="page-index-in-clear",
    severity=Severity.CRITICAL,
    meaning="A page index of an encrypted column is in clear: a column index shows the smallest "
    "and largest values of every page.",
    fix="write the file again, with encrypted page indexes or without any, and destroy this copy",
)
PAGES_STRAY = Rule(
    id="pages-stray-in-clear",
    severity=Severity.HIGH,
    meaning="Pages in clear are between the parts of a file that has sensitive columns, where no "
    "footer refers to them: hidden, or left by a rewrite. Their column is unknown.",
    fix="write the file again and destroy this copy",
)
PAGES_IN_CLEAR = Rule(
    id="pages-in-clear",
    severity=Severity.CRITICAL,
    meaning="The footer says that a column is encrypted, and the column's first page is in clear. "
    "The first bytes of each encrypted column chunk are read, in an object store only with "
    "`--check-values`.",
    fix="write the file again with a writer that encrypts, and destroy this copy",
)
BOUNDS_STRAY = Rule(
    id="bounds-stray-in-clear",
    severity=Severity.HIGH,
    meaning="Statistics or a column index in clear lie between the parts of a file that has "
    "sensitive columns, where no footer refers to them, and they are not those of a column in "
    "clear: smallest and largest values, hidden or left by a rewrite.",
    fix="write the file again from its rows, and destroy this copy",
)
VALUES_IN_CLEAR = Rule(
    id="values-in-clear",
    severity=Severity.HIGH,
    meaning="Values of a sensitive column are elsewhere: in a column in clear or its bounds, in "
    "the names and texts of a footer, in bytes that nothing refers to, in a file of another kind "
    "(CSV, JSON, logs, databases, archives), in the log of a table, or in names of files and "
    "folders. With `--check-values` all values of all sensitive columns are searched for in "
    "everything, in other notations and encodings and as digests without a salt too: the page on "
    "leak search says how, and how many are a finding.",
    fix="write the file again without the column, encrypt it, or give it a rule without a key if "
    "it may be in clear; then destroy this copy; remove other files, but no file of a table's log: "
    "change what it says with the table's engine, and let the table's maintenance remove old files",
)
VALUES_MENTIONED = Rule(
    id="values-mentioned",
    severity=Severity.NOTE,
    meaning="A long text or a column in clear has one or two values of a sensitive column, such "
    "as an address: too few to be a copy. Looked for with `--check-values`.",
    fix="look at the file, and remove the value if it is there by mistake",
)
VALUES_NOT_SEARCHED = Rule(
    id="values-not-searched",
    severity=Severity.NOTE,
    meaning="With `--check-values`, no value of a sensitive column was searched for, or not all: "
    "they are too short, or numbers, dates or IP addresses so dense that other columns have them "
    "by chance. Whether another file or column repeats them is unknown.",
    fix="look at the other files and columns in clear for copies of the column",
)
HUDI_KEYS_IN_CLEAR = Rule(
    id="hudi-record-keys-in-clear",
    severity=Severity.CRITICAL,
    meaning="A readable footer holds Hudi's Bloom filter of record keys, or the smallest and "
    "largest of them: anyone can ask which keys are there.",
    fix="write the table with an encrypted footer, and destroy this copy",
)
HUDI_KEYS_UNRULED = Rule(
    id="hudi-record-keys-without-rule",
    severity=Severity.LOW,
    meaning="Hudi's column of record keys is in clear and the policy has no rule for it: record "
    "keys are made of other columns, and repeat a sensitive one if it is among them.",
    fix="give _hoodie_record_key a key, or a rule without one where no sensitive column is in it",
)
HUDI_FILTER_PRESENT = Rule(
    id="hudi-filter-present",
    severity=Severity.NOTE,
    meaning="A footer holds Hudi's Bloom filter of record keys, or the smallest and largest of "
    "them, and the rules about columns in clear do not forbid it: whoever may read the footer can "
    "ask which keys are there, also without the key of the column they come from.",
    fix="nothing, if readers of the footer may know the record keys; else write the files again "
    "without the filter",
)
PAIMON_INDEX_PRESENT = Rule(
    id="paimon-index-present",
    severity=Severity.NOTE,
    meaning="An index of a Paimon table, such as a filter or a B-tree, is in clear and without a "
    "tag, of columns to which the policy gives no key: anyone can ask it, and change it unnoticed.",
    fix="nothing, if the columns may be in clear; else give them a key in the policy, and audit "
    "again",
)
#: What to do about an index that a manifest of a Paimon table has, or names.
PAIMON_INDEX_FIX = (
    "take the column out of the table's options file-index.*, drop global indexes of it, rewrite "
    "the files with Paimon, and expire its old snapshots"
)
PAIMON_INDEX_IN_CLEAR = Rule(
    id="paimon-index-in-clear",
    severity=Severity.CRITICAL,
    meaning="A Paimon index, beside a data file, in a manifest or for a whole table, holds "
    "filters, hashes or all values of a sensitive column. Paimon does not encrypt them.",
    fix="take the column out of file-index.bloom-filter.columns, and destroy the index: `rm PATH`",
)
SUMMARY_IN_CLEAR = Rule(
    id="summary-in-clear",
    severity=Severity.CRITICAL,
    meaning="A summary file (_metadata, _common_metadata) shows the smallest and largest values of "
    "a sensitive column.",
    fix="set parquet.summary.metadata.level=NONE, and destroy the summary: `rm PATH`",
)
#: How the Python package deltalake does what VACUUM does in Spark. Without ``full`` it leaves files
#: of change data, and those that no version named.
DELTALAKE_VACUUM = "vacuum(0, enforce_retention_duration=False, dry_run=False, full=True)"
#: What to do about bounds in the log of a Delta table, and in the metadata of an Iceberg table.
DELTA_LOG_FIX = (
    "leave the column out of delta.dataSkippingStatsColumns, and write its files' entries anew "
    "without the bounds: `secure-bloom reencrypt PATH --policy FILE`; then let the table's engine "
    "destroy old entries: set delta.logRetentionDuration = 'interval 0 days', VACUUM the old "
    "files, and write to the table in Spark until it has a new checkpoint, which cleans up the "
    "log; with the Python package deltalake the steps are table.alter.set_table_properties({...}), "
    f"table.{DELTALAKE_VACUUM}, table.create_checkpoint() and table.cleanup_metadata()"
)
#: How snapshots end.  No command of secure-bloom ends one: other readers may need them.
ICEBERG_CALLS = (
    "Spark: CALL system.expire_snapshots, CALL system.remove_orphan_files; pyiceberg: "
    "table.maintenance.expire_snapshots().older_than(TIME).commit(), which leaves the files: "
    "remove them by hand"
)
ICEBERG_EXPIRY = (
    "expire older snapshots, and remove manifests and data files that no snapshot names "
    f"({ICEBERG_CALLS})"
)
ICEBERG_LOG_FIX = (
    "set write.metadata.metrics.column.NAME=none, and write the table anew without the bounds: "
    "`secure-bloom reencrypt PATH --policy FILE` (no engine of Iceberg reads encrypted files), or "
    "overwrite its rows with Iceberg's engine; then "
    f"{ICEBERG_EXPIRY}"
)
#: How to do without a default value, and without a file of statistics, that quotes values.
ICEBERG_DEFAULT_FIX = (
    "add the column anew without a default, under another name, copy its rows, drop the old one, "
    "and remove the older metadata files; no command of secure-bloom changes a schema"
)
ICEBERG_SKETCH_FIX = (
    "do not compute statistics of the column (Spark: CALL system.compute_table_stats with other "
    "columns; Trino: ALTER TABLE NAME EXECUTE drop_extended_stats); then "
    f"{ICEBERG_EXPIRY}"
)
PAIMON_DEFAULT_FIX = (
    "take the column's default value out of the schema and out of the option "
    "fields.NAME.default-value; no command destroys older schemas: write the table's rows into a "
    "new table, and drop this one"
)
PAIMON_STATISTICS_FIX = (
    "analyze the table FOR COLUMNS without this one, and expire the snapshots with older statistics"
)
PAIMON_LOG_FIX = "set fields.NAME.stats-mode=none, rewrite the files, and expire old snapshots"
TABLE_LOG_IN_CLEAR = Rule(
    id="table-log-in-clear",
    severity=Severity.CRITICAL,
    meaning="The log of a Delta table, or the metadata of an Iceberg or Paimon table, shows the "
    "smallest and largest values of a sensitive column, a value in a condition or as its default, "
    "hashes of its values in statistics, or its values where it partitions the table, however the "
    "files are encrypted.",
    fix=f"{DELTA_LOG_FIX}; in Iceberg {ICEBERG_LOG_FIX}",
)
SCHEMA_IN_CLEAR = Rule(
    id="schema-in-clear",
    severity=Severity.LOW,
    meaning="The Arrow, pandas or Spark schema in a readable footer, or the column's own metadata "
    "there, says more of a sensitive column than its name and type: comments, categories, "
    "attributes.",
    fix="write the file with an encrypted footer, or without the column's metadata",
)
PARTITION_IN_CLEAR = Rule(
    id="partition-in-clear",
    severity=Severity.CRITICAL,
    meaning="A sensitive column partitions the table: its values are the names of folders.",
    fix="write the table again, partitioned by something else, and destroy this copy",
)
