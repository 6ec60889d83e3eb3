"""Make `spark.read.format("secure_bloom")` known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.spark.compat import check_data_sources, offers_filters
from secure_bloom.spark.jobs_of_call import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_SOURCE_IN_THE_JVM = "org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2"


@checked_arguments
def register(spark: SparkSession, *, push_filters: bool | None = None) -> None:
    """Make ``format("secure_bloom")`` known to ``spark``. May be called again.

    With ``push_filters`` the filters of Spark's queries skip row groups too, and
    `spark.sql.python.filterPushdown.enabled` is set for the session.  By default this is done only
    if this Spark keeps the filters of different queries apart.  Spark 4.1 to 4.3 do not:
    `people.where("id = 1")` and then `people.count()`, or the join of two such filters, gave wrong
    answers.  If you set ``push_filters=True`` there, load the table again for each query and each
    side of a join.  The option ``where`` of the source is safe everywhere.  Spark 4.0 pushes
    nothing.  Raises UnsupportedFeatureError on Spark 3.5, which has no Python data sources.
    """
    check_data_sources()
    from secure_bloom.spark.source import PushdownSource, SecureBloomSource

    wanted = keeps_filters_apart(spark) if push_filters is None else push_filters
    pushes = wanted and offers_filters()
    if pushes:
        spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(PushdownSource if pushes else SecureBloomSource)


def keeps_filters_apart(spark: SparkSession) -> bool:
    """Return whether Spark applies filters pushed to a Python source only to their own query.

    A Spark that mixes filters up is recognized by the method ``setReadInfo`` of its source class in
    the JVM. A Spark Connect session does not show its JVM, so it counts as one that mixes them up.
    """
    context = context_of(spark)
    if context is None:
        return False
    source = context._jvm.java.lang.Class.forName(_SOURCE_IN_THE_JVM)
    return not any(method.getName() == "setReadInfo" for method in source.getMethods())
