"""What a driver ships is opened once in a worker."""

from __future__ import annotations

from secure_bloom.spark.package_archive import opened_once, ship


def test_a_value_is_opened_once_however_many_files_ask() -> None:
    opened: list[object] = []

    def open_value(value: object) -> object:
        opened.append(value)
        return value

    get = opened_once(open_value)
    shipped = ship({"a": 1})
    assert [get(shipped) for _ in range(3)] == [{"a": 1}] * 3
    assert opened == [{"a": 1}]
