"""The command line: parse, call one library function, print.

    verbs               all verbs; the module of a verb is imported when the verb is used
    shared_arguments    options that verbs share, and the keys and the policy that they name
    default_files       the policy and the keyring where no option names them
    inputs              texts that others must not see, from a file or stdin
    column_settings     the texts of `--column`
    add_verb, ...       a module for each verb: its options, the call, what it prints
    terminal_tables     tables and names on a terminal; `row_formats` for rows
    exit_codes          the end of a verb: its report, failed files, the exit code
    verbosity           how much is printed, and in which colours

Data goes to stdout, everything else to stderr.  Errors are ``secure-bloom: error: ...`` lines with
a hint, never tracebacks.  A verb is one function::

    @click.command("probe")
    def probe_command(paths: tuple[str, ...], ...) -> int:
        report = probe(paths, column, values, ...)  # a function of `api`
        return print_and_exit_code(report, print_probe_report, as_json=..., verbose=...)
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from typing import Final

import click

from secure_bloom.cli.terminal_tables import print_json
from secure_bloom.cli.timeout import requested_limit
from secure_bloom.cli.verbosity import say, settle_quiet
from secure_bloom.cli.verbs import cli
from secure_bloom.errors import (
    ReportLostError,
    SecureBloomError,
    TimeLimitError,
    causes,
    missing_package,
)
from secure_bloom.running import end_process
from secure_bloom.running.first_answer import left_threads

EXIT_ERROR = 2
_EXIT_INTERRUPTED = 130
#: The code that shells give a program whose pipe was closed (128 + SIGPIPE).
_EXIT_NO_READER = 141


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """Why there is no result. It is printed on stderr and, with ``--json``, on stdout."""

    message: str
    hint: str | None = None
    code: int = EXIT_ERROR
    causes: tuple[str, ...] = ()
    is_over: bool = False


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    warnings.showwarning = _show_warning
    given = sys.argv[1:] if arguments is None else arguments
    settle_quiet(given)
    outcome = _supervised(given) if arguments is None else _run(given)
    if isinstance(outcome, _Failure):
        is_verbose = not {"-v", "--verbose"}.isdisjoint(given)
        _print_failure(outcome, as_json="--json" in given, is_verbose=is_verbose)
        if outcome.is_over:
            # Threads may be busy in compiled code, and an orderly end would wait for them.
            sys.stdout.flush()
            os._exit(outcome.code)
        end_process(outcome.code)
    end_process(outcome)


def _supervised(arguments: list[str]) -> int | _Failure:
    """Run the verb.

    With ``--timeout`` it runs in another process, which is killed after the limit.
    """
    seconds = requested_limit(arguments)
    if seconds is None:
        return _run(arguments)
    from secure_bloom.running.time_limit import supervise

    try:
        code = supervise(seconds)
    except TimeLimitError as error:
        return _Failure(message=str(error), hint=error.hint, is_over=True)
    return _run(arguments) if code is None else code


def _run(arguments: list[str]) -> int | _Failure:
    """Run the verb. Return its exit code, or why there is no result."""
    try:
        code = cli.main(arguments, prog_name="secure-bloom", standalone_mode=False)
        sys.stdout.flush()
    except SecureBloomError as error:
        if isinstance(error, ReportLostError):
            _close_stdout()
        return _of_library(error, arguments)
    except click.ClickException as error:
        return _Failure(message=_usage_message(error), hint=_usage_hint(error, arguments))
    except (KeyboardInterrupt, click.Abort):
        return _Failure(
            message="interrupted; finished files keep their changes, the others are unchanged",
            code=_EXIT_INTERRUPTED,
        )
    except (BrokenPipeError, SystemExit):
        # The reader of our output went away; click turns that into an exit.  The exit code of the
        # verb would be about results that the reader never saw, so it gets a code of its own.
        _close_stdout()
        return _EXIT_NO_READER
    except Exception as error:
        return _unforeseen(error)
    return code if isinstance(code, int) else 0


def _of_library(error: SecureBloomError, arguments: list[str]) -> _Failure:
    from secure_bloom.cli.runnable_hints import one_run_each, with_option_names
    from secure_bloom.lakes.managed_tables import ManagedTableError

    message, hint = (
        with_option_names(text, cli, arguments) for text in (error.message, error.hint or "")
    )
    if isinstance(error, ManagedTableError):
        hint = "\n".join([hint, *one_run_each(error, cli, arguments)])
    return _Failure(
        message=str(error).removesuffix(error.message) + message,
        hint=hint or None,
        causes=tuple(causes(error)),
        is_over=isinstance(error, TimeLimitError) or left_threads(),
    )


def _unforeseen(error: Exception) -> _Failure:
    if isinstance(error, FileNotFoundError) and error.filename is None:
        # No file is named where a relative path starts nowhere.
        return _Failure(message="the current folder was removed", hint="go to another folder")
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        # An error without a file name is about stdout, which is full or gone.
        _close_stdout()
        return _Failure(message=f"the output cannot be written: {os.strerror(error.errno)}")
    if os.environ.get("SECURE_BLOOM_DEBUG"):
        raise error
    missing = missing_package(error) if isinstance(error, ModuleNotFoundError) else None
    if missing is not None:
        return _Failure(message=missing.message, hint=missing.hint)
    # Only the type: the text of an unforeseen error could hold anything.
    return _Failure(
        message=f"unforeseen {type(error).__name__}",
        hint="this is a bug, please report it; SECURE_BLOOM_DEBUG=1 shows where it happened",
    )


def _close_stdout() -> None:
    """Close stdout without flushing it: Python would complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


