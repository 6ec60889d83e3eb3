"""Rules about the policy itself, and about Spark properties that contradict it."""

from __future__ import annotations

from secure_bloom.auditing.findings import Rule, Severity

POLICY_UNKNOWN_WORD = Rule(
    id="policy-unknown-word",
    severity=Severity.HIGH,
    meaning="The policy has an unknown option, perhaps a misspelt one; no file was checked.",
    fix="correct the option in the policy, then audit again: until then no file is looked at",
)
POLICY_INVALID = Rule(
    id="policy-invalid",
    severity=Severity.HIGH,
    meaning="The policy contradicts itself, or has a value that its option cannot take; no "
    "file was checked.",
    fix="correct the policy, then audit again: until then no file is looked at",
)
POLICY_TWO_KEYS = Rule(
    id="policy-two-keys",
    severity=Severity.HIGH,
    meaning="A column and one that contains it are given different keys: the inner one counts, "
    "and other tools may read it the other way.",
    fix="give both the same key, or name only the leaves",
)
POLICY_FILTER_WITHOUT_KEY = Rule(
    id="policy-filter-without-key",
    severity=Severity.MEDIUM,
    meaning="A column inside a sensitive one asks for a filter and names no key: it reads as if "
    "the column were in clear, and the key of the outer one counts.",
    fix="name the key at the column itself",
)
POLICY_PARENT_NAMED = Rule(
    id="policy-parent-named",
    severity=Severity.LOW,
    meaning="A sensitive column and one inside it are both named, the inner one without a key: it "
    "reads as if it were left in clear, and it is not.",
    fix="name the key at every leaf, or remove the empty rule",
)
POLICY_KEY_UNKNOWN = Rule(
    id="policy-key-unknown",
    severity=Severity.HIGH,
    meaning="The policy names a master key that the KMS does not have: no writer can follow it.",
    fix="correct the key's name, or create the key in the KMS",
)
POLICY_KEY_UNUSABLE = Rule(
    id="policy-key-unusable",
    severity=Severity.HIGH,
    meaning="The KMS does not wrap a key under this master key and unwrap it again.",
    fix="check the key's state at the KMS, and that this audit may wrap and unwrap with it; if it "
    "should only unwrap, add --ignore policy-key-unusable",
)
POLICY_COLUMN_UNKNOWN = Rule(
    id="policy-column-unknown",
    severity=Severity.HIGH,
    meaning="No file has a column of this name: a misspelt rule protects nothing.",
    fix="correct the column's name in the policy, or remove the rule",
)
POLICY_TABLE_UNKNOWN = Rule(
    id="policy-table-unknown",
    severity=Severity.HIGH,
    meaning="The policy has several tables, and a file belongs to none of them, or to two that are "
    "named alike: no rule says what of it is sensitive.",
    fix='name the table of the file in the policy, or add [tables."*"] for all other tables',
)
POLICY_TABLE_MISSPELT = Rule(
    id="policy-table-misspelt",
    severity=Severity.HIGH,
    meaning="A pattern has no file, and is like a table that no section names: the table is under "
    "the rules of another section.",
    fix="correct the pattern, or name that table too",
)
POLICY_TABLE_UNUSED = Rule(
    id="policy-table-unused",
    severity=Severity.NOTE,
    meaning="No file of the audit belongs to a table of the policy: its pattern may be misspelt, "
    "or its files are elsewhere.",
    fix="compare the pattern with the paths of the table, or remove it; a table of a catalog "
    "belongs to its name if the audit gets it as iceberg://CATALOG/NAMESPACE.TABLE",
)
POLICY_IGNORE_EXPIRED = Rule(
    id="policy-ignore-expired",
    severity=Severity.NOTE,
    meaning="The last day of an entry of `[[audit.ignore]]` is in the past: what it accepted "
    "counts again.",
    fix="correct what it accepted and remove the entry, or give it a later day",
)
COLUMN_UNCLASSIFIED = Rule(
    id="policy-column-unclassified",
    severity=Severity.MEDIUM,
    meaning="With `--strict`: a column is in clear, or partitions the table, and the policy says "
    "nothing about it. It may have come after the policy was written.",
    fix="give the column a key, or say that it may be in clear: a rule without a key, its name in "
    '[classified] clear = [...], where * is any text, or [columns."*"] for all others',
)
COLUMN_LOOKS_SENSITIVE = Rule(
    id="policy-column-looks-sensitive",
    severity=Severity.NOTE,
    meaning="A column is in clear, the policy says nothing about it, and by its name or its "
    "smallest and largest values it has e-mail addresses, IBANs, card numbers, phone numbers or "
    "national ids. With `--check-values` the first values are looked at too.",
    fix="give the column a key, or a rule without a key if it may be in clear",
)
SPARK_NO_ENCRYPTION = Rule(
    id="spark-no-encryption",
    severity=Severity.CRITICAL,
    meaning="The properties name no crypto factory or no footer key, so Spark writes everything "
    "in clear and ignores the rest.",
    fix="set parquet.crypto.factory.class and parquet.encryption.footer.key: session_config does",
)
SPARK_COLUMN_UNPROTECTED = Rule(
    id="spark-column-unprotected",
    severity=Severity.CRITICAL,
    meaning="The properties leave a sensitive column in clear.",
    fix="name the column in parquet.encryption.column.keys under the policy's key",
)
SPARK_COLUMN_WRONG_KEY = Rule(
    id="spark-column-wrong-key",
    severity=Severity.HIGH,
    meaning="The properties put a sensitive column under another master key than the policy.",
    fix="name the column in parquet.encryption.column.keys under the policy's key",
)
SPARK_TWO_KEYS = Rule(
    id="spark-two-keys",
    severity=Severity.HIGH,
    meaning="parquet.encryption.column.keys names a column twice: parquet-java refuses the write.",
    fix="name the column once, under the policy's key",
)
SPARK_COLUMN_UNKNOWN = Rule(
    id="spark-column-unknown",
    severity=Severity.MEDIUM,
    meaning="A property names a column that neither the policy nor a file has; of filters "
    "parquet-java ignores such names in silence.",
    fix="correct the column's name: the dotted path of a leaf, with its capitals",
)
SPARK_NOT_A_LEAF = Rule(
    id="spark-not-a-leaf",
    severity=Severity.HIGH,
    meaning="A property names a column that parquet-java cannot encrypt by its name: it has "
    "columns inside, or a dot in its own name. The write fails.",
    fix="name the leaves, such as tags.list.element; rename a column with a dot",
)
SPARK_FOOTER_KEY = Rule(
    id="spark-footer-key",
    severity=Severity.HIGH,
    meaning="The properties name another footer key than the policy.",
    fix="set parquet.encryption.footer.key to the policy's key",
)
SPARK_FOOTER_MODE = Rule(
    id="spark-footer-mode",
    severity=Severity.HIGH,
    meaning="The properties leave the footer in clear, and the policy wants it encrypted.",
    fix="set parquet.encryption.plaintext.footer to false",
)
SPARK_WEAKER = Rule(
    id="spark-weaker",
    severity=Severity.MEDIUM,
    meaning="The properties ask for a weaker algorithm, or shorter keys, than the policy.",
    fix="set parquet.encryption.algorithm and parquet.encryption.data.key.length.bits as the "
    "policy has them",
)
SPARK_UNKNOWN_WORD = Rule(
    id="spark-unknown-word",
    severity=Severity.MEDIUM,
    meaning="parquet-java knows no such property and ignores it in silence.",
    fix="correct the property's name",
)
SPARK_INVALID = Rule(
    id="spark-invalid",
    severity=Severity.HIGH,
    meaning="A property has a value that parquet-java cannot read.",
    fix="correct the value: column keys are written key1:columnA,columnB;key2:columnC, lengths of "
    "keys are 128, 192 or 256, and the crypto factory's class is the one that session_config sets",
)
SPARK_KMS_ADDRESS = Rule(
    id="spark-kms-address",
    severity=Severity.MEDIUM,
    meaning="The KMS client is a class of another maker, and no property says where the KMS is. "
    "parquet-java before 1.18.1 then gives the class the address that a file names, so whoever "
    "writes a file chooses the server that gets the token (CVE-2026-73334, CVE-2026-92287).",
    fix="set parquet.encryption.kms.instance.url, or run parquet-java 1.18.1 or later",
)
