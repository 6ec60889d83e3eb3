"""Runs over many files: encrypt a lake, re-encrypt it, decrypt it to another folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from os import PathLike
from typing import TypeAlias

from secure_bloom.adding.report import file_notes
from secure_bloom.adding.run import FileTask, with_keys_ahead
from secure_bloom.adding.summary_files import summary_notes
from secure_bloom.adding.targets import files_to_write
from secure_bloom.encryption.access import (
    GivenKeys,
    GivenPolicy,
    keys_of,
    loaded_policy,
    resolver_of,
    trust_of,
)
from secure_bloom.encryption.keys import (
    ExplicitKeys,
    KeyInventory,
    KeyResolver,
    Keyring,
    KmsClient,
    UnwrapsOnce,
    asked_once,
)
from secure_bloom.encryption.policy import KeyPolicy, check_master_keys
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.parquet.keys_ahead import KeysAhead
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.rekeying.new_keys import KeyMaker
from secure_bloom.rekeying.protection import missing_columns
from secure_bloom.rekeying.reencryption import Reencryption
from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyReport, failed_file
from secure_bloom.rekeying.rewrapper import Rewrapper
from secure_bloom.rekeying.rotation import Rotation
from secure_bloom.spreading import chosen_spread, each_file
from secure_bloom.storage import open_input
from secure_bloom.storage.paths import Paths, absolute_path, as_paths, below, is_object_uri
from secure_bloom.text import counted

#: Called with the number of files done and the number of them in all.
FileProgress = Callable[[int, int], None]
_Work: TypeAlias = Reencryption | Rotation


def reencrypt(
    paths: Paths,
    *,
    policy: KeyPolicy | str | PathLike[str],
    keys: GivenKeys = None,
    output: str | PathLike[str] | None = None,
    new_data_keys: bool = False,
    dry_run: bool = False,
    jobs: int | None = None,
    progress: FileProgress | None = None,
) -> RekeyReport:
    """Bring files under ``policy``, from whatever protection they have; no page is decoded.

    Plain files are encrypted; encrypted ones get new data keys and a new AAD, other keys for
    columns, another mode of the footer or another algorithm.  A file that already is as the policy
    says is left alone, unless ``new_data_keys`` is given.  ``keys`` opens the old files, and seals
    the new ones where the policy has no KMS.  Files are replaced atomically, or written below
    ``output``, on at most ``jobs`` cores, by default all: many small ones by processes, each of
    which asks the policy's KMS itself.  A file that fails is reported and stays as it was.

    Raises PolicyError before any file is written where the policy encrypts nothing, or names a
    master key that its KMS does not have.

    >>> sb.reencrypt("plain/", policy="keys/policy.toml")
    <RekeyReport: 1 file (1 reencrypted)>
    """
    open_work = partial(reencryption, policy, keys, new_data_keys=new_data_keys, dry_run=dry_run)
    work = open_work()
    files, targets = files_to_write(paths, in_place=False, output=output)
    check_columns(files, work)
    tasks = [FileTask(path=path, target=targets.get(path)) for path in files]
    return _run(work, open_work, tasks, _ahead(work, targets), jobs=jobs, progress=progress)


def reencryption(
    policy: KeyPolicy | str | PathLike[str],
    keys: GivenKeys,
    *,
    new_data_keys: bool = False,
    dry_run: bool = False,
) -> Reencryption:
    """The work of :func:`reencrypt` on one file; errors as of that."""
    wanted = loaded_policy(policy)
    if wanted is None or wanted.footer_key is None:
        raise PolicyError(
            "the policy encrypts nothing: it has no [footer]",
            hint="to write files in clear: decrypt",
        )
    opening = keys_of(keys, wanted)
    # Keys that are given may be those of the old files alone.
    sealing = wanted.kms_client() if wanted.kms else opening
    if sealing is None or isinstance(sealing, ExplicitKeys):
        raise PolicyError(
            "there is no KMS to wrap new keys", hint="add [kms] to the policy, or give a keyring"
        )
    check_master_keys(wanted, sealing)
    return Reencryption(
        resolver=KeyResolver(asked_once(opening)),
        policy=wanted,
        maker=KeyMaker(sealing, wanted.encryption),
        new_data_keys=new_data_keys,
        dry_run=dry_run,
    )


def decrypt(
    paths: Paths,
    *,
    output: str | PathLike[str],
    policy: GivenPolicy = None,
    keys: GivenKeys = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    jobs: int | None = None,
    progress: FileProgress | None = None,
) -> RekeyReport:
    """Write files in clear below ``output``, never in their place.

    ``keys`` opens them, or the KMS of ``policy``.  As for every verb that reads, a signature that
    cannot be checked, and a file that is protected less than the policy says, are errors of a file
    unless they are allowed.

    >>> sb.decrypt("out/", output="clear/", policy="keys/policy.toml")
    <RekeyReport: 1 file (1 decrypted)>
    """
    open_work = partial(
        _decryption,
        policy,
        keys,
        allow_unverified=allow_unverified,
        allow_unprotected=allow_unprotected,
    )
    work = open_work()
    files, targets = files_to_write(paths, in_place=False, output=output)
    _check_outside(os.fspath(output), as_paths(paths))
    tasks = [FileTask(path=path, target=targets.get(path)) for path in files]
    return _run(work, open_work, tasks, _ahead(work, targets), jobs=jobs, progress=progress)


def _check_outside(output: str, paths: Iterable[str]) -> None:
    """Raise PolicyError for an output inside the table that it is made of."""
    target = absolute_path(output)
    target = target if is_object_uri(target) else os.path.normpath(target)
    for path in paths:
        if below(f"{target}/", absolute_path(path)) is not None:
            raise PolicyError(
                "the files in clear would lie inside the table itself",
                hint="name a folder beside it",
                path=output,
            )


def _decryption(
    policy: GivenPolicy, keys: GivenKeys, *, allow_unverified: bool, allow_unprotected: bool
) -> Reencryption:
    trust = trust_of(policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected)
    return Reencryption(resolver=resolver_of(keys, trust), policy=None, maker=None)


def _ahead(work: Reencryption, targets: Mapping[str, str]) -> KeysAhead:
    return KeysAhead(work.resolver, lambda it: work.ask(it, targets.get(it)), work.wrapped)


def rotate_keys(
    paths: Paths,
    *,
    policy: KeyPolicy | str | PathLike[str],
    moves: Mapping[str, str] | None = None,
    keys: GivenKeys = None,
    dry_run: bool = False,
    jobs: int | None = None,
    progress: FileProgress | None = None,
) -> RekeyReport:
    """Wrap the keys of files anew, under other master keys or their newest versions.

    Without ``moves`` every file comes to the master keys that ``policy`` names; ``moves`` maps old
    master keys to new ones, and all else stays.  Data keys stay, and so do pages, filters and
    indexes.  Wrapped key encryption keys are renewed once a run each, inside the KMS where it can.
    At most ``jobs`` cores work, by default all.

    Raises PolicyError before any file is written for a master key that the KMS does not have.

    >>> sb.rotate_keys("out/", policy="keys/policy.toml")
    <RekeyReport: 1 file (1 unchanged)>
    """
    open_work = partial(rotation, policy, moves or {}, keys, dry_run=dry_run)
    work = open_work()
    files, _ = files_to_write(paths, in_place=False, output=None)
    tasks = [FileTask(path=path) for path in files]
    if not moves:
        check_columns(files, work)
    ahead = KeysAhead(work.resolver, work.ask, lambda: work.rewrapper.asked)
    return _run(work, open_work, tasks, ahead, jobs=jobs, progress=progress)


def rotation(
    policy: KeyPolicy | str | PathLike[str],
    moves: Mapping[str, str],
    keys: GivenKeys,
    *,
    dry_run: bool = False,
) -> Rotation:
    """The work of :func:`rotate_keys` on one file; errors as of that."""
    wanted = loaded_policy(policy)
    kms = keys_of(keys, wanted)
    if kms is None or isinstance(kms, ExplicitKeys) or wanted is None:
        raise PolicyError("there is no KMS", hint="add [kms] to the policy, or give a keyring")
    _check_moves(moves, kms)
    if not moves:
        check_master_keys(wanted, kms)
    opening = kms if isinstance(kms, Keyring) else UnwrapsOnce(kms)
    return Rotation(
        resolver=KeyResolver(opening),
        rewrapper=Rewrapper(kms, moves, opening),
        policy=wanted,
        dry_run=dry_run,
    )


def check_columns(files: Iterable[str], work: _Work) -> None:
    """Raise PolicyError for a column with a key that no readable file has.

    Looks at footers only until each column was seen, which mostly is the first one, or until one
    stays closed.
    """
    policy = work.policy
    known = set[str]()
    missing = set() if policy is None else set(missing_columns(policy, ()))
    for path in files:
        if policy is None or not missing:
            return
        # A file that cannot be read is told of when it is its turn.
        with suppress(SecureBloomError), open_input(path) as file:
            leaves = work.leaves(file)
            if leaves is None:
                return
            missing.intersection_update(missing_columns(policy, leaves))
            known.update(leaf.name for leaf in leaves)
    for name in sorted(missing) if known else ():
        raise unknown_column(name, known)


def _check_moves(moves: Mapping[str, str], kms: KmsClient) -> None:
    chained = sorted(moves.keys() & set(moves.values()))
    # In a run that was cut short, a key that was moved to could not be told from one to be moved.
    if chained:
        raise PolicyError(
            f"keys are to be left and to be moved to at once: {', '.join(chained)}",
            hint="a run that was cut short could not be resumed: rotate twice, the last move first",
        )
    unknown = sorted(
        name
        for name in {*moves, *moves.values()}
        if isinstance(kms, KeyInventory) and not kms.has_key(name)
    )
    if unknown:
        raise PolicyError(f"the KMS does not have master keys {', '.join(unknown)}")


def _run(
    work: _Work,
    open_work: Callable[[], _Work],
    tasks: Sequence[FileTask],
    ahead: KeysAhead,
    *,
    jobs: int | None,
    progress: FileProgress | None,
) -> RekeyReport:
    found: dict[int, RekeyedFile] = {}
    done = each_file(
        partial(_rekey, work),
        partial(_rekeyer, open_work),
        tasks,
        chosen_spread([task.path for task in tasks], jobs, by_threads=work.asks_for_each_key),
        lost=lambda task, error: failed_file(task.path, error, 0.0),
        ahead=partial(with_keys_ahead, ahead),
    )
    with closing(done):
        for index, report in done:
            found[index] = report
            if progress is not None:
                progress(len(found), len(tasks))
    reports = tuple(found[index] for index in range(len(tasks)))
    warn_unverified(report.path for report in reports if not report.verified)
    changed = [
        task.target or task.path
        for task, report in zip(tasks, reports, strict=True)
        if report.changes
    ]
    summaries = () if work.dry_run else summary_notes(changed, what="have other keys now")
    notes = (*file_notes(reports), *_closed_notes(work, reports), *summaries)
    return RekeyReport(files=reports, notes=notes, dry_run=work.dry_run)


def _closed_notes(work: _Work, reports: Iterable[RekeyedFile]) -> Iterator[str]:
    """What was not held against the policy, because footers stayed closed."""
    closed = sum(report.footer is not None and not report.columns for report in reports)
    if closed and isinstance(work, Rotation) and not work.rewrapper.moves:
        yield (
            f"of {counted(closed, 'file')} the footers stayed closed, as their keys stand outside: "
            "which columns are encrypted was not held against the policy, audit does that"
        )


def _rekeyer(open_work: Callable[[], _Work]) -> Callable[[FileTask], RekeyedFile]:
    """The work of another process."""
    return partial(_rekey, open_work())


def _rekey(work: _Work, task: FileTask) -> RekeyedFile:
    if isinstance(work, Rotation):
        return work.rotate(task.path, None)
    return work.reencrypt(task.path, task.target)