#: Click's words for kinds of numbers, and those of other errors.
_KINDS: Final = {
    "valid integer range": "whole number",
    "valid integer": "whole number",
    "float range": "number",
}


def _usage_message(error: click.ClickException) -> str:
    """Return click's message, in the form of every other error."""
    # click lists choices on lines of their own.
    message = error.format_message().replace("\n\t", " ").rstrip(".")
    for kind, words in _KINDS.items():
        message = message.replace(kind, words)
    return message[:1].lower() + message[1:]


def _usage_hint(error: click.ClickException, arguments: list[str]) -> str | None:
    if not isinstance(error, click.UsageError):
        return None
    from secure_bloom.cli.runnable_hints import verb_run

    # click's parser does not say in which verb an option lacks its value.
    command = error.ctx.command_path if error.ctx else verb_run(cli, arguments)[0]
    if isinstance(error, click.NoSuchOption) and error.option_name[1:2].isdigit():
        return "write -- before values that start with a minus: probe PATH COLUMN -- -5"
    # A number that is wanted where people have a time in mind.
    param = error.param if isinstance(error, click.BadParameter) else None
    return _NUMBERS.get(str(param and param.name), f"see {command} --help")


_AT_A_TIME = "for the state at a time: --timestamp 2026-11-20T00:00:00Z"
#: Options that take the number of a version or snapshot, with the hint for any other text.
_NUMBERS: Final = {
    "version": _AT_A_TIME,
    "snapshot": _AT_A_TIME,
    "since": "the number of a version or snapshot is wanted: DeltaTable(PATH).history() of "
    "deltalake or table.history() of pyiceberg has that of a time; partitions are chosen by "
    "--where \"day >= '2026-11-20'\"",
}


def _print_failure(failure: _Failure, *, as_json: bool, is_verbose: bool) -> None:
    say("error", failure.message)
    for cause in failure.causes if is_verbose else ():
        say("cause", cause)
    # The place in a condition is a line of its own.
    for line in (failure.hint or "").split("\n") if failure.hint else ():
        say("hint", line)
    if as_json:
        try:
            print_json({"error": failure.message, "hint": failure.hint})
        except OSError:
            _close_stdout()


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    del category
    say("warning", str(message))
