"""How many rows Spark's scans really gave: those of the row groups that were not pruned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def rows_scanned(df: DataFrame) -> int:
    """Run ``df`` and return the rows its file scans gave: all rows of each row group read."""
    return collect_scanned(df)[1]


def collect_scanned(df: DataFrame) -> tuple[list[Row], int]:
    """The rows of ``df``, and how many rows its file scans gave for them.

    Scans of Spark's own file sources are counted, whose metric is ``numOutputRows``; the result of
    a plan that needed no scan is 0.  Not for Spark Connect, which keeps its plans to itself.
    """
    rows = df.collect()
    plan = df._jdf.queryExecution().executedPlan()
    return rows, sum(scan.metrics().apply("numOutputRows").value() for scan in _scans(plan))


def _scans(plan: Any) -> Iterator[Any]:
    """The file scans below a physical plan, through what adaptive execution puts around them."""
    kind = plan.getClass().getSimpleName()
    if kind == "FileSourceScanExec":
        yield plan
    elif kind == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _scans(plan.plan())
    else:
        children = plan.children()
        for i in range(children.size()):
            yield from _scans(children.apply(i))
