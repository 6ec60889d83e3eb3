"""Rules about the policy itself."""

from __future__ import annotations

from secure_bloom.auditing.findings import Severity
from secure_bloom.auditing.rules.rule import Rule

POLICY_UNKNOWN_WORD = Rule(
    id="policy-unknown-word",
    severity=Severity.HIGH,
    meaning="The policy has a word that means nothing there; no file was checked.",
    fix="correct the word in the policy, then audit again: until then no file is looked at",
)
POLICY_INVALID = Rule(
    id="policy-invalid",
    severity=Severity.HIGH,
    meaning="The policy says something that cannot be, such as a value out of its range; no file "
    "was checked.",
    fix="correct the policy, then audit again: until then no file is looked at",
)
POLICY_TWO_KEYS = Rule(
    id="policy-two-keys",
    severity=Severity.HIGH,
    meaning="A column and one that contains it are given different keys: the inner one counts, "
    "and other tools may read it the other way.",
    fix="give both the same key, or name the leaves alone",
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
    fix="check the key's state and who may use it, at the KMS",
)
POLICY_COLUMN_UNKNOWN = Rule(
    id="policy-column-unknown",
    severity=Severity.HIGH,
    meaning="No file has a column of this name: a misspelt rule protects nothing.",
    fix="correct the column's name in the policy, or remove the rule",
)
