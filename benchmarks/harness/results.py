"""What a suite measured: one record a case, its verdict, and both as JSON."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

#: One dot of a picture, or one line behind a case that sums up many.
Point: TypeAlias = Mapping[str, Any]


class Measure(enum.StrEnum):
    """What is compared with the goal."""

    SPEEDUP = "other / ours"  # at least the goal
    TIMES = "ours / other"  # at most the goal
    VALUE = "ours"  # at most the goal


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One case: ours, and what it is held ``against``, in ``unit``.

    Without a ``goal`` a number is shown and not judged.  ``tolerance`` is what chance may add to a
    VALUE.  ``points`` are the dots of a picture, or what the case sums up; ``suite`` is entered by
    the run.
    """

    case: str
    against: str = ""
    unit: str
    ours: float
    other: float | None = None
    measure: Measure = Measure.SPEEDUP
    goal: float | None = None
    tolerance: float = 0.0
    note: str = ""
    points: tuple[Point, ...] = ()
    suite: str = ""

    @property
    def ratio(self) -> float | None:
        """What the measure says of both sides; None where there is one side only."""
        if self.other is None or self.measure is Measure.VALUE:
            return None
        if self.measure is Measure.SPEEDUP:
            return self.other / self.ours
        return self.ours / self.other

    @property
    def reached(self) -> bool | None:
        """Whether the goal is; None where there is none."""
        if self.goal is None:
            return None
        if self.measure is Measure.SPEEDUP:
            return self.ratio is not None and self.ratio >= self.goal
        judged = self.ours if self.measure is Measure.VALUE else self.ratio
        return judged is not None and judged <= self.goal + self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All results of one run, and the machine and packages they were measured on."""

    machine: Mapping[str, Any]
    quick: bool
    results: tuple[Result, ...]

    def of(self, suite: str) -> list[Result]:
        """The results of one suite."""
        return [result for result in self.results if result.suite == suite]


def write_run(path: Path, run: Run) -> None:
    """Write ``results.json``; its numbers have six digits."""
    document = {
        "machine": dict(run.machine),
        "quick": run.quick,
        "results": [encode_result(result) for result in run.results],
    }
    path.write_text(json.dumps(_rounded(document), indent=1, ensure_ascii=False) + "\n")


def read_run(path: Path) -> Run:
    """The mirror of :func:`write_run`."""
    document = json.loads(path.read_text())
    results = tuple(decode_result(result) for result in document["results"])
    return Run(machine=document["machine"], quick=document["quick"], results=results)


def encode_result(result: Result) -> dict[str, Any]:
    """A result with its verdict."""
    return {**asdict(result), "ratio": result.ratio, "reached": result.reached}


def decode_result(document: Mapping[str, Any]) -> Result:
    """The mirror of :func:`encode_result`; the verdict is worked out anew."""
    known = {field.name: document[field.name] for field in fields(Result)}
    known["measure"] = Measure(known["measure"])
    known["points"] = tuple(known["points"])
    return Result(**known)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_rounded(item) for item in value]
    return value
