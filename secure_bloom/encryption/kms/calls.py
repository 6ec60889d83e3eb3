"""Limit the calls to a KMS that run at once, repeat failed ones after a pause, and give up in time.

Every provider of this package makes its calls through :class:`Calls`, so all of them treat
throttling and outages alike. Their SDKs repeat nothing themselves.

A policy names the server, which may be a proxy, or belong to someone else by now.  A packed answer
could have any size when unpacked. So :func:`limit_answers` requests answers unpacked, reads them
within a limit, and never unpacks one.
"""

from __future__ import annotations

import io
import ipaddress
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from secure_bloom.errors import KmsUnavailableError
from secure_bloom.running.first_answer import GIVE_UP_SECONDS, NoAnswerError, answered

T = TypeVar("T")

#: Throttling and outages are waited out for this time, unless ``retry_seconds`` of [kms] says
#: otherwise.
RETRY_SECONDS: Final = 30
#: The most calls of one client that are under way at a time.
AT_ONCE: Final = 32
#: One call waits this long for an answer.
TIMEOUT_SECONDS: Final = 10

#: Errors of reading a field that is missing, of another type, or nested deeply.
_STRANGE: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
#: A KMS that never answered is tried for this time only: most likely its address is wrong.
_FIRST_CONTACT_SECONDS = 3.0
#: After giving up, calls fail at once for this time: a run over many files must not wait for each.
_REST_SECONDS = 10.0


class TransientFailureError(Exception):
    """A failure after which the same call may succeed: throttling, an outage, no connection.

    ``pause`` is the number of seconds that the KMS asked us to wait, or None.  ``answered`` says
    whether the KMS answered at all. If it did not, its address may be wrong.
    """

    def __init__(self, reason: str, *, pause: float | None = None, answered: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.pause = pause
        self.answered = answered


class Calls:
    """Runs the calls of one client. Safe for threads.

    ``kms`` is the name of the KMS in errors: its kind and address, without secrets.
    """

    def __init__(
        self,
        kms: str,
        *,
        retry_seconds: float = RETRY_SECONDS,
        at_once: int = AT_ONCE,
    ) -> None:
        self._kms = kms
        self._retry_seconds = retry_seconds
        self._free = threading.BoundedSemaphore(at_once)
        # Set without a lock.  If two threads set it the last one wins.  The worst that follows is
        # one call too many, or a rest too long.
        self._gave_up: tuple[float, TransientFailureError] | None = None
        self._has_answered = False

    def run(self, call: Callable[[], T]) -> T:
        """Return the answer of ``call``. Repeats the call while it raises TransientFailureError.

        Raises KmsUnavailableError when the failures last for ``retry_seconds``. For a while after
        that, every call raises it at once. Also raises it for an answer that no KMS gives.
        """
        gave_up = self._gave_up
        if gave_up is not None and time.monotonic() < gave_up[0]:
            raise self._unavailable(gave_up[1].reason) from gave_up[1]
        # Monotonic: a clock that is set during the wait must make it neither endless nor empty.
        start, attempt = time.monotonic(), 0
        while True:
            try:
                # Given back before the pause: a call that only waits must not take a place from one
                # that works.
                with self._free:
                    answer = answered(self._kms, call)
            except NoAnswerError:
                raise self._unavailable(f"no answer in {GIVE_UP_SECONDS:.0f} s") from None
            except TransientFailureError as failure:
                pause = _pause(attempt, failure.pause)
                # The pause counts, so that nobody waits for a call that would not be made any more.
                if time.monotonic() + pause - start > self._patience(failure):
                    self._gave_up = (time.monotonic() + _REST_SECONDS, failure)
                    raise self._unavailable(failure.reason) from failure
                time.sleep(pause)
                attempt += 1
            # SDKs take the form of an answer for granted. Without the text, which may quote it.
            except _STRANGE as exc:
                raise strange_answer(self._kms, type(exc).__name__) from None
            else:
                self._gave_up, self._has_answered = None, True
                return answer

    def _patience(self, failure: TransientFailureError) -> float:
        """Return for how many seconds a call is repeated after this kind of failure."""
        self._has_answered |= failure.answered
        if self._has_answered:
            return self._retry_seconds
        return min(self._retry_seconds, _FIRST_CONTACT_SECONDS)

    def _unavailable(self, reason: str) -> KmsUnavailableError:
        return KmsUnavailableError(
            f"{self._kms} is not available: {reason}",
            hint="repeat the run when the KMS answers again: `secure-bloom keys check` shows it",
        )


def is_this_machine(host: str) -> bool:
    """Return whether ``host`` is this machine, so that requests to it cross no network."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _pause(attempt: int, wanted: float | None) -> float:
    """Return the seconds to wait before the next call: a random share of a limit that doubles.

    Without the random share, all callers that were throttled together would call again together.
    """
    import random

    limit = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
    # The pause is at least a quarter: without one a throttled server would be asked again at once.
    jitter = random.uniform(limit / 4, limit)  # noqa: S311 - it spreads calls and hides nothing
    return jitter if wanted is None else wanted + jitter


#: Answers have a few hundred bytes; a key with thousands of versions has some hundred KB.
LARGEST_ANSWER: Final = 4 << 20


def strange_answer(place: str, what: str) -> KmsUnavailableError:
    """Return the error for an answer that is not one of a KMS. ``place`` names the KMS."""
    return KmsUnavailableError(
        f"the answer of {place} does not come from its KMS: {what}",
        hint="check the address in [kms], and the proxies on the way to it",
    )


def answer_body(raw: Any, strange: Callable[[str], Exception]) -> bytes:
    """Return the body of an answer of urllib3. Raises ``strange`` if the body is too large."""
    body = b""
    while piece := raw.read(LARGEST_ANSWER + 1 - len(body), decode_content=False):
        body += piece
        if len(body) > LARGEST_ANSWER:
            # Not given back to its pool: the rest of the body would be read first.
            raw.close()
            raise strange(f"more than {LARGEST_ANSWER:,} bytes")
    return body


def limit_answers(session: Any, strange: Callable[[str], Exception]) -> None:
    """Make a session of requests refuse answers that are too large, by the error ``strange``."""
    import requests
    import urllib3.exceptions

    def limited(response: Any, **_: object) -> None:
        try:
            response.raw = io.BytesIO(answer_body(response.raw, strange))
        except urllib3.exceptions.HTTPError as exc:
            raise requests.ConnectionError(exc) from exc

    session.headers["Accept-Encoding"] = "identity"
    session.hooks["response"].append(limited)
