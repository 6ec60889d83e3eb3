"""How many rows Spark's scans really gave: those of the row groups that were not pruned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_scanned(df: DataFrame) -> int:
    """Run ``df`` and return the rows its file scans gave: all rows of each row group read."""
    df.collect()
    return sum(
        scan.metrics().apply("numOutputRows").value()
        for scan in _scans(df._jdf.queryExecution().executedPlan())
    )


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
