"""The command line: parse, call one library function, print.

Data goes to stdout, everything else to stderr; errors are ``secure-bloom: error: ...`` lines with
a hint, never a traceback.
"""

from __future__ import annotations

import os
import sys
import warnings

import click

from secure_bloom.cli.commands import cli
from secure_bloom.errors import SecureBloomError

EXIT_ERROR = 2
_EXIT_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    warnings.showwarning = _show_warning
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        code = cli.main(arguments, prog_name="secure-bloom", standalone_mode=False)
    except SecureBloomError as error:
        return _fail(str(error), error.hint)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "secure-bloom"
        return _fail(error.format_message(), f"see {command} --help")
    except click.ClickException as error:
        return _fail(error.format_message(), None)
    except (KeyboardInterrupt, click.Abort):
        say("error", "interrupted; files already done stay done, the others are as they were")
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; what it saw was right.  Python would complain again
        # when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except Exception as error:
        if os.environ.get("SECURE_BLOOM_DEBUG"):
            raise
        # Only the type: the text of an unforeseen error could hold anything.
        return _fail(
            f"unforeseen {type(error).__name__}",
            "this is a bug, please report it; SECURE_BLOOM_DEBUG=1 shows where it happened",
        )
    return code if isinstance(code, int) else 0


def _fail(message: str, hint: str | None) -> int:
    say("error", message)
    if hint:
        say("hint", hint)
    return EXIT_ERROR


def say(kind: str, message: str) -> None:
    """One line on stderr, in the form that programs can rely on."""
    click.echo(f"secure-bloom: {kind}: {message}", err=True)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    say("warning", str(message))
