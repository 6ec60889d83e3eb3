"""The files of a table, planned: some at a time, and what is done for each in one loop."""

from __future__ import annotations

from collections.abc import Iterator

from secure_bloom.errors import located
from secure_bloom.reading.files.table_files import TableFiles
from secure_bloom.reading.pruning.planning import Begun, Planner
from secure_bloom.reading.pruning.plans import FilePlan
from secure_bloom.reading.scheduling import in_order
from secure_bloom.reading.stages import Job, Outcome, growing, in_step, run


class PlannedFiles:
    """All files of a table, planned in their order; may be iterated once.

    Each footer is forgotten once its file is planned.
    """

    def __init__(self, files: TableFiles, planner: Planner) -> None:
        self._files = files
        self._planner = planner

    def __iter__(self) -> Iterator[list[FilePlan]]:
        """The plans, some at a time; an error comes behind the plans of the files before."""
        for ordinals in growing(len(self._files)):
            plans: list[FilePlan] = []
            try:
                plans.extend(self._together(ordinals))
            except Exception:
                yield plans
                raise
            yield plans

    def _together(self, ordinals: range) -> Iterator[FilePlan]:
        if self._files.workers > 1:
            yield from in_order(self._alone, ordinals, self._files.workers)
            return
        begun = in_step(self._begin(ordinal) for ordinal in ordinals)
        for ordinal, outcome in zip(ordinals, begun, strict=True):
            yield self._finish(ordinal, outcome)

    def _alone(self, ordinal: int) -> FilePlan:
        return self._finish(ordinal, in_step([self._begin(ordinal)])[0])

    def _begin(self, ordinal: int) -> Job[Begun | None]:
        """What the footer of a file tells alone; None where it is not kept."""
        footer = self._files.kept(ordinal)
        if footer is None:
            return None
        with located(path=footer.path):
            return (yield from self._planner.begin(footer, self._files.partitions[ordinal]))

    def _finish(self, ordinal: int, outcome: Outcome[Begun | None]) -> FilePlan:
        """The plan of a file, which is opened unless its footer told enough."""
        begun = outcome.result()
        try:
            if begun is not None and begun.is_over:
                return begun.plan()
            with self._files.opened(ordinal) as (file, footer):
                partition = self._files.partitions[ordinal]
                return self._planner.finish(
                    begun or run(self._planner.begin(footer, partition)), file
                )
        finally:
            self._files.forget(ordinal)
