"""Check for a sensitive column that a file has in clear, under another spelling."""

from __future__ import annotations

from secure_bloom.auditing.checks.subjects import Findings, FooterSubject
from secure_bloom.auditing.naming import are_alike
from secure_bloom.auditing.rules.key_rules import COLUMN_ALIKE
from secure_bloom.parquet.schema import Leaf

#: How many columns in clear are compared, each with every rule.
_MOST_COMPARED = 2_000


def check_spelling(subject: FooterSubject) -> Findings:
    """No column in clear is spelt like a sensitive one that the file lacks."""
    policy = subject.of.request.policy
    lacking = [path.split(".") for path, rule in policy.columns.items() if rule.key is not None]
    for wanted in lacking:
        depth = len(wanted)
        if any(list(leaf.path[:depth]) == wanted for leaf in subject.footer.leaves):
            continue
        for leaf in _in_clear(subject):
            if len(leaf.path) >= depth and are_alike(leaf.path[:depth], wanted):
                yield subject.of.finding(
                    COLUMN_ALIKE,
                    f"the policy has {'.'.join(wanted)}, which the file lacks; this column is "
                    "spelt like it and stored in clear",
                    column=leaf.name,
                )


def _in_clear(subject: FooterSubject) -> list[Leaf]:
    found = {
        chunk.leaf.name: chunk.leaf
        for chunk in subject.chunks
        # A column with a rule of its own is meant to be in clear.
        if not chunk.is_sensitive and chunk.leaf.name not in subject.of.request.policy.columns
    }
    return list(found.values())[:_MOST_COMPARED]
