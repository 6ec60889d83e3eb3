"""``secure-bloom advise``: which columns gain by a filter, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from secure_bloom.cli.arguments import (
    Access,
    with_access_to_sign,
    with_common_options,
    with_form_options,
)
from secure_bloom.cli.print_advise import FORMS, write_advice
from secure_bloom.cli.progress_bar import progress_bar
from secure_bloom.cli.timeout import with_timeout

_PATH = click.Path(path_type=Path)


@click.command("advise", short_help="Say which columns gain by a Bloom filter.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-c",
    "--column",
    "columns",
    multiple=True,
    metavar="NAME",
    help="A column to look at, instead of all; may be repeated.",
)
@click.option(
    "--queries",
    type=_PATH,
    metavar="FILE",
    help="A log of queries, one SQL condition or statement a line: columns are ranked by it.",
)
@click.option(
    "--fpp",
    type=float,
    metavar="F",
    help="False positives of the filters; else the policy's, or 0.01.",
)
@with_form_options(FORMS, "advice")
@with_timeout
@with_access_to_sign
@with_common_options
def advise_command(
    paths: tuple[str, ...],
    columns: tuple[str, ...],
    form: str,
    output: Path | None,
    access: Access,
    as_json: bool,
    verbose: bool,  # noqa: ARG001 - the advice is whole without it
    **options: Any,
) -> int:
    """Say which columns of PATH gain by a Bloom filter, what it costs, and why others do not.

    Nothing is written to the table.  Filters of a part of it are built in memory, and values are
    looked up without and with them, of values that rows have and of values that none has.  Ends
    with lines for a policy.  A value of a query is never shown or kept.

    \b
    secure-bloom advise out/
    secure-bloom advise out/ --policy keys/policy.toml --queries queries.sql
    secure-bloom advise out/ --json

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.advising import advise

    with progress_bar("trying filters", quiet=as_json) as progress:
        wanted = {**options, "columns": columns or None, "progress": progress}
        advice = advise(paths, **access.arguments(), **wanted)
    write_advice("json" if as_json else form, advice, output)
    return 0
