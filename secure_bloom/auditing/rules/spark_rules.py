"""Rules about Spark properties that contradict the policy."""

from __future__ import annotations

from secure_bloom.auditing.findings import Severity
from secure_bloom.auditing.rules.rule import Rule

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
