"""Options that verbs share, and what a verb gets of them: keys, the policy, settings of stores."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from secure_bloom.calling.options import MissingKeys
from secure_bloom.cli.default_files import default_keyring, default_policy
from secure_bloom.cli.inputs import read_text
from secure_bloom.cli.verbosity import SUMMARY, VERBOSE, print_note, with_verbosity
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import legible

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy


F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


def policy_option(text: str, *, required: bool = False) -> Callable[[F], F]:
    """Add ``--policy``, whose default the environment or a file may give."""
    return click.option(
        "-p",
        "--policy",
        "policy_path",
        type=click.Path(path_type=Path),
        default=default_policy,
        callback=_required if required else None,
        help=text,
    )


def _required(context: click.Context, option: click.Parameter, value: Path | None) -> Path:
    # click takes None for the value of a default that is computed.
    if value is None:
        raise click.MissingParameter(ctx=context, param=option)
    return value


def keyring_option(text: str) -> Callable[[F], F]:
    """Add ``--keyring``, whose default the environment or a file may give."""
    return click.option(
        "-k", "--keyring", type=click.Path(path_type=Path), default=default_keyring, help=text
    )


def with_common_options(function: F) -> F:
    """Add ``--json``, ``--keyring``, ``-v``, ``-q`` and ``--color``, which every verb has.

    Every verb also gets ``--storage-option``, the settings with which it opens objects of a store.
    """
    return _KEYRING(_with_other_options(function))


def with_options_to_rekey(function: F) -> F:
    """Add the common options of a verb that opens files by a keyring, and writes by the policy."""
    return _OLD_KEYRING(_with_other_options(function))


_KEYRING = keyring_option("File with the keys; else the policy's [kms].")
_OLD_KEYRING = keyring_option(
    "File with the keys of the old files. New keys come from the policy's [kms], and from FILE if "
    "the policy has none."
)


def _with_other_options(function: F) -> F:
    return STORAGE(JSON(VERBOSE(with_verbosity(_with_storage(function)))))


STORAGE = click.option(
    "--storage-option",
    "storage_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of S3, such as aws_endpoint_url=URL. NAME=@FILE takes it from a file, which "
    "keeps a secret out of the list of processes. May be repeated.",
)


def _with_storage(function: F) -> F:
    @functools.wraps(function)
    def call(*args: Any, storage_options: tuple[str, ...], **options: Any) -> Any:
        if not storage_options:
            return function(*args, **options)
        from secure_bloom.storage.storage_options import granted

        given = dict(map(_storage_option, storage_options))
        with granted(_buckets([*args, *options.values()]), given):
            return function(*args, **options)

    return cast(F, call)


def _storage_option(text: str) -> tuple[str, str]:
    """Return the name and the value of a setting.

    No error quotes the text, which may be a secret.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise PolicyError(
            "--storage-option has no '='", hint="write --storage-option aws_region=eu-west-1"
        )
    if value.startswith("@"):
        return name.strip(), read_text(value[1:]).strip()
    return name.strip(), value


def _buckets(given: object) -> list[str]:
    """Return the names of buckets in the paths and queries that a verb was given."""
    if isinstance(given, str | PathLike):
        return list(dict.fromkeys(_BUCKET.findall(os.fspath(given))))
    if isinstance(given, Mapping):
        return _buckets(list(given.values()))
    if isinstance(given, list | tuple):
        return list(dict.fromkeys(it for each in given for it in _buckets(each)))
    return []


#: The address of a bucket, wherever a text has one.
_BUCKET = re.compile(r"\bs3[an]?://[^/\s'\"?]+")


#: The help of ``--policy`` in verbs that read.
POLICY_HELP = "Policy file (TOML): its [kms] has the keys, and files must obey it."
_ALLOW_UNVERIFIED = click.option(
    "--allow-unverified",
    is_flag=True,
    help="Also read signed footers whose key is missing: their content may be forged.",
)
_ALLOW_UNPROTECTED = click.option(
    "--allow-unprotected",
    is_flag=True,
    help="Accept files that are protected less than the policy says.",
)


