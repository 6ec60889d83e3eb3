"""The wanted version of a table: by its number, by the id of a snapshot, or by a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from secure_bloom.errors import PolicyError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """The wanted version of a table: a number, the last one at or before a time, or the latest.

    ``version`` is for a Delta table, ``snapshot`` is the id of a snapshot of other tables.
    """

    version: int | None = None
    timestamp: str | datetime | None = None
    snapshot: int | None = None

    def __post_init__(self) -> None:
        if [self.version, self.timestamp, self.snapshot].count(None) < 2:
            raise PolicyError("several versions of a table are asked for: one is enough")

    @property
    def is_latest(self) -> bool:
        """Whether the latest version is wanted."""
        return self == TableVersion()


def milliseconds(timestamp: str | datetime) -> int:
    """Return a time as milliseconds after 1970, rounded down. Without a zone it is UTC."""
    try:
        at = timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(timestamp)
    except (TypeError, ValueError) as exc:
        raise PolicyError(
            "the timestamp is not a time in ISO 8601", hint="for example 2026-01-31T12:00:00Z"
        ) from exc
    return (at.replace(tzinfo=at.tzinfo or UTC) - _EPOCH) // timedelta(milliseconds=1)
