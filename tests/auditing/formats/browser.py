"""A real browser, driven through its own protocol over two pipes; nothing but Python is needed.

https://chromedevtools.github.io/devtools-protocol/: messages are JSON, each ended by a zero byte.
The browser reads them from its file descriptor 3 and writes to 4.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE_SECONDS = 60
#: Puts the pipes where the browser looks for them, then becomes the browser.
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """The path of a browser that speaks the protocol, None where none is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab; what it asked the network for and what it complained of are remembered."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._session, self._buffer = 0, None, b""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers.fileno(), 1 << 20)
            assert part, "the browser went away"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        event = json.loads(message)
        self._remember(event.get("method"), event.get("params", {}))
        return event

    def _remember(self, method: str | None, about: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))

    def open(self, path: Path, *, width: int = 1280, dark: bool = False) -> None:
        """Show a file, in a window of this width, and wait until it is there."""
        self.requests.clear()
        self.complaints.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        there = f"document.readyState === 'complete' && location.href === '{path.as_uri()}'"
        self.wait(there)

    def wait(self, condition: str) -> None:
        """Wait until an expression is true in the page: much of a browser happens by and by."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.value(condition):
            assert time.monotonic() < deadline, f"never came true: {condition}"
            time.sleep(0.01)

    def value(self, expression: str) -> Any:
        """What an expression comes to in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click into the middle of an element, as a user does."""
        place = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0],
                y=place[1],
                button="left",
                clickCount=1,
            )

    def type(self, text: str) -> None:
        """Type into what was clicked last."""
        self.call("Input.insertText", text=text)

    def picture(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser_page(program: str, profile: Path) -> Iterator[Page]:
    """A page in a browser of its own, which ends with the block."""
    command_end, commands = os.pipe()
    answers, answer_end = os.pipe()
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", _LAUNCH, str(command_end), str(answer_end), program),
            *("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
            *("--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars"),
            f"--user-data-dir={profile}",
        ],
        pass_fds=(command_end, answer_end),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_end)
    os.close(answer_end)
    with os.fdopen(commands, "wb") as out, os.fdopen(answers, "rb", buffering=0) as back:
        try:
            yield Page(out, back)
        finally:
            process.terminate()
            process.wait(timeout=30)
