"""Rules about keys: what is encrypted, and under which key."""

from __future__ import annotations

from secure_bloom.auditing.findings import Rule, Severity

KEYS_IN_LAKE = Rule(
    id="keys-in-lake",
    severity=Severity.CRITICAL,
    meaning="A file of the lake, or a footer, holds keys: a keyring, "
    "`parquet.encryption.key.list`, a private key, a keystore, one of the master keys of the "
    "audit's own keyring (raw, in Base64 or hexadecimal), or a credential with which a KMS gives "
    "its keys (a token or secret id of Vault or OpenBao, a secret access key of AWS, "
    "`parquet.encryption.key.access.token`). The first 4 MiB of a file are searched, packed ones "
    "too.",
    fix="move the keys out of the lake, and replace them: make new master keys, name them in the "
    "policy, then `secure-bloom reencrypt PATH --policy FILE --new-data-keys`; "
    "whoever could read the lake may have them, and the data keys that they opened",
)
COLUMN_IN_CLEAR = Rule(
    id="column-in-clear",
    severity=Severity.CRITICAL,
    meaning="A sensitive column is stored without encryption: pages, statistics and all.",
    fix="`secure-bloom reencrypt PATH --policy FILE`, then destroy old copies; look for a misspelt "
    "column in the writer's options",
)
TABLE_KEY_IGNORED = Rule(
    id="table-key-ignored",
    severity=Severity.HIGH,
    meaning="An Iceberg table has the property encryption.key-id, which asks for encrypted data "
    "files, and its current data files are in clear: some catalogs and writers ignore the property "
    "without an error. The search ends at the first such file.",
    fix="rewrite the table's data files with a catalog and an engine that encrypt them, then "
    "expire old snapshots; or remove the property",
)
COLUMN_ALIKE = Rule(
    id="column-alike-in-clear",
    severity=Severity.HIGH,
    meaning="A column in clear has the name of a sensitive one but for marks, accents, capitals, "
    "letters of other alphabets that look the same, a plural, or two swapped letters: beside it, "
    "inside another column, such as before.email, or flattened, such as customer_email. Or a file "
    "lacks a sensitive column and has one in clear that is spelt like it: in names of five letters "
    "or more, about one letter in five changed. Compared are the first 2,000 columns in clear.",
    fix="correct the name in the policy, or write the file again with the policy's name and "
    "destroy this copy; if it is another column, give it a rule without a key",
)
COLUMN_DERIVED = Rule(
    id="column-derived-in-clear",
    severity=Severity.HIGH,
    meaning="A Delta table computes a column from a sensitive one (`delta.generationExpression`), "
    "and the policy has no rule for it: it shows what the expression leaves of the values.",
    fix="give the column the key of its source, or a rule without a key if it may be in clear",
)
COLUMN_WRONG_KEY = Rule(
    id="column-wrong-key",
    severity=Severity.HIGH,
    meaning="A sensitive column is encrypted under another master key than the policy names: other "
    "people can read it.",
    fix="`secure-bloom reencrypt PATH --policy FILE`, then destroy old copies; correct the writer",
)
COLUMN_UNDER_FOOTER_KEY = Rule(
    id="column-under-footer-key",
    severity=Severity.HIGH,
    meaning="A sensitive column has no key of its own: whoever may read the footer can read it.",
    fix="`secure-bloom reencrypt PATH --policy FILE`, then destroy old copies; give the writer "
    "column keys: uniform encryption knows the footer key alone",
)
FOOTER_NOT_ENCRYPTED = Rule(
    id="footer-not-encrypted",
    severity=Severity.HIGH,
    meaning="The policy wants the footer encrypted, and anyone can read it: schema, row counts, "
    "statistics of all columns that are in clear.",
    fix="`secure-bloom reencrypt PATH --policy FILE`; for writers: "
    "parquet.encryption.plaintext.footer=false",
)
FOOTER_NOT_SIGNED = Rule(
    id="footer-not-signed",
    severity=Severity.HIGH,
    meaning="The policy wants the footer signed, and it is not: changes of it go unnoticed.",
    fix="`secure-bloom reencrypt PATH --policy FILE`",
)
FOOTER_WRONG_KEY = Rule(
    id="footer-wrong-key",
    severity=Severity.HIGH,
    meaning="The footer is under another master key than the policy names.",
    fix="`secure-bloom reencrypt PATH --policy FILE`; correct the writer",
)
KEY_RETIRED = Rule(
    id="key-retired",
    severity=Severity.HIGH,
    meaning="The footer or a column depends on a master key that the policy says is retired "
    "([keys.NAME] retired = true): once the key is destroyed, nobody can read it.",
    fix="`secure-bloom rotate PATH --policy FILE`; if the key has leaked, its data keys have too: "
    "then reencrypt with --new-data-keys",
)
KEY_NOT_IN_POLICY = Rule(
    id="key-not-in-policy",
    severity=Severity.MEDIUM,
    meaning="The footer or a column, of which the policy says no key, depends on a master key that "
    "the policy does not name: no KMS is asked for that key, and somebody else may have written "
    "the file.",
    fix="name the key in the policy, as a column's or as [keys.NAME]; if it is not yours, remove "
    "the file",
)
WEAKER_ALGORITHM = Rule(
    id="weaker-algorithm",
    severity=Severity.MEDIUM,
    meaning="The file uses AES_GCM_CTR_V1, the policy AES_GCM_V1: altered pages go unnoticed.",
    fix="`secure-bloom reencrypt PATH --policy FILE`; for writers: "
    "parquet.encryption.algorithm=AES_GCM_V1",
)
KEY_TOO_SHORT = Rule(
    id="key-too-short",
    severity=Severity.MEDIUM,
    meaning="A data key has fewer bits than the policy's data_key_bits.",
    fix="`secure-bloom reencrypt PATH --policy FILE`; for writers: "
    "parquet.encryption.data.key.length.bits as the policy says",
)
KEY_MATERIAL_DAMAGED = Rule(
    id="key-material-damaged",
    severity=Severity.HIGH,
    meaning="The key material is not the JSON that it must be: nobody can open what it protects.",
    fix="restore the file from a copy, or write it again",
)
KEY_MATERIAL_MISSING = Rule(
    id="key-material-missing",
    severity=Severity.HIGH,
    meaning="The key material is stored outside the file and is not there: nobody can open it.",
    fix="bring _KEY_MATERIAL_FOR_<file name>.json back: it must follow when a file moves",
)
KEY_MATERIAL_UNUSABLE = Rule(
    id="key-material-unusable",
    severity=Severity.HIGH,
    meaning="The master key that the file names does not unwrap its data key: the key was "
    "exchanged, or the material altered.",
    fix="find the master key the file was written with, or write the file again",
)
KEY_MATERIAL_ORPHANED = Rule(
    id="key-material-orphaned",
    severity=Severity.LOW,
    meaning="A key material file has no data file beside it: one was renamed without the other, "
    "or a deleted file left it.",
    fix="rename it after its data file, or remove it: `rm PATH`",
)
NOT_AUTHENTIC = Rule(
    id="not-authentic",
    severity=Severity.CRITICAL,
    meaning="The footer, a column's metadata in it, a page index or a page (only `--check-values` "
    "reads all) does not authenticate under its key: the bytes were altered.",
    fix="treat the file as tampered with; restore it from a copy that authenticates",
)
MIXED_RULES = Rule(
    id="mixed-rules",
    severity=Severity.MEDIUM,
    meaning="The file obeys the policy and is yet protected in another way than most files of its "
    "dataset: two writers follow different rules.",
    fix="find the writer with the other options, and write its files again",
)
