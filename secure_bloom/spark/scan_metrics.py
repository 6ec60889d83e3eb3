"""Count the rows that Spark's scans returned: those of row groups that were not pruned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def rows_scanned(df: DataFrame) -> int:
    """Run ``df``. Return the number of rows that its file scans read, in whole row groups."""
    return collect_scanned(df)[1]


def collect_scanned(df: DataFrame) -> tuple[list[Row], int]:
    """Return the rows of ``df``, and how many rows its file scans returned.

    Only scans of Spark's own file sources count, whose metric is ``numOutputRows``. A plan without
    a scan gives 0.  This does not work on Spark Connect, which does not show its plans.
    """
    rows = df.collect()
    plan = df._jdf.queryExecution().executedPlan()
    return rows, sum(scan.metrics().apply("numOutputRows").value() for scan in _scans(plan))


def _scans(plan: Any) -> Iterator[Any]:
    """Yield the file scans in a physical plan, also inside the nodes of adaptive execution."""
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
