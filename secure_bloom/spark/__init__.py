"""secure-bloom on Spark: encrypting sessions, jobs after a write, the audit, reading.

    session                 the configuration of a session that writes and reads under a policy
    add_job, rekey_job      the verbs that write files, as jobs
    audit_job, advise_job, trace_job  verbs that only read, as jobs
    paimon                  the indexes of a Paimon table, as a job
    job_files               the files of a job
    tasks                   plans the tasks; how work gets to the executors, and how rows come back
    jobs_of_call            cancels the jobs of a call, however the call ends
    source                  ``format("secure_bloom")``: the driver plans, tasks decrypt and decode
    compat                  all differences between versions of Spark

The order of calls::

    spark = SparkSession.builder.config(map=session_config("policy.toml")).getOrCreate()
    people.write.parquet("people/")
    add_bloom_filters(spark, "people/", columns=["email"], policy="policy.toml")
    register(spark)
    source = spark.read.format("secure_bloom").option("policy", "policy.toml")
    source.option("where", "email = 'm@x'").load("people/").show()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names
from secure_bloom.errors import imported_for

with imported_for("secure_bloom.spark", "spark"):
    from secure_bloom.spark.compat import check_spark_version

    check_spark_version()

if TYPE_CHECKING:
    from secure_bloom.spark.add_job import add_bloom_filters
    from secure_bloom.spark.advise_job import advise
    from secure_bloom.spark.audit_job import audit
    from secure_bloom.spark.jvm import kms_jar
    from secure_bloom.spark.paimon import build_paimon_index
    from secure_bloom.spark.registration import register
    from secure_bloom.spark.rekey_job import reencrypt, rotate_keys
    from secure_bloom.spark.session import session_config
    from secure_bloom.spark.trace_job import trace

# A Python worker imports what its tasks do, not all that a driver can ask for.
_HOMES = {
    "add_job": ["add_bloom_filters"],
    "advise_job": ["advise"],
    "audit_job": ["audit"],
    "jvm": ["kms_jar"],
    "paimon": ["build_paimon_index"],
    "registration": ["register"],
    "rekey_job": ["reencrypt", "rotate_keys"],
    "session": ["session_config"],
    "trace_job": ["trace"],
}

__all__ = [
    "add_bloom_filters",
    "advise",
    "audit",
    "build_paimon_index",
    "kms_jar",
    "reencrypt",
    "register",
    "rotate_keys",
    "session_config",
    "trace",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
