"""Every byte of small encrypted files changed: no verb that reads gives another answer for it.

Bytes that the format leaves without a tag are not tried: pages of AES_GCM_CTR_V1, and columns in
clear of a file whose footer is signed (docs/threat-model.md).  Beside flips, modules change places
within a file and between files, footers of other files and of earlier versions of the file are laid
over, and protection is taken away.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

import secure_bloom as sb
from campaigns.disks import MEMORY
from campaigns.outcome import Effort, Outcome
from campaigns.pieces import Tally, in_pieces
from secure_bloom import hudi, paimon
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy_tables import Algorithm, ColumnRule, EncryptionOptions
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import chunk_extent, read_pages
from testing.surgery import opened
from testing.tables import KEYRING, Mode, write

FLIPS = (0x01, 0x80, 0xFF)
#: Of the flips, and of the modules in other places, in a quick run.
QUICK = 5
#: Changes of a piece.
_A_PIECE = 200
_TABLE = pa.table({"a": ["rome", "oslo", "lyon", "bern"], "b": pa.array([1, 2, 3, 4], pa.int64())})
_GCM, _CTR = Algorithm.AES_GCM_V1, Algorithm.AES_GCM_CTR_V1
_ALL_KEYS = {"k_pii": ["a"], "k_finance": ["b"]}

Answer = Any
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A way to encrypt a file; a signed one has the column ``b`` in clear."""

    name: str
    mode: Mode
    algorithm: Algorithm = _GCM

    @property
    def policy(self) -> sb.KeyPolicy:
        """What the file obeys."""
        signed = self.mode is Mode.SIGNED
        keys = {} if self.mode is Mode.UNIFORM else {"a": "k_pii"} if signed else _KEYS
        return sb.KeyPolicy(
            footer_key="k_footer",
            footer_mode=FooterMode.SIGNED if signed else FooterMode.ENCRYPTED,
            columns={path: ColumnRule(path=path, key=key) for path, key in keys.items()},
            encryption=EncryptionOptions(algorithm=self.algorithm),
        )


_KEYS = {"a": "k_pii", "b": "k_finance"}
CASES = [
    Case(name="encrypted footer", mode=Mode.ENCRYPTED),
    Case(name="signed footer", mode=Mode.SIGNED),
    Case(name="uniform", mode=Mode.UNIFORM),
    Case(name="encrypted footer, CTR", mode=Mode.ENCRYPTED, algorithm=_CTR),
]


def _verbs(policy: sb.KeyPolicy) -> dict[str, Callable[[Path], Answer]]:
    given: dict[str, Any] = {"keys": KEYRING, "policy": policy}
    return {
        "read": lambda path: sb.read_table(path, **given).to_pydict(),
        "read where": lambda path: sb.read_table(path, where="a = 'oslo'", **given).to_pydict(),
        "probe": lambda path: _probed(sb.probe(path, "a", ["oslo", "nowhere"], **given)),
        "add": lambda path: _done(
            sb.add_bloom_filters(
                path, columns=["a", "b"], replace_filters=True, dry_run=True, **given
            ),
            "filters",
        ),
        "hudi lookup": lambda path: _done(
            hudi.lookup(path, ["oslo", "nowhere"], column="a", **given), "found"
        ),
        "paimon build": lambda path: _done(
            paimon.build_indexes(path, ["a"], allow_clear_index=True, dry_run=True, **given),
            "columns",
        ),
    }


def _probed(report: Any) -> Answer:
    return [sorted(g.verdicts.items()) for file in report.files for g in _sound(file).row_groups]


def _done(report: Any, what: str) -> Answer:
    return [getattr(_sound(file), what) for file in report.files]


def _sound(file: Any) -> Any:
    if file.error is not None:
        raise sb.SecureBloomError(file.error)
    return file


def run(effort: Effort) -> Outcome:
    """All cases, in pieces of some changes each."""
    few = partial(_few, random.Random(effort.seed), QUICK if effort.quick else None)
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="integrity-") as name:
        pieces = [
            (case, altered, known)
            for number, case in enumerate(CASES)
            for altered, known in _prepared(Path(name, f"{number}"), case, few)
        ]
        tally = in_pieces("integrity", pieces, partial(_count, Path(name)), quick=effort.quick)
    return Outcome(
        tried=f"Every authenticated byte of a small file of each of {len(CASES)} modes x "
        f"{len(FLIPS)} flips x {len(_verbs(CASES[0].policy))} verbs that read; modules, footers "
        "and filters in each other's places, and an earlier version's in its successor; "
        "protection taken away under a policy",
        trials=tally.trials,
        failures=tally.failures,
    )


