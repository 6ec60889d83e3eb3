"""``python -m secure_bloom``, and the script ``secure-bloom``."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it without a traceback, from the first import on."""
    try:
        # Imported here: it takes most of a short run, and people press Ctrl-C meanwhile.
        from secure_bloom.running import settle_process

        settle_process()
        # Only now: a settled process imports faster.
        from secure_bloom.cli import main as run_command_line

        run_command_line()
    except ModuleNotFoundError as error:
        # The command line itself could not be imported.
        from secure_bloom.errors import missing_package

        missing = missing_package(error)
        if missing is None:
            raise
        for kind, text in (("error", missing.message), ("hint", missing.hint)):
            sys.stderr.write(f"secure-bloom: {kind}: {text}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("secure-bloom: error: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
