"""secure-bloom beside Spark: the session that encrypts, and the step after the write."""

from __future__ import annotations

from secure_bloom.spark.session import session_config
from secure_bloom.spark.step import add_bloom_filters

__all__ = ["add_bloom_filters", "session_config"]