Few = Callable[[list[Any]], list[Any]]
#: What was done to a sound file, and its content then.
Altered = tuple[str, bytes]


def _prepared(
    folder: Path, case: Case, few: Few
) -> Iterator[tuple[Sequence[Altered], Mapping[str, Answer]]]:
    """Write the files of a case; yield changes of them with the answers of the sound file."""
    folder.mkdir()
    path = written(folder, case, "x")
    swapped = written(folder, case, "y", row_groups=2)
    other = written(folder, case, "z", row_groups=2)
    known, known_swapped = answers(path, case), answers(swapped, case)
    altered = itertools.chain(
        _flipped(path, case, few), _replayed(path, case), _weakened(folder, case)
    )
    while piece := [*itertools.islice(altered, _A_PIECE)]:
        yield piece, known
    yield [*few(list(_moved(swapped, other, case))), *_exchanged(swapped, other)], known_swapped


def _count(folder: Path, piece: tuple[Case, Sequence[Altered], Mapping[str, Answer]]) -> Tally:
    """Try every verb on every change of a piece."""
    case, altered, known = piece
    trials, failures = 0, []
    with tempfile.TemporaryDirectory(dir=folder) as own:
        for told, content in altered:
            for verb, failure in tried(Path(own), content, case, known):
                trials += 1
                if failure is not None:
                    failures.append(f"{case.name}, {told}, {verb}: {failure}")
    return Tally(trials=trials, failures=tuple(failures))


def written(folder: Path, case: Case, name: str, *, row_groups: int = 1) -> Path:
    """A file of the case, with filters of its encrypted columns."""
    path = folder / f"{name}.parquet"
    write(
        path,
        _TABLE,
        case.mode,
        column_keys={"k_pii": ["a"]} if case.mode is Mode.SIGNED else _ALL_KEYS,
        encryption={"encryption_algorithm": str(case.algorithm), "double_wrapping": False},
        row_group_size=len(_TABLE) // row_groups,
        store_schema=False,
        write_page_index=True,
    )
    sb.add_bloom_filters(path, columns=_columns(case), keys=KEYRING)
    return path


def _columns(case: Case) -> list[str]:
    """The columns that are encrypted, and get filters."""
    return ["a"] if case.mode is Mode.SIGNED else ["a", "b"]


def answers(path: Path, case: Case) -> dict[str, Answer]:
    """What each verb says of a sound file."""
    return {verb: call(path) for verb, call in _verbs(case.policy).items()}


def tried(
    folder: Path, content: bytes, case: Case, known: Mapping[str, Answer]
) -> Iterator[tuple[str, str | None]]:
    """What each verb makes of the content: a failure where it takes it for another answer."""
    changed = folder / "changed.parquet"
    changed.write_bytes(content)
    for verb, call in _verbs(case.policy).items():
        try:
            answer = call(changed)
        except sb.SecureBloomError:
            yield verb, None
        except Exception as error:
            yield verb, f"unforeseen {type(error).__name__}"
        else:
            yield verb, None if answer == known[verb] else "another answer"


def _few(chance: random.Random, most: int | None, every: list[T]) -> list[T]:
    """All of them, or as many as a quick run tries."""
    return every if most is None else chance.sample(every, min(len(every), most))


def _flipped(path: Path, case: Case, few: Few) -> Iterator[Altered]:
    sound = path.read_bytes()
    for place, mask in few(list(itertools.product(authenticated(path, case), FLIPS))):
        changed = bytearray(sound)
        changed[place] ^= mask
        yield f"byte {place} ^ {mask:#x}", bytes(changed)


def _chunks(path: Path) -> list[Chunk]:
    with opened(path) as it:
        groups = range(len(it.footer.row_groups))
        return [it.chunk(row_group, name) for row_group in groups for name in ("a", "b")]


def authenticated(path: Path, case: Case) -> list[int]:
    """The places of bytes that a tag covers, or that say what the tags are of."""
    free: set[int] = set()
    with opened(path) as it:
        for chunk in _chunks(path):
            if chunk.cipher is None:
                free |= _in_clear(chunk)
            elif case.algorithm is _CTR:
                start, _ = chunk_extent(chunk)
                content = it.file.view_at(0, it.file.size)
                free |= _bodies(
                    bytes(content), [p.stored for p in read_pages(it.file, chunk)], start
                )
    return [place for place in range(path.stat().st_size) if place not in free]


def _in_clear(chunk: Chunk) -> set[int]:
    start, length = chunk_extent(chunk)
    column, extents = chunk.column_chunk, [(start, length)]
    extents += [
        (column.column_index_offset or 0, column.column_index_length or 0),
        (column.offset_index_offset or 0, column.offset_index_length or 0),
    ]
    return {place for start, length in extents for place in range(start, start + length)}


