"""secure-bloom beside Spark: encrypting sessions, the step after a write, the audit, reading."""

from __future__ import annotations

from secure_bloom.spark.auditing import audit
from secure_bloom.spark.registration import register
from secure_bloom.spark.session import session_config
from secure_bloom.spark.step import add_bloom_filters

__all__ = ["add_bloom_filters", "audit", "register", "session_config"]
