"""The verbs ``reencrypt``, ``decrypt`` and ``rotate``: files under other keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from secure_bloom.cli.add_verb import print_commits
from secure_bloom.cli.exit_codes import print_and_exit_code, print_outcome
from secure_bloom.cli.progress_bar import progress_bar
from secure_bloom.cli.shared_arguments import (
    AccessOptions,
    load_keys,
    load_policy,
    with_access_to_read,
    with_common_options,
    with_jobs_option,
    with_options_to_rekey,
    with_table_options,
)
from secure_bloom.cli.terminal_tables import (
    SHOWN_FILES,
    print_files,
    print_table,
    short_names,
    shown_paths,
)
from secure_bloom.cli.verbosity import SHOWN_NOTES, print_line, print_note, print_notes
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import counted, human_bytes, legible

if TYPE_CHECKING:
    from secure_bloom.inspecting.key_use import KeyUseReport
    from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyReport


_POLICY = click.option(
    "-p",
    "--policy",
    "policy_path",
    type=click.Path(path_type=Path),
    required=True,
    help="Policy file (TOML): how files are to be protected, and the KMS.",
)
_OLD_POLICY = click.option(
    "--old-policy",
    "old_policy_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The policy that files leave: its KMS and master keys open them.",
)
_DRY_RUN = click.option(
    "-n", "--dry-run", is_flag=True, help="Write nothing. Report what a run would do."
)
_VERIFY = click.option(
    "--verify",
    is_flag=True,
    help="Read the first page of every column of a new file before it takes its place.",
)
_PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATH...")


@click.command("reencrypt")
@_PATHS
@_POLICY
@_OLD_POLICY
@click.option(
    "-o", "--output", metavar="DIR", help="Write new files below DIR. The old files stay."
)
@click.option(
    "--new-data-keys", is_flag=True, help="Make new data keys also for files that need no change."
)
@click.option(
    "--allow-missing-columns",
    is_flag=True,
    help="Columns of the policy that no file has are those of other tables, and no error.",
)
@_DRY_RUN
@_VERIFY
@with_table_options
@with_jobs_option
@with_options_to_rekey
def reencrypt_command(
    paths: tuple[str, ...],
    policy_path: Path,
    old_policy_path: Path | None,
    keyring: Path | None,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Bring files under a policy, whatever protection they have. No page is decoded.

    Plain files are encrypted.  Encrypted ones get new data keys, other keys for columns, another
    footer mode or algorithm.  Files that are as the policy says are unchanged.  A Delta table, or a
    table of an Iceberg catalog, given alone, gets new files beside the old ones, and a commit.

    \b
    secure-bloom reencrypt lake/ --policy keys/policy.toml
    secure-bloom reencrypt lake/ --policy keys/policy.toml --output encrypted/
    secure-bloom reencrypt lake/ --policy new.toml --old-policy old.toml
    secure-bloom reencrypt iceberg://prod/db.people --policy keys/policy.toml

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.api.rekey import reencrypt

    access = _access(policy_path, old_policy_path, keyring)
    with progress_bar("re-encrypting", quiet=as_json) as progress:
        report = reencrypt(paths, **access, **options, progress=progress)
    return print_and_exit_code(report, print_rekey_report, as_json=as_json, verbose=verbose)


@click.command("decrypt")
@_PATHS
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="Where the files in clear go. Needed for all but a table of an Iceberg catalog.",
)
@_DRY_RUN
@_VERIFY
@with_table_options
@with_jobs_option
@with_access_to_read
@with_common_options
def decrypt_command(
    paths: tuple[str, ...],
    output: str | None,
    access: AccessOptions,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Write encrypted files in clear to another folder. The encrypted files stay.

    Anyone who may read DIR can then read every column.  If a Delta table is given alone, its live
    files are written to a folder without a log.  A table of an Iceberg catalog, given alone and
    without --output, gets new files in clear beside the old ones, and a commit.

    \b
    secure-bloom decrypt lake/ --output clear/ --policy keys/policy.toml
    secure-bloom decrypt iceberg://prod/db.people --policy keys/policy.toml

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.api.rekey import decrypt

    with progress_bar("decrypting", quiet=as_json) as progress:
        report = decrypt(
            paths,
            output=output,
            **access.arguments(),
            **options,
            progress=progress,
        )
    if not as_json and any(file.changes for file in report.files) and not report.dry_run:
        place = "the table" if output is None else f"what is below {legible(output)}"
        print_note(f"{place} is in clear", err=True)
    return print_and_exit_code(report, print_rekey_report, as_json=as_json, verbose=verbose)


@click.command("rotate")
@_PATHS
@_POLICY
@_OLD_POLICY
@click.option(
    "--from", "old_keys", multiple=True, metavar="KEY", help="A master key to be replaced."
)
@click.option(
    "--to", "new_keys", multiple=True, metavar="KEY", help="The master key that replaces it."
)
@_DRY_RUN
@_VERIFY
@with_table_options
@with_jobs_option
@with_options_to_rekey
def rotate_command(
    paths: tuple[str, ...],
    policy_path: Path,
    old_policy_path: Path | None,
    old_keys: tuple[str, ...],
    new_keys: tuple[str, ...],
    keyring: Path | None,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Wrap the keys of files under other master keys, or under their newest versions.

    Without --from and --to every file gets the master keys that the policy names now.  Pages,
    filters and indexes stay byte for byte; files are replaced, so that no old wrapped key is left
    in them.  A Delta table, or a table of an Iceberg catalog, given alone, gets new files beside
    the old ones, and a commit.

    \b
    secure-bloom rotate lake/ --policy keys/policy.toml
    secure-bloom rotate lake/ --policy keys/policy.toml --from k_pii_2025 --to k_pii_2026
    secure-bloom rotate lake/ --policy new.toml --old-policy old.toml

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.api.rekey import rotate_keys

    if len(old_keys) != len(new_keys) or len(set(old_keys)) < len(old_keys):
        raise PolicyError(
            "--from and --to come in pairs, each old key once",
            hint="--from OLD --to NEW; without both, files get the keys that the policy names",
        )
    access = _access(policy_path, old_policy_path, keyring)
    moves = dict(zip(old_keys, new_keys, strict=True))
    with progress_bar("rotating", quiet=as_json) as progress:
        report = rotate_keys(paths, moves=moves, **access, **options, progress=progress)
    return print_and_exit_code(report, print_rekey_report, as_json=as_json, verbose=verbose)


def _access(
    policy_path: Path, old_policy_path: Path | None, keyring: Path | None
) -> dict[str, Any]:
    policy = load_policy(policy_path)
    if policy is None:
        raise PolicyError("no policy is given")
    old_policy = load_policy(old_policy_path)
    return {"policy": policy, "old_policy": old_policy, "keys": load_keys(keyring)}


def print_rekey_report(report: RekeyReport, *, verbose: bool) -> None:
    """Print each file with its keys before and now, then how many files have each status."""
    would = "would be " if report.dry_run else ""
    shown = shown_paths(report.files)
    names = short_names(list(shown.values()))
    if verbose or len(report.files) <= SHOWN_FILES:
        print_files(
            ["file", "status", "footer", "master keys before", "now", "size"],
            [
                [
                    names[shown[file.path]],
                    f"{would}{file.status}" if file.changes else file.status,
                    file.footer or "",
                    _keys(file, file.master_keys_before),
                    _keys(file, file.master_keys),
                    "" if file.bytes_after is None else human_bytes(file.bytes_after),
                ]
                for file in report.files
            ],
            verbose=verbose,
        )
    print_outcome(report.totals, report.seconds, dry_run=report.dry_run)
    print_commits(report.commits, dry_run=report.dry_run, sizes_are_known=not report.dry_run)
    print_notes(report.notes, verbose=verbose)


def _keys(file: RekeyedFile, names: tuple[str, ...]) -> str:
    return "" if file.status == "failed" else ", ".join(names) or "none"


#: What the policy says of a key, for people.
_IN_POLICY: Mapping[str | None, str] = {
    None: "",
    "used": "in use",
    "older": "older",
    "retired": "retired",
    "missing": "does not name it",
}


_SEEN: Final = "files that readers skip were looked at too"


def print_used_keys(report: KeyUseReport, *, verbose: bool) -> None:
    """Print the number of files that each key opens.

    Print the files too with ``verbose``, and if the report is about some keys only.
    """
    live, skipped = report.files_by_key, report.skipped_by_key
    rows = [
        [
            *(key[0], key[1] or "", f"{live.get(key, 0):,}"),
            *([f"{skipped.get(key, 0):,}"] if skipped else ()),
            _IN_POLICY[report.standings[key[0]]],
        ]
        for key in sorted({**live, **skipped}, key=str)
    ]
    if rows:
        columns = ["files>", "skipped>"] if skipped else ["files>"]
        print_table(["master key", "version", *columns, "policy"], rows)
    elif not (report.unused or report.unknown or report.skipped or report.failed):
        print_line("no file depends on a master key")
    for name in report.unused:
        seen = "only this version was looked at" if report.live_only else _SEEN
        print_line(f"{legible(name)}: nothing depends on it; {seen}")
    for unknown in report.unknown:
        name = legible(unknown.master_key)
        print_note(f"neither files nor policy nor keyring know the name {name}", err=True)
    # Failed files of the table are printed as errors.
    if closed := sum(file.is_closed for file in report.files):
        files = counted(closed, "file")
        print_note(f"{files} whose footer would not open: keys of columns in them are not known")
    left = [file for file in report.skipped if not file.is_complete]
    for file in left if verbose else left[:SHOWN_NOTES]:
        print_note(f"{legible(file.path)}: not all of its keys are known: {file.reason}")
    if len(left) > SHOWN_NOTES and not verbose:
        more = counted(len(left) - SHOWN_NOTES, "more file")
        print_note(f"the same of {more}: -v names them")
    _print_opened(report, shown=bool(verbose or report.only))


def _print_opened(report: KeyUseReport, *, shown: bool) -> None:
    """Print what each key opens in each file, if this is to be ``shown``.

    Otherwise print only the names of the keys of files that readers skip.
    """
    if shown:
        for files, end in ((report.files, ""), (report.skipped, "; readers skip the file")):
            for file in files:
                for key in file.keys:
                    opened = ", ".join(
                        [*(["the footer"] if key.opens_footer else []), *key.columns]
                    )
                    print_line(f"{legible(file.path)}: {key.master_key}: {opened}{end}")
    elif names := sorted({key.master_key for file in report.skipped for key in file.keys}):
        also = ", ".join(map(legible, names))
        print_note(
            f"files that readers skip, such as old versions, depend on {also}: -v lists them"
        )
