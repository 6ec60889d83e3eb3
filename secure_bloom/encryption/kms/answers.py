"""Read the answer of a KMS within a limit, whatever its server sends.

A policy names the server. The server may be a proxy, or belong to someone else by now.  A packed
answer could have any size when unpacked. So answers are requested unpacked, and are never unpacked
here.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

from secure_bloom.errors import KmsUnavailableError

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
