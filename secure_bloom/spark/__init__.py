"""secure-bloom beside Spark: encrypting sessions, the step after a write, the audit, reading."""

from __future__ import annotations

from secure_bloom.spark.add_job import add_bloom_filters
from secure_bloom.spark.audit_job import audit
from secure_bloom.spark.registration import register
from secure_bloom.spark.session import session_config

__all__ = ["add_bloom_filters", "audit", "register", "session_config"]