_POLICY = policy_option(POLICY_HELP)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """The options about keys, the policy, and files that are accepted although they break it."""

    keyring: Path | None
    policy_path: Path | None
    allowed: Mapping[str, bool]

    def arguments(self) -> dict[str, Any]:
        """Return these options as arguments of a library function.

        Keyring and policy are read now.
        """
        return {
            "keys": load_keys(self.keyring),
            "policy": load_policy(self.policy_path),
            **self.allowed,
        }


def with_access_to_read(function: Callable[..., int]) -> Callable[..., int]:
    """Add ``--policy`` and ``--allow-...`` of a verb that reads, which gets them as ``access``."""
    return _POLICY(_ALLOW_UNVERIFIED(_ALLOW_UNPROTECTED(_with_access(function))))


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesAccess:
    """The options of :class:`AccessOptions` for several tables, as ``[NAME=]FILE``."""

    keyrings: tuple[str, ...]
    policies: tuple[str, ...]
    allowed: Mapping[str, bool]

    def arguments(self) -> dict[str, Any]:
        """Return these options as arguments of :func:`secure_bloom.sql`. Files are read now."""
        keyrings = _by_table("--keyring", self.keyrings, default_keyring())
        policies = _by_table("--policy", self.policies, default_policy())
        return {
            "keys": {name: load_keys(path) for name, path in keyrings.items()},
            "policy": {name: load_policy(path) for name, path in policies.items()},
            **self.allowed,
        }


def _by_table(option: str, texts: Iterable[str], default: str | None) -> dict[str, Path]:
    """Return the file of each table, by name.

    ``*`` is the file for all tables without their own.
    """
    found: dict[str, Path] = {}
    for text in texts:
        # A path may have this sign too.
        name, _, path = ("", "", text) if Path(text).exists() else text.rpartition("=")
        if found.setdefault(name or "*", Path(path)) != Path(path):
            raise PolicyError(
                f"{option} names two files for {name or 'all tables'}",
                hint=f"{option} NAME=FILE names one for a table, NAME as the query has it",
            )
    return found if default is None else {"*": Path(default)} | found


def with_access_to_tables(function: F) -> F:
    """Add the common options and the access options of a verb that reads several tables."""

    @functools.wraps(function)
    def call(*args: Any, keyring: tuple[str, ...], policy: tuple[str, ...], **options: Any) -> Any:
        allowed = {name: options.pop(name) for name in list(options) if name.startswith("allow_un")}
        access = TablesAccess(keyrings=keyring, policies=policy, allowed=allowed)
        return function(*args, access=access, **options)

    file_of_tables = functools.partial(click.option, multiple=True, metavar="[NAME=]FILE")
    of_table = "Of one table: NAME=FILE, once for each."
    policies = file_of_tables("-p", "--policy", help=f"{POLICY_HELP} {of_table}")
    keys = "File with the keys; else the policy's [kms]."
    keyrings = file_of_tables("-k", "--keyring", help=f"{keys} {of_table}")
    accepted = _ALLOW_UNVERIFIED(_ALLOW_UNPROTECTED(call))
    return cast(F, policies(keyrings(_with_other_options(accepted))))


def with_access_to_sign(function: Callable[..., int]) -> Callable[..., int]:
    """Add ``--policy`` and ``--allow-unprotected`` of a verb that signs footers again.

    It needs the key of every footer, so it cannot accept unverified files.
    """
    return _POLICY(_ALLOW_UNPROTECTED(_with_access(function)))


def with_missing_keys(function: F) -> F:
    """Add ``--missing-keys`` of a verb that reads rows."""
    return click.option(
        "--missing-keys",
        type=click.Choice([it.value for it in MissingKeys]),
        default=MissingKeys.ERROR.value,
        help="What becomes of a column whose key is missing: an error, null, or dropped.",
    )(function)


def print_hidden(names: Iterable[str], missing_keys: str) -> None:
    """Print a note on stderr that names the columns whose key is missing."""
    if shown := ", ".join(map(legible, names)):
        became = "are null" if missing_keys == MissingKeys.NULL.value else "are left out"
        print_note(f"columns without a key {became}: {shown}", err=True)


