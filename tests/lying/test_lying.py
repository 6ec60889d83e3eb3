"""Whatever a file says of itself: the rows of a full scan, or a named error, never others.

A few hundred files run always, a sample of each kind of lie; all of them with the slow cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.errors import FormatError
from secure_bloom.kernels import extension
from testing.tables import KEYRING, Mode
from tests.lying.honest import SHAPES
from tests.lying.lies import LIES
from tests.lying.trials import HONEST, Tally, Trial, add, probe, questions, read, trials
from tests.lying.witnesses import WITNESSES, pyarrow_scan

HELD = [name for name, lie in LIES.items() if not lie.is_trusted]
#: Some lies for each shape, others for each.
SAMPLES = {
    "v1": HELD[0::32],
    "no-index": HELD[8::32],
    "filters": HELD[16::32],
    "encrypted": HELD[24::32],
}
#: Their lies are left to the full run, as far as the C extension is concerned.
QUICKLY_BY_STEPS = ("no-index", "filters")
VERBS: dict[str, Callable[[Trial], Tally]] = {"read": read, "add": add, "probe": probe}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The honest file of a shape, written when it is first asked for."""
    folder = tmp_path_factory.mktemp("honest")

    def file(shape: str) -> Path:
        path = folder / f"{shape}.parquet"
        return path if path.exists() else SHAPES[shape].write(path)

    return file


@pytest.fixture(params=[False, True], ids=["numpy", "native"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways in which row groups are ruled out: without the C extension, and with it."""
    if not request.param:
        monkeypatch.setattr(extension, "native", None)
    elif extension.native is None:
        pytest.skip("needs the C extension")
    found: bool = request.param
    return found


def _told(files: Iterator[Trial], *verbs: Callable[[Trial], Tally]) -> Tally:
    found = Tally()
    for trial in files:
        for verb in verbs:
            found += verb(trial)
    return found


@pytest.mark.parametrize(
    ("shape", "way"),
    [
        pytest.param(shape, way, marks=[pytest.mark.slow] * (way and shape in QUICKLY_BY_STEPS))
        for shape in SAMPLES
        for way in (False, True)
    ],
    indirect=["way"],
)
def test_a_sample_of_lies_costs_no_row(
    honest: Callable[[str], Path], tmp_path: Path, shape: str, way: bool
) -> None:
    files = trials(honest(shape), shape, tmp_path, SAMPLES[shape], every_column=False)
    verbs = (read_some,) if way else (read_some, add, probe)
    found = _told(files, *verbs)
    assert found.wrong == []
    assert found.asked > found.errors


def read_some(trial: Trial) -> Tally:
    """Four questions."""
    return read(trial, some=True)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_no_lie_costs_a_row(
    honest: Callable[[str], Path], tmp_path: Path, shape: str, way: bool
) -> None:
    files = trials(honest(shape), shape, tmp_path, HELD, every_column=True)
    assert _told(files, *VERBS.values()).wrong == []


@pytest.mark.parametrize("shape", SHAPES)
def test_honest_files_are_read_by_every_witness(honest: Callable[[str], Path], shape: str) -> None:
    path, is_encrypted = honest(shape), SHAPES[shape].mode is not Mode.PLAIN
    assert repr(pyarrow_scan(path, is_encrypted=is_encrypted)) == repr(HONEST)
    for scan in [] if is_encrypted else WITNESSES.values():
        assert repr(scan(path)) == repr(HONEST)


@pytest.mark.parametrize("shape", ["v1", "encrypted"])
def test_the_indexes_of_honest_files_are_believed(
    honest: Callable[[str], Path], shape: str
) -> None:
    report = sb.explain(honest(shape), where=[("number", "=", 650)], keys=KEYRING)
    (group,) = [g for f in report.files for g in f.row_groups if g.skipped_by is None]
    assert group.ranges == ((60, 80),)


@pytest.mark.parametrize("shape", ["v1", "no-index"])
def test_an_audit_finds_nothing_in_honest_files(honest: Callable[[str], Path], shape: str) -> None:
    report = sb.audit(honest(shape), policy=sb.KeyPolicy(), check_values=True)
    assert report.findings == ()


def test_an_audit_finds_what_cannot_be_true(honest: Callable[[str], Path], tmp_path: Path) -> None:
    seen = [name for name in LIES if LIES[name].seen][::20]
    assert _missed(honest("v1"), "v1", tmp_path, seen) == []


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["v1", "v2"])
def test_an_audit_finds_all_that_cannot_be_true(
    honest: Callable[[str], Path], tmp_path: Path, shape: str
) -> None:
    seen = [name for name in LIES if LIES[name].seen]
    assert _missed(honest(shape), shape, tmp_path, seen) == []


def _missed(honest: Path, shape: str, folder: Path, lies: list[str]) -> list[str]:
    return [
        str(trial)
        for trial in trials(honest, shape, folder, lies, every_column=False)
        if not sb.audit(trial.path, policy=sb.KeyPolicy(), check_values=True).findings
    ]


def test_a_row_group_that_has_too_much_does_not_shift_the_next(
    honest: Callable[[str], Path], tmp_path: Path
) -> None:
    """pyarrow, told to decode several together, takes its last values for rows of the next one."""
    lie = "DataPageHeader.num_values: one more"
    files = trials(honest("v1"), "v1", tmp_path, [lie], every_column=True)
    found = _told(files, read)
    assert found.wrong == []
    assert found.asked > found.errors


@pytest.mark.parametrize("shape", ["filters", "encrypted"])
def test_a_row_group_of_other_rows_than_its_chunks_is_an_error_whatever_is_asked(
    honest: Callable[[str], Path], tmp_path: Path, shape: str, way: bool
) -> None:
    """Some conditions found the rows of its pages, and others no more than it says it has."""
    lies = [f"RowGroup.num_rows: {said}" for said in ("half", "none", "one more")]
    told = "num_values is 120, the row group has|pyarrow read 120 rows"
    for trial in trials(honest(shape), shape, tmp_path, lies, every_column=True):
        for question in questions(trial.column):
            with pytest.raises(FormatError, match=told):
                sb.read_table(trial.path, where=[question], keys=KEYRING)


CUT_OFF = [name for name in LIES if "first_row_index of one page" in name]


@pytest.mark.parametrize(
    "lie", [CUT_OFF[0], *(pytest.param(lie, marks=pytest.mark.slow) for lie in CUT_OFF[1:])]
)
def test_an_index_that_a_page_contradicts_is_not_believed(
    honest: Callable[[str], Path], tmp_path: Path, lie: str
) -> None:
    """Its rows would be cut off at the wrong place, although the pages that are read tell."""
    files = trials(honest("encrypted"), "encrypted", tmp_path, [lie], every_column=True)
    found = _told(files, read_some)
    assert found.wrong == []
    assert found.errors == 0


@pytest.mark.parametrize("lie", [name for name, lie in LIES.items() if lie.is_trusted])
def test_what_nothing_contradicts_is_believed(
    honest: Callable[[str], Path], tmp_path: Path, lie: str
) -> None:
    """docs/reading/skipped.md says so; where it is no longer true, the page changes."""
    (trial,) = trials(honest("v1"), "v1", tmp_path, [lie], every_column=False)
    assert read(trial).wrong