def _bodies(content: bytes, bodies: Iterable[memoryview], start: int) -> set[int]:
    found: set[int] = set()
    for body in bodies:
        start = content.index(bytes(body), start)
        found |= set(range(start, start + len(body)))
        start += len(body)
    return found


def _modules(path: Path) -> dict[str, tuple[int, int]]:
    """Where whole pages, indexes and filters of encrypted columns stand."""
    found = {}
    for chunk in _chunks(path):
        if chunk.cipher is None:
            continue
        name = f"{chunk.leaf.name}{chunk.row_group}"
        column, meta_data = chunk.column_chunk, chunk.meta_data
        found[f"pages {name}"] = chunk_extent(chunk)
        for what, start, length in (
            ("column index", column.column_index_offset, column.column_index_length),
            ("offset index", column.offset_index_offset, column.offset_index_length),
            ("filter", meta_data.bloom_filter_offset, meta_data.bloom_filter_length),
        ):
            if start is not None and length is not None:
                found[f"{what} {name}"] = (start, length)
    return found


def _moved(path: Path, other: Path, case: Case) -> Iterator[Altered]:
    """Modules in the places of others of their length, of this file and of another."""
    sound, foreign = path.read_bytes(), other.read_bytes()
    modules, theirs = _modules(path), _modules(other)
    for (one, (at, length)), (two, (start, size)) in itertools.permutations(modules.items(), 2):
        if length == size and _is_tagged(one, case):
            yield f"{two} for {one}", _with(sound, at, sound[start : start + size])
    for name, (at, length) in modules.items():
        start, size = theirs[name]
        if length == size and _is_tagged(name, case):
            yield f"{name} of another file", _with(sound, at, foreign[start : start + size])


def _exchanged(path: Path, other: Path) -> Iterator[Altered]:
    """Data under the footer of another file."""
    sound, foreign = path.read_bytes(), other.read_bytes()
    with opened(path) as it, opened(other) as their:
        ends = it.footer.tail.offset, their.footer.tail.offset
    yield "another file's footer", sound[: ends[0]] + foreign[ends[1] :]
    yield "another file's data", foreign[: ends[1]] + sound[ends[0] :]


def _is_tagged(module: str, case: Case) -> bool:
    """Whether all of it is; of CTR pages the header alone is."""
    return not (case.algorithm is _CTR and module.startswith("pages"))


def _with(content: bytes, at: int, part: bytes) -> bytes:
    return content[:at] + part + content[at + len(part) :]


def _replayed(path: Path, case: Case) -> Iterator[Altered]:
    """What stood in the file before its filters were replaced, laid over what stands there now.

    All of it authenticates, and as both versions tell the truth, so must any mixture.
    """
    newer = path.with_name("newer.parquet")
    before, theirs = path.read_bytes(), _modules(path)
    newer.write_bytes(before)
    sb.add_bloom_filters(newer, columns=_columns(case), keys=KEYRING, replace_filters=True)
    after, modules = newer.read_bytes(), _modules(newer)
    for name, (at, length) in modules.items():
        start, size = theirs[name]
        if size == length and before[start : start + size] != after[at : at + length]:
            yield f"{name} of an earlier version", _with(after, at, before[start : start + size])
    with opened(path) as it, opened(newer) as their:
        ends = it.footer.tail.offset, their.footer.tail.offset
    yield "an earlier version", before
    yield "the footer of an earlier version", after[: ends[1]] + before[ends[0] :]
    yield "the footer of a later version", before[: ends[0]] + after[ends[1] :]


def _weakened(folder: Path, case: Case) -> Iterator[Altered]:
    """The same rows with less protection than the policy of the case wants."""
    weaker = [Case(name="plain", mode=Mode.PLAIN)]
    if case.mode is Mode.ENCRYPTED:
        weaker.append(Case(name="signed", mode=Mode.SIGNED))
        if case.algorithm is _GCM:
            weaker.append(Case(name="CTR", mode=Mode.ENCRYPTED, algorithm=_CTR))
    for one in weaker:
        # Other rows, so that taking them is another answer.
        table = pa.table({"a": ["forged"] * 4, "b": pa.array([9] * 4, pa.int64())})
        forged = folder / "weaker.parquet"
        keys = {"k_pii": ["a"]} if one.mode is Mode.SIGNED else _ALL_KEYS
        encryption = {"encryption_algorithm": str(one.algorithm), "double_wrapping": False}
        write(forged, table, one.mode, column_keys=keys, encryption=encryption)
        yield f"{one.name} in its place", forged.read_bytes()