def with_table_version(function: Callable[..., int]) -> Callable[..., int]:
    """Add ``--version``, ``--snapshot`` and ``--timestamp``, which the verb gets as ``at``."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> int:
        at = {name: options.pop(name) for name in ("version", "snapshot", "timestamp")}
        return function(*args, at=at, **options)

    for option in (_TIMESTAMP, _SNAPSHOT, _VERSION):
        call = option(call)
    return call


_VERSION = click.option(
    "--version", type=click.IntRange(min=0), metavar="N", help="A version of a Delta table."
)
_SNAPSHOT = click.option(
    "--snapshot", type=click.IntRange(min=0), metavar="ID", help="A snapshot of an Iceberg table."
)
_TIMESTAMP = click.option(
    "--timestamp",
    metavar="T",
    help="The last version or snapshot until this time: 2026-01-31T12:00:00Z.",
)


def with_unprotected_option(function: F) -> F:
    """Add ``--allow-unprotected`` without the other options of access."""
    return _ALLOW_UNPROTECTED(function)


def with_jobs_option(function: F) -> F:
    """Add ``--jobs`` and ``--summary`` of a verb that writes many files."""
    jobs = click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Use at most N cores; all by default. Many small files go to N processes.",
    )
    return jobs(SUMMARY(function))


def once(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the value of an option, declared as ``multiple``, that chooses rows or columns.

    Raises UsageError for an option that is given twice: click would take the last one in silence.
    """
    if len(values) > 1:
        raise click.UsageError(
            f"{option.opts[-1]} is given {len(values)} times: give it once, conditions joined by "
            "and, columns by commas",
            context,
        )
    return values[0] if values else None


def where_option(text: str) -> Callable[[F], F]:
    """Return the option ``--where`` with its line in the help. It is given once."""
    return click.option("-w", "--where", multiple=True, callback=once, metavar="TEXT", help=text)


def with_table_options(function: F) -> F:
    """Add ``--where``, ``--since``, ``--commit-every`` and ``--branch`` to a verb that commits."""
    where = where_option(
        "The files of these partitions, such as \"day = '2026-11-20'\"; of an Iceberg table "
        "also by columns, as far as bounds of files decide."
    )
    since = click.option(
        "--since",
        type=click.IntRange(min=0),
        metavar="VERSION",
        help="Of a table: the files that came after this version, or Iceberg snapshot.",
    )
    commit_every = click.option(
        "--commit-every",
        type=click.IntRange(min=1),
        metavar="N",
        help="Of a table: a commit after every N files, instead of one.",
    )
    branch = click.option(
        "--branch", metavar="NAME", help="The branch of an Iceberg table that gets the snapshot."
    )
    return where(since(commit_every(branch(function))))


def with_form_options(forms: Iterable[str], document: str) -> Callable[[F], F]:
    """Add ``--format`` and ``--output`` of a verb that writes one document, called ``document``."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice(list(forms)),
        default="text",
        show_default=True,
        help=f"How to write the {document}.",
    )
    path = click.Path(path_type=Path)
    output = click.option("-o", "--output", type=path, metavar="FILE", help="Where to write it.")
    return lambda function: form(output(function))


def form_of(form: str, *, as_json: bool) -> str:
    """Return the form of a document. Raises UsageError for ``--json`` with another form."""
    if as_json and form not in ("text", "json"):
        raise click.UsageError(f"--json and --format {form} are two forms: give one of them")
    return "json" if as_json else form


def _with_access(function: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(function)
    def call(*args: Any, keyring: Path | None, policy_path: Path | None, **options: Any) -> int:
        allowed = {name: options.pop(name) for name in list(options) if name.startswith("allow_un")}
        access = AccessOptions(keyring=keyring, policy_path=policy_path, allowed=allowed)
        return function(*args, access=access, **options)

    return call


def load_keys(keyring: Path | None) -> Keyring | None:
    """Return the keys of the named keyring, if any."""
    return None if keyring is None else Keyring.load(keyring)


metrics_option = click.option(
    "--metrics",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the numbers of the run to FILE, for Prometheus' node exporter.",
)


def load_policy(path: Path | None) -> KeyPolicy | None:
    """Return the named policy, if any."""
    if path is None:
        return None
    from secure_bloom.encryption.policy import KeyPolicy

    return KeyPolicy.load(path)
