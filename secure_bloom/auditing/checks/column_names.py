"""Find columns in clear that are like a sensitive one: copies of it under another spelling."""

from __future__ import annotations

from itertools import islice

from secure_bloom.auditing.checks.subjects import Findings, FooterSubject
from secure_bloom.auditing.rules.key_rules import COLUMN_ALIKE

#: The most columns in clear that are compared, each with every rule.
_MOST_COMPARED = 2_000


def check_spelling(subject: FooterSubject) -> Findings:
    """Check that no column in clear, at any depth, has a name like a sensitive column's."""
    clear = dict.fromkeys(chunk.leaf.path for chunk in subject.chunks if not chunk.is_sensitive)
    present = {leaf.path for leaf in subject.footer.leaves}
    alike = subject.of.request.policy.likeness.lookalikes(islice(clear, _MOST_COMPARED), present)
    for path, secret in alike.items():
        yield subject.of.finding(
            COLUMN_ALIKE,
            f"the policy has {secret}; this column, stored in clear, is spelt like it or is inside "
            "a column that is",
            column=".".join(path),
        )
