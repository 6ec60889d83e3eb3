"""Folders of a bucket are listed by the rules of local ones."""

from __future__ import annotations

import pytest

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.managed_tables import refuse_managed
from secure_bloom.storage import find_files, open_input, summary_files
from secure_bloom.storage.listing import file_sizes
from secure_bloom.storage.objects import ObjectTree
from testing.storage import OLD, Bucket

KEY = "lake/ts=2024-01-01 00%3A00/part-0.parquet"


def test_folders_of_a_bucket_are_listed_by_the_same_rules(bucket: Bucket) -> None:
    data = ["lake/_day=1/x.parquet", KEY, "lake/y.pq"]
    bucket.put(*data, "lake/_temporary/z.parquet", "lake/.x.parquet.crc", "lake/_metadata", "a.txt")
    wanted = sorted(bucket.uri(key) for key in data)
    assert find_files([bucket.uri("lake"), bucket.uri("lake/"), bucket.uri(KEY)]) == wanted
    assert find_files(bucket.uri("")) == wanted
    assert find_files(bucket.uri("a.txt")) == [bucket.uri("a.txt")]
    assert summary_files([bucket.uri(KEY)]) == [bucket.uri("lake/_metadata")]
    with open_input(find_files(bucket.uri("lake"))[1]) as file:
        assert file.read_at(0, 5) == OLD[:5]


def test_a_bucket_path_to_nothing_is_an_error(bucket: Bucket) -> None:
    bucket.put("lake/_SUCCESS")
    with pytest.raises(PolicyError, match="no such file or folder"):
        find_files(bucket.uri("none"))
    with pytest.raises(PolicyError, match="holds no Parquet file"):
        find_files(bucket.uri("lake"))


@pytest.mark.parametrize(
    ("path", "log"),
    [
        ("", "_delta_log/0.json"),
        ("lake", "metadata/v1.metadata.json"),
        ("lake/table", ".hoodie/hoodie.properties"),
        ("lake/table/day=1/x.parquet", "_delta_log/0.json"),
    ],
)
def test_a_managed_table_in_a_bucket_is_refused(bucket: Bucket, path: str, log: str) -> None:
    bucket.put("lake/table/day=1/x.parquet", "lake/other/y.parquet", f"lake/table/{log}")
    with pytest.raises(UnsupportedFeatureError) as caught:
        refuse_managed(bucket.uri(path))
    assert caught.value.path == bucket.uri("lake/table")
    refuse_managed([bucket.uri("lake/other"), bucket.uri("lake/other/y.parquet")])


@pytest.mark.parametrize("listed", [False, True])
def test_the_time_of_an_object_is_that_of_its_last_write(bucket: Bucket, listed: bool) -> None:
    bucket.put(KEY)
    tree = ObjectTree()
    if listed:
        assert [files for _, _, files in tree.walk(bucket.uri("lake"))][-1] == ["part-0.parquet"]
    head = bucket.client.head_object(Bucket=bucket.name, Key=KEY)
    seconds = head["LastModified"].timestamp()
    assert tree.written_ns(bucket.uri(KEY)) // 10**9 == int(seconds)


def test_sizes_of_many_objects_take_one_listing(bucket: Bucket) -> None:
    keys = [f"lake/part-{i}.parquet" for i in range(8)]
    bucket.put(*keys, "one/x.parquet")
    files = [bucket.uri(key) for key in (*keys, "one/x.parquet", "one/gone.parquet")]
    assert file_sizes(files) == [len(OLD)] * 9 + [0]


@pytest.mark.parametrize("reason", ["ACCESS_DENIED", "no such bucket"])
def test_a_folder_that_may_not_be_looked_at_is_not_seen(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    def refused(*_: object) -> bool:
        raise PolicyError(f"the store refuses: {reason}")

    monkeypatch.setattr(ObjectTree, "is_folder", refused)
    if reason == "ACCESS_DENIED":
        assert not ObjectTree().find_folder("s3://lake/above")
    else:
        with pytest.raises(PolicyError, match=reason):
            ObjectTree().find_folder("s3://lake/above")
