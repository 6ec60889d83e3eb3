"""Note the filters of record keys that Hudi has in footers, where no rule forbids them."""

from __future__ import annotations

from secure_bloom.auditing.checks.leaks import check_hudi, shown_record_keys, texts_of
from secure_bloom.auditing.checks.subjects import Findings, FooterSubject
from secure_bloom.auditing.rules.leak_rules import HUDI_FILTER_PRESENT, HUDI_KEYS_IN_CLEAR


def check_hudi_filter(subject: FooterSubject) -> Findings:
    """Yield a note if anyone who reads the footer can test for record keys in Hudi's filter.

    Nothing is yielded if :func:`check_hudi` reports the filter as a finding.
    """
    if shown_record_keys(texts_of(subject.footer)) is None:
        return
    if any(finding.id == HUDI_KEYS_IN_CLEAR.id for finding in check_hudi(subject)):
        return
    readers = "anyone" if subject.of.is_readable else "whoever has the footer key"
    yield subject.of.finding(
        HUDI_FILTER_PRESENT, f"{readers} can ask which record keys Hudi's filter holds"
    )
