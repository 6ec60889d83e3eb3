"""Rows out of an object store: the same as from disk, and in how many requests."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.hudi.filter_reader import show
from testing.command_line import Done, run
from testing.delta_logs import add, column, lines, start
from testing.storage import Bucket, s3_server
from testing.store_proxy import store_proxy
from testing.tables import KEYRING, Mode, customers, keyring_json, write

ROWS = 600
FILES = 3
ONE = "email = 'user7@example.com'"
MODES = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.name)


#: In `make test` each in one mode.
CONDITIONS = [None, ONE, "email = 'nobody'", "city = 'oslo' and score > 0"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "requests"


@pytest.fixture(scope="module")
def own_port(log: Path) -> Iterator[str]:
    with s3_server(log) as port:
        yield port


@pytest.fixture
def lake(own_port: str, s3_rights: None, tmp_path: Path, mode: Mode) -> Bucket:
    """Files of four row groups in ``lake/``, on a server that notes what it is asked."""
    bucket = Bucket(own_port)
    for number in range(FILES):
        part = customers(ROWS * FILES).slice(number * ROWS, ROWS)
        path = write(tmp_path / "x.parquet", part, mode, row_group_size=ROWS // 4)
        assert not sb.add_bloom_filters(path, columns=["email"], keys=KEYRING).failed
        bucket.put(f"lake/{number}.parquet", body=path.read_bytes())
        path.unlink()
    return bucket


def asked(log: Path) -> dict[str, list[tuple[str, str]]]:
    """Since the last look: object -> method and range of each request for it."""
    found = defaultdict(list)
    for line in log.read_text().splitlines():
        method, path, extent = line.split(" ", 2)
        if path.endswith(".parquet"):
            found[path.rpartition("/")[2]].append((method, extent))
    log.write_text("")
    return found


@pytest.mark.parametrize(
    ("mode", "where"),
    [
        pytest.param(mode, where, marks=[pytest.mark.slow] * (first != second))
        for first, mode in enumerate(Mode)
        for second, where in enumerate(CONDITIONS)
    ],
    ids=lambda of: of.name if isinstance(of, Mode) else str(of),
)
def test_rows_are_those_of_the_disk(lake: Bucket, where: str | None) -> None:
    whole = customers(ROWS * FILES)
    wanted = {
        None: whole,
        ONE: whole.filter(pc.field("email") == "user7@example.com"),
        "email = 'nobody'": whole.slice(0, 0),
    }.get(where, whole.filter((pc.field("city") == "oslo") & (pc.field("score") > 0)))
    assert sb.read_table(lake.uri("lake", "s3a"), where=where, keys=KEYRING).equals(wanted)
    plan = pickle.loads(pickle.dumps(sb.plan_read(lake.uri("lake"), where=where, keys=KEYRING)))
    rows = [b for file in plan.files for b in sb.read_row_groups(plan, file, keys=KEYRING)]
    assert pa.Table.from_batches(rows, schema=plan.schema).equals(wanted)


@MODES
def test_a_value_that_is_nowhere_takes_one_request_a_file(lake: Bucket, log: Path) -> None:
    """Its end: footer and filters, and which object it is."""
    asked(log)
    where = "email = 'user0@nowhere'"
    assert sb.read_table(lake.uri("lake"), where=where, keys=KEYRING).num_rows == 0
    requests = asked(log)
    assert len(requests) == FILES
    for made in requests.values():
        assert made == [("GET", "bytes=-131072")]


@MODES
def test_a_probe_takes_one_request_a_file(lake: Bucket, log: Path) -> None:
    asked(log)
    report = sb.probe(lake.uri("lake"), "email", ONE, keys=KEYRING)
    assert len(report.files) == FILES
    for made in asked(log).values():
        assert made == [("GET", "bytes=-131072")]


@MODES
def test_inspect_and_audit_take_one_request_a_small_file(lake: Bucket, log: Path) -> None:
    policy = sb.KeyPolicy(footer_key="k_footer")
    for look in (sb.inspect, partial(sb.audit, policy=policy)):
        asked(log)
        look(lake.uri("lake"), keys=KEYRING)
        requests = asked(log)
        assert len(requests) == FILES
        for made in requests.values():
            assert made == [("GET", "bytes=-131072")]


@pytest.mark.parametrize("look", [sb.inspect, sb.keys_used, show])
def test_objects_are_looked_at_side_by_side(
    s3_rights: None, tmp_path: Path, look: Callable[..., object]
) -> None:
    path = write(tmp_path / "x.parquet", customers(10), Mode.ENCRYPTED)
    with store_proxy() as proxy:
        proxy.tell(put={f"bench/lake/{number}.parquet": str(path) for number in range(12)})
        proxy.tell(delay=0.05)
        place = f"s3://bench/lake?endpoint_override=127.0.0.1:{proxy.port}&scheme=http"
        proxy.counts()
        look(f"{place}&region=us-east-1", keys=KEYRING)
        assert proxy.counts().at_once >= 6


@MODES
def test_advise_fetches_its_sample_once(
    lake: Bucket, log: Path, tmp_path: Path, mode: Mode
) -> None:
    for name, content in lake.objects().items():
        local = tmp_path / name
        local.parent.mkdir(exist_ok=True)
        local.write_bytes(content)
    of_disk = sb.advise(tmp_path / "lake", columns=["email", "id"], keys=KEYRING)
    log.write_text("")
    advice = sb.advise(lake.uri("lake"), columns=["email", "id"], keys=KEYRING)
    verdicts = [(it.column, it.verdict, it.reason) for it in advice.columns]
    assert verdicts == [(it.column, it.verdict, it.reason) for it in of_disk.columns]
    # Its end for the schema, its end for the lookups, and the row groups.
    assert all(len(requests) <= 4 for requests in asked(log).values())


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED])
def test_filters_that_lie_far_from_the_end_take_one_request_more(
    lake: Bucket, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secure_bloom.storage.pinned_objects.END", 4500)
    monkeypatch.setattr("secure_bloom.parquet.footer.locate._FIRST_READ", 9000)
    asked(log)
    where = "email = 'user0@nowhere'"
    assert sb.read_table(lake.uri("lake"), where=where, keys=KEYRING).num_rows == 0
    for made in asked(log).values():
        assert made[0] == ("GET", "bytes=-4500")
        assert [method for method, _ in made] == ["GET"] * 2


@MODES
def test_requests_for_a_row_do_not_grow_with_row_groups(lake: Bucket, log: Path) -> None:
    asked(log)
    assert sb.read_table(lake.uri("lake"), where=ONE, keys=KEYRING).num_rows == 1
    most = max(asked(log).values(), key=len)
    # Tail, filters, the column that is looked at, the others; and four times whether it is the one.
    assert len([extent for method, extent in most if method == "GET"]) <= 4
    assert len([extent for method, extent in most if method == "HEAD"]) <= 5
    assert len(set(most)) >= len(most) - 4, "no bytes are read twice"


@MODES
def test_a_full_scan_asks_once_for_the_footer_and_once_for_each_row_group(
    lake: Bucket, log: Path
) -> None:
    """Row groups are decoded one at a time: what one has too many must not get into the next."""
    asked(log)
    assert sb.read_table(lake.uri("lake"), keys=KEYRING).num_rows == ROWS * FILES
    for made in asked(log).values():
        assert len([extent for method, extent in made if method == "GET"]) <= 1 + 4


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED])
def test_why_a_read_of_objects_took_what_it_took(lake: Bucket) -> None:
    report = sb.explain(lake.uri("lake"), where=ONE, keys=KEYRING)
    assert report.rows == 1
    # All others, save a false positive or two.
    assert report.skipped["Bloom filter"] > 2 * FILES


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED])
def test_the_command_line_reads_objects(lake: Bucket, tmp_path: Path) -> None:
    keyring = tmp_path / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)

    def read(uri: str, *words: str, code: int = 0) -> Done:
        done = run("read", uri, "--keyring", keyring, *words)
        assert done.returncode == code, done.stderr
        return done

    found = read(lake.uri("lake"), "--where", ONE, "--columns", "email,city", "--json")
    assert json.loads(found.stdout)["data"][0]["email"] == "user7@example.com"
    gone = read(lake.uri("lake/9.parquet"), code=2)
    assert "no such file or folder" in gone.stderr
    into = read(lake.uri("lake"), "--output", "s3://bucket/found.csv", code=2)
    assert "the output is an object" in into.stderr


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED])
def test_an_object_that_was_written_again_is_not_the_one_that_was_planned(
    lake: Bucket,
) -> None:
    plan = sb.plan_read(lake.uri("lake"), where=ONE, keys=KEYRING)
    planned = plan.files[0]
    name = planned.path.partition("?")[0].rpartition("/")[2]
    objects = lake.objects()
    other = next(content for key, content in objects.items() if not key.endswith(name))
    lake.put(f"lake/{name}", body=other)
    with pytest.raises(sb.FileChangedError, match="was changed after it was planned"):
        list(sb.read_row_groups(plan, planned, keys=KEYRING))


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED])
def test_access_that_is_denied_is_said_so(lake: Bucket, own_port: str) -> None:
    uris = [lake.uri("lake"), lake.uri("lake/0.parquet")]
    grant(own_port, "0")
    try:
        for uri in uris:
            with pytest.raises(sb.PolicyError, match="the store denies access") as caught:
                sb.read_table(uri, keys=KEYRING)
            assert "credentials" in str(caught.value.hint)
    finally:
        grant(own_port, "Infinity")


def grant(port: str, actions: str) -> None:
    """Have the server check credentials after so many requests; those of the tests are unknown."""
    url = f"http://127.0.0.1:{port}/moto-api/reset-auth"
    request = Request(url, data=actions.encode(), headers={"Content-Type": "text/plain"})
    with urlopen(request) as answer:
        assert answer.status == 200


@MODES
def test_an_open_table_asks_once_for_each_object_and_then_for_row_groups(
    lake: Bucket, log: Path
) -> None:
    asked(log)
    with sb.open_table(lake.uri("lake"), keys=KEYRING) as table:
        assert table.read("email = 'user0@nowhere'").num_rows == 0
        first = asked(log)
        assert len(first) == FILES
        assert all(made == [("GET", "bytes=-131072")] for made in first.values())
        assert table.read("email = 'user1@nowhere'").num_rows == 0
        assert not asked(log)
        whole = customers(ROWS * FILES)
        assert table.read(ONE).equals(whole.filter(pc.field("email") == "user7@example.com"))
        # The column of the condition, twice, and the others.
        for made in asked(log).values():
            assert {method for method, _ in made} == {"GET"}
            assert len(made) <= 3
        assert table.read().equals(whole)


@MODES
def test_an_object_that_was_replaced_beneath_an_open_folder_is_read_anew(lake: Bucket) -> None:
    with sb.open_table(lake.uri("lake"), keys=KEYRING) as table:
        assert table.read(ONE).num_rows == 1
        objects = lake.objects()
        lake.put("lake/0.parquet", body=objects["lake/1.parquet"])
        lake.put("lake/1.parquet", body=objects["lake/0.parquet"])
        now = sb.read_table(lake.uri("lake"), where="score >= 0", keys=KEYRING)
        assert table.read("score >= 0").equals(now)
        assert table.read(ONE).num_rows == 1


def test_an_object_that_was_replaced_beneath_a_version_is_an_error(
    own_port: str, s3_rights: None, tmp_path: Path
) -> None:
    bucket = Bucket(own_port)
    data = "t/0.parquet"
    for key, first in ((data, 0), ("other", 1000)):
        file = tmp_path / "x.parquet"
        pq.write_table(pa.table({"n": range(first, first + 300)}), file)
        bucket.put(key, body=file.read_bytes())
    log = lines([*start(column("n")), add("0.parquet", len(bucket.objects()[data]))])
    bucket.put(f"t/_delta_log/{0:020}.json", body=log.encode())
    with sb.open_table(bucket.uri("t")) as table:
        assert table.read("n = 7").num_rows == 1
        bucket.put(data, body=bucket.objects()["other"])
        with pytest.raises(sb.FileChangedError) as caught:
            table.read("n = 7")
        assert "refresh()" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("dictionary", "fpp"),
    [
        pytest.param(True, 0.01, id="dictionary"),
        pytest.param(False, 0.01, id="plain"),
        pytest.param(False, 1e-8, id="filters that lie between the indexes and the end"),
    ],
)
def test_a_present_key_takes_a_page_a_column_and_all_of_them_at_once(
    own_port: str, s3_rights: None, tmp_path: Path, log: Path, dictionary: bool, fpp: float
) -> None:
    """First the column that is looked in, then one page of each other column; no index again."""
    bucket, count = Bucket(own_port), 20_000
    texts = [f"user{number * 7919 % count:09d}@example.com" for number in range(count)]
    rows = pa.table({"email": texts, "id": range(count), "note": [it * 2 for it in texts]})
    path = tmp_path / "x.parquet"
    pq.write_table(
        rows,
        path,
        row_group_size=count // 2,
        data_page_size=4096,
        write_batch_size=500,
        write_page_index=True,
        compression="none",
        use_dictionary=["email"] if dictionary else False,
    )
    options = sb.BloomFilterOptions(fpp=fpp)
    assert not sb.add_bloom_filters(path, columns={"email": options}).failed
    group = pq.read_metadata(path).row_group(0)
    email, *others = (group.column(ordinal).total_compressed_size for ordinal in range(3))
    bucket.put("lake/0.parquet", body=path.read_bytes())
    with sb.open_table(bucket.uri("lake")) as table:
        assert table.read("email = 'user0@nowhere'").num_rows == 0
        if fpp < 0.01:
            asked(log)
            assert table.read(f"email = '{texts[9]}'").num_rows == 1
            # The filters, the indexes of all row groups, and three columns.
            assert len(asked(log)["0.parquet"]) == 5
        for number in (10, 9_000, 11_000):
            asked(log)
            assert table.read(f"email = '{texts[number]}'").equals(rows.slice(number, 1))
            [made] = asked(log).values()
            sizes = [last - first + 1 for first, last in map(extent_of, made)]
            assert len(sizes) == 3
            assert sizes[0] <= email + 1024
            # Pages of 500 rows, of which a row group has 20.
            assert sum(sizes[1:]) < sum(others) / 15


def extent_of(request: tuple[str, str]) -> tuple[int, int]:
    first, _, last = request[1].removeprefix("bytes=").partition("-")
    return int(first), int(last)
