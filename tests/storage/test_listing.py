"""Which files paths, folders and patterns mean, and which tables are not ours to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.managed_tables import refuse_managed
from secure_bloom.storage import find_files, summary_files
from secure_bloom.storage.listing import output_paths, refuse_inside


def made(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    return root


def below(root: Path, files: list[str]) -> list[str]:
    return [str(Path(file).relative_to(root)) for file in files]


def test_a_folder_means_the_data_files_below_it(tmp_path: Path) -> None:
    made(
        tmp_path,
        "day=1/hour=2/part-1.parquet",
        "day=1/part-0.c000.snappy.parquet",
        "_day=1/part-2.parquet",
        "x.parq",
        "y.pq",
        "z.parquet.encrypted",
        "UPPER.PARQUET",
        # and not:
        "_SUCCESS",
        "_metadata",
        "_KEY_MATERIAL_FOR_x.json",
        ".x.parquet.crc",
        ".hidden.parquet",
        ".x.parquet.secure-bloom",
        "_temporary/0/part-3.parquet",
        ".hidden=1/part-4.parquet",
        "notes.txt",
        "x.parquet.bak",
    )
    assert below(tmp_path, find_files(tmp_path)) == [
        "UPPER.PARQUET",
        "_day=1/part-2.parquet",
        "day=1/hour=2/part-1.parquet",
        "day=1/part-0.c000.snappy.parquet",
        "x.parq",
        "y.pq",
        "z.parquet.encrypted",
    ]


def test_a_file_named_outright_is_taken_whatever_its_name(tmp_path: Path) -> None:
    made(tmp_path, "_odd.bin")
    assert find_files([tmp_path / "_odd.bin"]) == [str(tmp_path / "_odd.bin")]


def test_paths_stay_as_they_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made(tmp_path, "t/x.parquet"))
    assert find_files(["t"]) == ["t/x.parquet"]
    assert find_files("./t/") == ["./t/x.parquet"]


def test_a_file_uri_is_a_path(tmp_path: Path) -> None:
    made(tmp_path, "a b/x.parquet")
    assert find_files(f"file:{tmp_path}/a%20b") == [str(tmp_path / "a b/x.parquet")]


def test_each_file_comes_once(tmp_path: Path) -> None:
    made(tmp_path, "t/x.parquet", "t/y.parquet")
    (tmp_path / "link").symlink_to("t")
    (tmp_path / "t/z.parquet").symlink_to("x.parquet")
    paths = [tmp_path / "t", tmp_path / "link", tmp_path / "t/x.parquet", f"{tmp_path}/t/*"]
    assert below(tmp_path, find_files(paths)) == ["t/x.parquet", "t/y.parquet"]


def test_links_are_followed_and_loops_are_not(tmp_path: Path) -> None:
    made(tmp_path, "elsewhere/x.parquet", "t/day=1/y.parquet")
    (tmp_path / "t/day=0").symlink_to("../elsewhere")
    (tmp_path / "t/day=1/loop").symlink_to("..")
    found = find_files(tmp_path / "t")
    assert below(tmp_path, found) == ["t/day=0/x.parquet", "t/day=1/y.parquet"]


def test_patterns_find_files_in_folders_of_partitions(tmp_path: Path) -> None:
    made(tmp_path, "day=1/x.parquet", "day=2/y.parquet", "day=2/_SUCCESS", "day=[3]/z.parquet")
    assert below(tmp_path, find_files(f"{tmp_path}/day=?/*")) == [
        "day=1/x.parquet",
        "day=2/y.parquet",
    ]
    assert below(tmp_path, find_files(f"{tmp_path}/**/*.parquet")) == [
        "day=1/x.parquet",
        "day=2/y.parquet",
        "day=[3]/z.parquet",
    ]
    assert below(tmp_path, find_files(f"{tmp_path}/day=[3]")) == ["day=[3]/z.parquet"]


def test_a_broken_link_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").symlink_to("gone")
    assert find_files(tmp_path) == [str(tmp_path / "x.parquet")]


@pytest.mark.parametrize("path", ["none", "none/*.parquet", "none.parquet"])
def test_a_path_to_nothing_is_an_error(tmp_path: Path, path: str) -> None:
    made(tmp_path, "x.parquet")
    with pytest.raises(PolicyError, match="no such file or folder") as caught:
        find_files([tmp_path / "x.parquet", tmp_path / path])
    assert caught.value.path == str(tmp_path / path)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("tabel", "did you mean {1}table"),
        ("tabel/", "did you mean {1}table"),
        ("TABLE", "did you mean {1}table"),
        ("tabel/x.parquet", "did you mean {1}table/x.parquet"),
        ("table/xx.parquet", "did you mean {1}table/x.parquet"),
        # An ending that all files have is no likeness.
        ("table/y.parquet", "{0}/table has no name like it"),
        ("tabel/none", "did you mean {1}table"),
        ("none", "{0} has no name like it"),
        ("none/of/them", "the nearest folder that is there is {0}"),
        ("table/x.parquet/y", "did you mean {1}table/x.parquet"),
    ],
)
def test_a_path_to_nothing_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, hint: str
) -> None:
    made(tmp_path, "table/x.parquet")
    monkeypatch.chdir(tmp_path)
    for start in ("", "./", f"{tmp_path}/"):
        with pytest.raises(PolicyError, match="no such file or folder") as caught:
            find_files(start + path)
        # The whole path as it was typed.
        assert caught.value.hint == hint.format(tmp_path, start)


def test_a_folder_without_data_is_an_error_with_a_hint(tmp_path: Path) -> None:
    made(tmp_path, "_SUCCESS")
    for path in (tmp_path, f"{tmp_path}/*"):
        with pytest.raises(PolicyError, match="holds no Parquet file") as caught:
            find_files(path)
        assert ".parquet" in str(caught.value.hint)


def test_summary_files_are_those_of_the_folders_above(tmp_path: Path) -> None:
    made(
        tmp_path,
        "_metadata",
        "t/day=1/x.parquet",
        "t/day=1/_metadata",
        "t/day=1/_common_metadata",
        "t/day=2/y.parquet",
        "t/day=2/_metadata/z",
        "t/day=3/_metadata",
    )
    found = summary_files([f"{tmp_path}/t/day=1/x.parquet", f"{tmp_path}/t/day=2/y.parquet"])
    assert below(tmp_path, found) == ["_metadata", "t/day=1/_metadata"]


LOGS = {
    "Delta": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/00000-1b2c.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
}


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize(
    "path", [".", "lake", "lake/table", "lake/table/day=1", "lake/table/day=1/x.parquet"]
)
def test_a_managed_table_is_refused_from_anywhere(tmp_path: Path, kind: str, path: str) -> None:
    made(tmp_path, "lake/table/day=1/x.parquet", f"lake/table/{LOGS[kind]}")
    with pytest.raises(UnsupportedFeatureError, match=kind) as caught:
        refuse_managed([tmp_path / path])
    assert caught.value.path == str(tmp_path / "lake/table")
    assert caught.value.hint is not None
    assert find_files(tmp_path / path) == [str(tmp_path / "lake/table/day=1/x.parquet")]


@pytest.mark.parametrize("kind", LOGS)
def test_a_managed_table_is_refused_through_links_too(tmp_path: Path, kind: str) -> None:
    made(tmp_path, "table/x.parquet", f"table/{LOGS[kind]}")
    (tmp_path / "link.parquet").symlink_to("table/x.parquet")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/link").symlink_to("../table")
    for path in (tmp_path / "link.parquet", tmp_path / "lake", f"{tmp_path}/lake/li*"):
        with pytest.raises(UnsupportedFeatureError, match=kind):
            refuse_managed(path)


def test_other_tables_are_not_refused(tmp_path: Path) -> None:
    made(
        tmp_path, "t/x.parquet", "t/metadata/readme.json", "other/_delta_log/0.json", "t/_metadata"
    )
    refuse_managed([tmp_path / "t", tmp_path / "t/x.parquet", f"{tmp_path}/t/*.parquet"])


def test_paths_without_files_are_told_and_the_others_are_taken(tmp_path: Path) -> None:
    made(tmp_path, "full/x.parquet", "empty/notes.txt")
    paths = [tmp_path / "empty", tmp_path / "full", tmp_path / "nothing"]
    refused: list[PolicyError] = []
    assert find_files(paths, refused=refused) == [str(tmp_path / "full/x.parquet")]
    assert [(error.path, error.message) for error in refused] == [
        (str(tmp_path / "empty"), "holds no Parquet file"),
        (str(tmp_path / "nothing"), "no such file or folder"),
    ]
    with pytest.raises(PolicyError, match="holds no Parquet file"):
        find_files([paths[0], paths[2]], refused=[])


def test_outputs_keep_their_paths_below_the_folders_that_were_given() -> None:
    files = ["/in/a/x.parquet", "/in/b/x.parquet", "/other/y.parquet"]
    assert output_paths(files, ["/in", "/in/a/x.parquet", "/other/y.parquet"], "/out") == {
        "/in/a/x.parquet": "/out/a/x.parquet",
        "/in/b/x.parquet": "/out/b/x.parquet",
        "/other/y.parquet": "/out/y.parquet",
    }
    assert output_paths(["/in/a/x.parquet"], ["/in", "/in/a"], "/out") == {
        "/in/a/x.parquet": "/out/x.parquet"
    }


def test_an_output_takes_the_place_of_no_input_and_of_no_other_output() -> None:
    with pytest.raises(PolicyError, match="overwrite the input") as caught:
        output_paths(["/in/x.parquet"], ["/in"], "/in")
    assert caught.value.path == "/in/x.parquet"
    files = ["/a/x.parquet", "/b/x.parquet"]
    with pytest.raises(PolicyError, match="two input files would become one output file"):
        output_paths(files, files, "/out")


def test_an_output_lies_in_no_folder_that_it_is_made_of(tmp_path: Path) -> None:
    """Else the next reader of the folder finds each row twice."""
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to("t")
    for given, output in (("t", "t/out"), ("t", "t"), ("t", "link/out"), ("link", "t/day=1/out")):
        with pytest.raises(PolicyError, match="would lie inside the table itself") as caught:
            refuse_inside(str(tmp_path / output), [str(tmp_path / given)])
        assert caught.value.hint == "name a folder beside it"
    with pytest.raises(PolicyError, match="would lie inside"):
        refuse_inside("s3a://lake/t/out", ["s3://lake/t/"])
    refuse_inside(str(tmp_path / "out"), [str(tmp_path / "t"), "s3://lake/t"])
    refuse_inside("s3://lake/t2", ["s3://lake/t"])
