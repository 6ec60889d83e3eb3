"""``secure-bloom keys``: check the master keys of a policy, make keyrings."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.exit_codes import print_and_exit_code
from secure_bloom.cli.shared_arguments import (
    JSON,
    load_keys,
    load_policy,
    policy_option,
    with_common_options,
    with_table_version,
)
from secure_bloom.cli.terminal_tables import print_json
from secure_bloom.cli.verbosity import VERBOSE, print_line, print_note, say, with_verbosity
from secure_bloom.encryption.access import lacking_keys_hint
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.kms import (
    Keyring,
    KmsClient,
    add_master_keys,
    new_keyring,
    try_master_key,
)
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import counted, legible

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy
    from secure_bloom.inspecting.key_use import KeyUseReport

EXIT_RETIRED = 1

_PATH = click.Path(path_type=Path)


@click.group("keys")
def keys() -> None:
    """Master keys: check that a policy's can be used, make keyrings."""


@keys.command("check", short_help="Try each master key of a policy at its KMS.")
@policy_option("Policy file (TOML).", required=True)
@JSON
@VERBOSE
@with_verbosity
def check_command(policy_path: Path, as_json: bool, verbose: bool) -> int:
    """Reach the policy's KMS, and wrap and unwrap a random key under every master key.

    Nothing is written, and no master key is made.  Needs the rights of a writer.

    \b
    secure-bloom keys check --policy policy.toml

    Exit code: 0 every key serves, 2 some do not, or the KMS cannot be asked.
    """
    from secure_bloom.encryption.policy import KeyPolicy

    policy = KeyPolicy.load(policy_path)
    names = sorted(policy.master_keys())
    if not names:
        raise PolicyError("the policy names no master key", path=str(policy_path))
    kms = policy.kms_client()
    # At a KMS an older key may serve to unwrap alone, which nothing but a file can show.
    names += sorted(policy.older_keys.difference(names)) if isinstance(kms, Keyring) else []
    found = [_checked(kms, name, verbose) for name in names]
    for key in found:
        if isinstance(kms, Keyring) and not kms.has_key(str(key["key"])):
            name = str(key["key"])
            key["hint"] = (
                f"add that very key to the keyring; a new one opens no file of [keys.{name}]"
                if name in policy.older_keys
                else lacking_keys_hint([name], kms, policy)
            )
    if as_json:
        print_json({"client": policy.kms["client"], "keys": found})
    else:
        for key in found:
            print_line(f"{key['key']}: {'ok' if key['ok'] else 'failed'} ({key['seconds']:.3f} s)")
    failed = [key for key in found if not key["ok"]]
    for key in failed:
        causes = key["causes"]
        lines = [("error", key["error"])]
        lines += [("cause", cause) for cause in causes] if isinstance(causes, list) else []
        lines += [("hint", key["hint"])] if key["hint"] else []
        for kind, text in lines:
            say(kind, str(text))
    return 2 if failed else 0


def _checked(kms: KmsClient, name: str, verbose: bool) -> dict[str, object]:
    from secure_bloom.errors import causes

    started = time.perf_counter()
    error = try_master_key(kms, name)
    return {
        "key": name,
        "ok": error is None,
        "seconds": round(time.perf_counter() - started, 3),
        "error": None if error is None else error.message,
        "hint": None if error is None else error.hint,
        "causes": [] if error is None or not verbose else list(causes(error)),
    }


