"""Work in threads: the order of results, what is started, and what waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from secure_bloom.running import ordered_pool
from secure_bloom.running.ordered_pool import in_growing_threads, in_order

#: Far longer than anything here takes: a test that would hang fails.
_PATIENCE = 60.0


class Bench:
    """Items of work that end when they are let; what was started is known."""

    def __init__(self, count: int) -> None:
        self.started = [threading.Event() for _ in range(count)]
        self.let = [threading.Event() for _ in range(count)]

    def work(self, item: int) -> int:
        self.started[item].set()
        assert self.let[item].wait(_PATIENCE)
        return item

    def release(self, *items: int) -> None:
        for item in items:
            self.let[item].set()

    def were_begun(self) -> list[int]:
        return [item for item, event in enumerate(self.started) if event.is_set()]


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("room", [0, 1, 100])
def test_results_are_in_the_order_of_the_items(workers: int, room: int) -> None:
    assert list(in_order(str, range(200), workers, room=room)) == [str(i) for i in range(200)]
    assert list(in_order(str, [], workers)) == []


def test_one_worker_does_nothing_ahead() -> None:
    done: list[int] = []
    results = in_order(done.append, range(5), 1)
    assert done == []
    next(results)
    assert done == [0]


def test_a_slow_first_item_does_not_stop_later_ones() -> None:
    bench = Bench(10)
    bench.release(*range(1, 10))
    found: list[int] = []
    reader = threading.Thread(
        target=lambda: found.extend(in_order(bench.work, range(10), 2, room=100))
    )
    reader.start()
    for event in bench.started:
        assert event.wait(_PATIENCE)
    assert found == []
    bench.release(0)
    reader.join(_PATIENCE)
    assert found == list(range(10))


@pytest.mark.parametrize(("size", "room", "most"), [(1, 1, 4), (1, 4, 7), (1000, 999, 3)])
def test_what_waits_has_room(size: int, room: int, most: int) -> None:
    """Beside the slow one and those that wait, which take all the room, one more is under way."""
    started = [threading.Event() for _ in range(50)]
    was_begun: list[bool] = []

    def work(item: int) -> int:
        started[item].set()
        if item == 0:
            assert started[most - 2].wait(_PATIENCE)
            # Time for what must not be started.
            was_begun.append(started[most].wait(0.3))
        return item

    found = list(in_order(work, range(50), 2, size=lambda _: size, room=room))
    assert found == list(range(50))
    assert was_begun == [False]


def test_no_more_than_the_workers_and_one_are_drawn_ahead() -> None:
    bench = Bench(10)
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for item in range(10):
            drawn.append(item)
            yield item

    results = in_order(bench.work, items(), 2, room=100)
    reader = threading.Thread(target=lambda: list(results))
    reader.start()
    assert bench.started[1].wait(_PATIENCE)
    assert len(drawn) <= 4
    assert not bench.started[2].is_set()
    bench.release(*range(10))
    reader.join(_PATIENCE)
    assert len(drawn) == 10


def test_the_first_error_in_order_is_raised() -> None:
    second_failed = threading.Event()
    started: list[int] = []

    def work(item: int) -> int:
        started.append(item)
        if item == 2:
            assert second_failed.wait(_PATIENCE)
            raise ValueError("the first")
        if item == 3:
            second_failed.set()
            raise KeyError("the second")
        return item

    results = in_order(work, range(1000), 2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="the first"):
        next(results)
    # Nothing is started once it is raised.
    assert len(started) < 20
    assert next(results, None) is None


def test_what_was_not_begun_when_it_is_closed_is_not_done() -> None:
    bench = Bench(100)
    bench.release(*range(100))
    results = in_order(bench.work, range(100), 2)
    assert next(results) == 0
    results.close()
    assert len(bench.were_begun()) <= 5


def test_an_error_of_the_items_is_raised_after_what_was_begun() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("no more items")

    with pytest.raises(OSError, match="no more items"):
        list(in_order(lambda item: item, items(), 2))


@pytest.mark.parametrize("fails", [True, False], ids=["error", "closed"])
def test_stop_is_called_before_the_work_under_way_is_waited_for(fails: bool) -> None:
    stopped = threading.Event()

    def work(item: int) -> bool:
        if item == 0:
            if fails:
                raise ValueError("the first")
            return False
        return stopped.wait(_PATIENCE)

    results = in_order(work, range(2), 2, stop=stopped.set)
    if fails:
        with pytest.raises(ValueError, match="the first"):
            next(results)
    else:
        next(results)
        results.close()
    assert stopped.is_set()


def test_growing_threads_give_results_in_order() -> None:
    assert list(in_growing_threads(str, range(500), 8)) == [str(i) for i in range(500)]
    assert list(in_growing_threads(str, [], 8)) == []


def test_growing_threads_give_the_last_result_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_pool, "_WINDOW", 5.0)
    started = time.monotonic()
    # Still at work when its caller looks.
    assert list(in_growing_threads(time.sleep, [0.05], 8)) == [None]
    assert time.monotonic() - started < 4


def test_a_process_that_computes_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    # No process computes for less than nothing, so none waits.
    monkeypatch.setattr(ordered_pool, "_BUSY", 0.0)
    bench, grown = Bench(3), list[None]()
    results = in_growing_threads(bench.work, range(3), 8, grown=lambda: grown.append(None))
    reader = threading.Thread(target=lambda: list(results))
    reader.start()
    assert bench.started[0].wait(_PATIENCE)
    assert not bench.started[1].wait(0.2)
    bench.release(*range(3))
    reader.join(_PATIENCE)
    assert len(grown) == 1


def test_a_process_that_waits_gets_threads_up_to_the_most() -> None:
    bench, found = Bench(10), list[int]()
    results = in_growing_threads(bench.work, range(10), 4)
    reader = threading.Thread(target=lambda: found.extend(results))
    reader.start()
    assert bench.started[3].wait(_PATIENCE)
    assert not bench.started[4].wait(0.2)
    bench.release(*reversed(range(10)))
    reader.join(_PATIENCE)
    assert found == list(range(10))


def test_the_first_error_of_growing_threads_comes_after_the_results_before_it() -> None:
    bench, found, stopped = Bench(1), list[int](), list[bool]()

    def work(item: int) -> int:
        if item == 2:
            bench.release(0)
            raise ValueError("the first")
        return bench.work(item) if item == 0 else item

    results = in_growing_threads(work, range(1000), 4, stop=lambda: stopped.append(True))
    with pytest.raises(ValueError, match="the first"):
        found.extend(results)
    assert (found, stopped) == ([0, 1], [True])


def test_an_error_of_the_items_is_raised_in_its_turn() -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise KeyError("no more keys")

    found: list[int] = []
    with pytest.raises(KeyError, match="no more keys"):
        found.extend(in_growing_threads(int, items(), 4))
    assert found == [0, 1, 2]


def test_a_caller_that_ends_growing_threads_waits_for_the_items_in_progress() -> None:
    done: list[int] = []
    stopped = threading.Event()

    def work(item: int) -> int:
        if item == 1:
            assert stopped.wait(_PATIENCE)
        done.append(item)
        return item

    results = in_growing_threads(work, range(1000), 1, stop=stopped.set)
    assert next(results) == 0
    results.close()
    assert done in ([0], [0, 1])
