"""``--timeout SECONDS`` of the verbs that read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from secure_bloom.errors import PolicyError

_OPTION = "--timeout"


def with_timeout(function: Callable[..., int]) -> Callable[..., int]:
    """Add ``--timeout`` to a verb. After that time the verb ends by TimeLimitError."""

    @functools.wraps(function)
    def call(*args: Any, timeout: float | None, **options: Any) -> int:
        if timeout is None:
            return function(*args, **options)
        from secure_bloom.running.time_limit import time_limit

        with time_limit(timeout):
            return function(*args, **options)

    return click.option(
        _OPTION,
        type=float,
        metavar="SECONDS",
        help="End with an error after this time.",
    )(call)


def requested_limit(arguments: Sequence[str]) -> float | None:
    """Return the limit in the arguments, or None if there is none or it is not a number.

    It is needed before the verb's own module is imported. The verb parses the arguments again and
    reports errors.
    """
    for place, word in enumerate(arguments):
        if word == "--":
            break
        name, _, value = word.partition("=")
        if name == _OPTION:
            from secure_bloom.running.time_limit import checked_limit

            given = value if "=" in word else "".join(arguments[place + 1 : place + 2])
            try:
                return checked_limit(float(given))
            except (ValueError, PolicyError):
                return None
    return None
