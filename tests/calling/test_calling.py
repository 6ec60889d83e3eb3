"""Public names are imported when they are first used; what is made once is made once."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from secure_bloom.calling import lazy_names, made_once


def test_a_module_is_loaded_by_the_first_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "house_of_names"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kitchen.py").write_text("spoon, fork = 1, 2\n")
    (package / "attic.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    find, names = lazy_names("house_of_names", {"kitchen": ["spoon", "fork"], "attic": []})
    assert names() == ["attic", "fork", "spoon"]
    assert "house_of_names.kitchen" not in sys.modules
    assert (find("spoon"), find("fork")) == (1, 2)
    assert find("attic").__name__ == "house_of_names.attic"
    with pytest.raises(AttributeError, match="'house_of_names' has no attribute 'kitchen'"):
        find("kitchen")


def test_threads_that_ask_at_once_get_one_result() -> None:
    calls: list[str] = []
    together = threading.Barrier(8)

    @made_once
    def slow(name: str) -> object:
        calls.append(name)
        time.sleep(0.05)
        return object()

    def ask(name: str) -> object:
        together.wait()
        return slow(name)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, ["one", "two"] * 4))
    assert sorted(calls) == ["one", "two"]
    assert len(set(map(id, found))) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_forked_while_something_is_made_can_make_it() -> None:
    begun, go_on = threading.Event(), threading.Event()

    @made_once
    def slow(name: str) -> str:
        if name == "parent":
            begun.set()
            go_on.wait()
        return name

    thread = threading.Thread(target=slow, args=["parent"])
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        os._exit(7 if slow("child") == "child" else 1)
    deadline = time.monotonic() + 30
    ended, status = 0, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 7