@keys.command("new", short_help="Make a keyring of new random master keys.")
@click.argument("file", type=_PATH)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-p", "--policy", "policy_path", type=_PATH, help="A key for each name of the policy."
)
@click.option(
    "--add",
    "added",
    multiple=True,
    metavar="NAME",
    help="Add a key of this name to a keyring that is there; may be repeated.",
)
@click.option("--bits", type=int, default=128, show_default=True, help="128, 192 or 256.")
@with_verbosity
def new_command(
    file: Path,
    names: tuple[str, ...],
    policy_path: Path | None,
    added: tuple[str, ...],
    bits: int,
) -> int:
    """Make a keyring FILE with new random master keys, readable by its owner alone (0600).

    A file that is there already is never replaced; --add adds keys to it, and replaces none.

    \b
    secure-bloom keys new keyring.json k_footer k_pii
    secure-bloom keys new keyring.json --policy policy.toml --bits 256
    secure-bloom keys new keyring.json --add k_pii_2027

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.encryption.policy import KeyPolicy

    if added and (names or policy_path is not None):
        raise PolicyError("--add cannot be combined with other names or with --policy")
    if added:
        add_master_keys(file, set(added), bits=bits)
        print_line(f"{file}: added {', '.join(sorted(set(added)))}")
        return 0
    wanted, notes = set(names), list[str]()
    if policy_path is not None:
        policy = KeyPolicy.load(policy_path)
        wanted |= policy.master_keys()
        notes = _notes_on_new(file, names, policy)
    new_keyring(file, wanted, bits=bits)
    print_line(f"{file}: {', '.join(sorted(wanted))}")
    for note in notes:
        print_note(note)
    return 0


def _notes_on_new(file: Path, names: Sequence[str], policy: KeyPolicy) -> list[str]:
    """Return notes on the keys of a new keyring that the policy does not use."""
    unnamed = sorted(set(names) - policy.named_keys())
    older = sorted((policy.older_keys | policy.retired_keys) - policy.master_keys() - set(names))
    notes = [
        f"no key is made for {legible(name)} of [keys]: only the old key opens older files"
        for name in older
    ]
    notes += [
        f"the policy does not name {legible(name)}: {close_match(name, policy.named_keys())}"
        for name in unnamed
    ]
    own = policy.keyring_path()
    if own is not None and own.absolute() != file.absolute():
        notes.append(f"the policy's keyring is {legible(str(own))}, and not this file")
    return notes


@keys.command("jar", short_help="Print the path of the jar for Spark's JVM.")
@with_verbosity
def jar_command() -> int:
    """Print the path of the jar with the KMS classes for Spark's JVM.

    `session_config` names it by itself.  A session that is configured without Python gets it by
    `spark.jars`, or by `spark-submit --jars`.

    \b
    spark-submit --jars $(secure-bloom keys jar) ...

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.spark import kms_jar

    click.echo(str(kms_jar()))
    return 0


@keys.command("used", short_help="Show which master keys open which files.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@policy_option("Policy file (TOML): its [kms] has the keys, and it says which are retired.")
@click.option(
    "--key",
    "only",
    multiple=True,
    metavar="NAME",
    help="List the files that depend on this master key; may be repeated.",
)
@with_table_version
@with_common_options
def used_command(
    paths: tuple[str, ...],
    policy_path: Path | None,
    only: tuple[str, ...],
    keyring: Path | None,
    at: dict[str, Any],
    as_json: bool,
    verbose: bool,
) -> int:
    """Show which master keys, and versions of them, open which files and columns.

    Names of keys are in clear, except those of columns in an encrypted footer.

    \b
    secure-bloom keys used lake/ --policy policy.toml
    secure-bloom keys used lake/ --policy policy.toml --key k_pii_2025

    Files in the folders that readers skip, such as copies and older versions of a table, are looked
    at too, unless a version is asked for.

    Exit code: 0 done, 1 a key is in use that the policy says is retired, or a name of --key is most
    likely misspelt, 2 error, or files may depend on the keys that are asked for.
    """
    from secure_bloom.api.inspect import keys_used
    from secure_bloom.cli.rekey_verbs import print_used_keys

    policy = load_policy(policy_path)
    report = keys_used(paths, keys=load_keys(keyring), policy=policy, only=only, **at)
    code = print_and_exit_code(report, print_used_keys, as_json=as_json, verbose=verbose)
    misspelt = _complain_of_misspelt(report)
    found = EXIT_RETIRED if report.retired or misspelt else 0
    retired = () if policy is None else policy.retired_keys
    return code or _complain_of_incomplete(report, retired) or found


def _complain_of_misspelt(report: KeyUseReport) -> bool:
    """Print an error for each unknown name that is similar to a known name.

    Return whether there is one.
    """
    misspelt = [it for it in report.unknown if it.did_you_mean is not None]
    for key in misspelt:
        name, like = legible(key.master_key), legible(str(key.did_you_mean))
        say("error", f"{name} may be misspelt: whether anything depends on the key is not known")
        say(
            "hint",
            f"did you mean {like}? If {name} is a former key, add [keys.{name}] to the policy",
        )
    return bool(misspelt)


def _complain_of_incomplete(report: KeyUseReport, retired: Collection[str]) -> int:
    """Return 2 if it is unknown whether files depend on keys that were asked for, else 0.

    Without --key, the ``retired`` keys of the policy are asked for.
    """
    wanted = report.only or sorted(retired)
    if not wanted or not report.incomplete:
        return 0
    names = ", ".join(map(legible, wanted))
    closed = sum(file.is_closed for file in report.incomplete)
    if closed:
        say(
            "error",
            f"the footers of {counted(closed, 'file')} could not be opened: whether their columns "
            f"depend on {names} is not known",
        )
        say("hint", "give the keys of the footers: --policy FILE or --keyring FILE")
    if unread := len(report.incomplete) - closed:
        say(
            "error",
            f"{counted(unread, 'file')} could not be looked at: whether something depends on "
            f"{names} is not known",
        )
        say("hint", "make the files readable, or destroy those that nobody needs")
    return 2
