"""``secure-bloom demo``: run the main job, end to end, on Spark."""

from __future__ import annotations

from pathlib import Path

import click

from secure_bloom.cli.verbosity import is_quiet, with_verbosity


@click.command("demo")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--rows", default=300_000, show_default=True, help="Rows of the demo table.")
@with_verbosity
def demo_command(folder: Path | None, rows: int) -> int:
    """Write an encrypted table on Spark, add filters, and look values up.

    The table goes to FOLDER (a new one), else to a temporary folder, which stays.  Needs Java 17 or
    later and the extra "spark".

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.spark.demo import run_demo

    run_demo(folder, rows, quiet=is_quiet())
    return 0
