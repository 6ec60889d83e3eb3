"""Two runs on one object, one of them paused at each of its requests: no key is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import secure_bloom as sb
from secure_bloom.storage import object_writes, objects
from secure_bloom.storage.object_writer import ObjectWriter
from testing.interleaving import play_inside, steps_at
from testing.rekeying_verbs import INSIDE, OUTSIDE, VERBS, reencryption
from testing.store_proxy import StoreProxy
from testing.tables import KEYRING, customers, write
from testing.waiting import eventually

NAME = "lake/x.parquet"
MATERIAL = "lake/_KEY_MATERIAL_FOR_x.parquet.json"
STEPS = (
    (objects, "open_object"),
    (objects.ObjectFile, "_read_sibling"),
    (objects.ObjectFile, "check_unchanged"),
    (object_writes, "replace_object"),
    (object_writes, "remove_object"),
    (ObjectWriter, "write"),
)


class Store(Protocol):
    """A bucket of any store."""

    def uri(self, key: str) -> str: ...
    def objects(self) -> dict[str, bytes]: ...


def assert_no_key_is_lost(
    store: Store,
    put: Callable[[str, bytes], Any],
    remove: Callable[[str], Any],
    folder: Path,
    mix: tuple[str, str, str],
    *,
    every: int,
) -> None:
    """Pause the first verb of the mix for the second one, at each of so many steps, and look."""
    start, *verbs = mix
    first = objects_at_the_start(folder, start)
    uri, rows = store.uri(NAME), customers(8)
    works = [partial(VERBS[verb], uri) for verb in verbs]
    at, steps = 0, 1
    while at <= steps:
        for key in store.objects():
            remove(key)
        for key, content in first.items():
            put(key, content)
        with steps_at(STEPS):
            runs = play_inside(works[0], works[1], at)
        assert [run.error for run in runs] == [None, None]
        place = f"paused after step {at} of {runs[0].steps}"
        assert sb.read_table(uri, keys=KEYRING).equals(rows), place
        report = sb.reencrypt(uri, policy=INSIDE, keys=KEYRING, new_data_keys=True)
        assert report.failed == (), place
        # A store that does not remove on a condition keeps an empty file.
        assert json.loads(store.objects().get(MATERIAL, b"{}")) == {}, place
        assert store.objects().keys() <= {NAME, MATERIAL}, place
        at, steps = at + every, len(runs[0].steps)
    assert at > 5


def assert_a_late_write_has_its_keys(
    behind: Store,
    put: Callable[[str, bytes], Any],
    proxy: StoreProxy,
    folder: Path,
    failure: Mapping[str, Any],
) -> None:
    """Refuse the request that replaces the data, and let the store do it a moment later."""
    for key, content in objects_at_the_start(folder, "outside").items():
        put(key, content)
    before = behind.objects()[NAME]
    proxy.tell(fail={"late": 0.4, "from_then_on": True, **failure})
    assert reencryption(OUTSIDE, new_data_keys=True)(behind.uri(NAME)).failed
    proxy.tell(fail=None)
    assert eventually(lambda: behind.objects()[NAME] != before)
    assert sb.read_table(behind.uri(NAME), keys=KEYRING).equals(customers(8))
    # The next run removes the keys that it does not need.
    assert not reencryption(INSIDE, new_data_keys=True)(behind.uri(NAME)).failed
    assert json.loads(behind.objects().get(MATERIAL, b"{}")) == {}


def objects_at_the_start(folder: Path, start: str) -> dict[str, bytes]:
    path = write(folder / "x.parquet", customers(8), compression="none")
    if start == "outside":
        sb.reencrypt(path, policy=OUTSIDE, keys=KEYRING)
    return {f"lake/{it.name}": it.read_bytes() for it in folder.iterdir() if it.is_file()}
