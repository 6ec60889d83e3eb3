"""A listing in two parts finds what one listing finds, whatever the cut between them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.split_listing import Entry, FileFilter, list_branch, list_upper_part
from secure_bloom.storage import find_files
from secure_bloom.storage.folder_trees import Tree


@dataclass
class Chosen(FileFilter):
    """Everything but folders and files with ``without`` in their names; remembers folders."""

    without: str = "\0"

    def __post_init__(self) -> None:
        self.seen: list[str] = []

    def folder(self, path: str, /) -> bool:
        self.seen.append(path)
        return self.without not in path

    def file(self, tree: Tree, path: str, /) -> bool:
        return self.without not in path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Files beside folders, three levels, and names that are no data."""
    folder = tmp_path / "table"
    for name in (
        "a.parquet",
        "_metadata",
        ".hidden.parquet",
        "_temporary/x.parquet",
        *(f"day={day}/hour={hour}/{n}.parquet" for day in "123" for hour in "12" for n in "ab"),
        "day=1/_metadata",
        "day=3/late.parquet",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def listed(paths: Sequence[Path], selection: FileFilter, **limits: int) -> list[Entry]:
    upper = list_upper_part(list(map(str, paths)), selection, **limits)
    return [
        *upper.entries,
        *(e for branch in upper.branches for e in list_branch(branch, selection)),
    ]


@pytest.mark.parametrize("branches", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize("most_files", [0, 1, 3, 1000])
def test_every_cut_finds_what_one_listing_finds(
    table: Path, branches: int, most_files: int
) -> None:
    found = listed([table], Chosen(), branches=branches, most_files=most_files)
    assert sorted(e.path for e in found if not e.is_summary) == find_files(table)
    assert sorted(e.path for e in found if e.is_summary) == [
        str(table / "_metadata"),
        str(table / "day=1/_metadata"),
    ]


def test_each_file_comes_with_its_size(table: Path) -> None:
    (table / "a.parquet").write_bytes(b"seven b")
    (table / "day=1/gone.parquet").symlink_to("nowhere")
    for found in (listed([table], Chosen(), branches=2), listed([table], Chosen(), branches=100)):
        sizes = {str(Path(e.path).relative_to(table)): e.size for e in found}
        assert (sizes["a.parquet"], sizes["day=1/gone.parquet"]) == (7, 0)
        assert sizes["day=3/late.parquet"] == 1


def test_the_first_part_holds_few_files_and_leaves_folders(table: Path) -> None:
    upper = list_upper_part([str(table)], Chosen(), branches=3, most_files=1000)
    assert [Path(e.path).name for e in upper.entries] == ["_metadata", "a.parquet"]
    assert [(Path(b.folder).name, b.deep) for b in upper.branches] == [
        ("day=1", True),
        ("day=2", True),
        ("day=3", True),
    ]
    full = list_upper_part([str(table)], Chosen(), branches=3, most_files=1)
    assert not full.entries
    assert (full.branches[0].folder, full.branches[0].deep) == (str(table), False)


def test_folders_that_nobody_wants_are_not_entered(table: Path) -> None:
    chosen = Chosen(without="day=1")
    found = listed([table], chosen, branches=2)
    assert not any("day=1" in entry.path for entry in found)
    assert [path for path in chosen.seen if "day=1" in path] == [str(table / "day=1")]


def test_a_link_that_leads_back_up_ends(table: Path) -> None:
    (table / "day=1" / "loop").symlink_to(table)
    found = listed([table], Chosen(), branches=100)
    assert {entry.key for entry in found if not entry.is_summary} == set(find_files(table))


def test_two_paths_keep_their_numbers_and_the_keys_of_a_file_are_equal(table: Path) -> None:
    found = listed([table, table / "day=3"], Chosen())
    late = [entry for entry in found if entry.path.endswith("late.parquet")]
    assert sorted(entry.root for entry in late) == [0, 1]
    assert late[0].key == late[1].key


def test_a_pattern_takes_what_find_files_takes(table: Path) -> None:
    (table / "notes.txt").write_bytes(b"x")
    paths = [table / "*", table / "notes.txt"]
    found = {entry.path for entry in listed(paths, Chosen()) if not entry.is_summary}
    assert sorted(found) == find_files(paths)


@pytest.mark.parametrize("where", [".", "day=2"])
@pytest.mark.parametrize("branches", [1, 100])
def test_a_managed_table_is_refused_by_whoever_meets_it(
    table: Path, where: str, branches: int
) -> None:
    (table / where / "_delta_log").mkdir()
    with pytest.raises(UnsupportedFeatureError, match="a Delta table"):
        listed([table], Chosen(), branches=branches)


def test_a_path_inside_a_managed_table_is_refused(table: Path) -> None:
    (table / "_delta_log").mkdir()
    with pytest.raises(UnsupportedFeatureError, match="a Delta table"):
        listed([table / "day=1"], Chosen())


def test_a_path_that_is_not_there_is_an_error(table: Path) -> None:
    with pytest.raises(PolicyError, match="no such file or folder"):
        listed([table / "nowhere"], Chosen())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
@pytest.mark.parametrize("branches", [1, 100])
def test_a_folder_that_may_not_be_looked_into_is_an_error(table: Path, branches: int) -> None:
    (table / "day=2").chmod(0)
    try:
        with pytest.raises(PolicyError, match="refuses"):
            listed([table], Chosen(), branches=branches)
    finally:
        (table / "day=2").chmod(0o755)


@pytest.mark.parametrize("branches", [1, 100])
@pytest.mark.parametrize("link", ["day=9", "day=1/x.parquet", "day=1/hour=9"])
def test_links_to_a_table_are_refused_in_both_parts(
    table: Path, tmp_path: Path, link: str, branches: int
) -> None:
    live = tmp_path / "other/data/x.parquet"
    for each in (live, tmp_path / "other/_delta_log/00000000000000000000.json"):
        each.parent.mkdir(parents=True)
        each.write_text("x")
    (table / link).symlink_to(live if link.endswith(".parquet") else live.parent)
    with pytest.raises(UnsupportedFeatureError, match="its own log"):
        listed([table], Chosen(), branches=branches)
