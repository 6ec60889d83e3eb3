"""Manual pages have what the verbs say of themselves, and roff sees no command in it."""

from __future__ import annotations

import click

from secure_bloom.cli.man_pages import man_pages


@click.group()
def tool() -> None:
    """Do things.

    \b
    tool verb --now
    """


@tool.command()
@click.argument("path")
@click.option("--now", is_flag=True, help="At once.")
def verb(path: str, now: bool) -> None:
    r"""Do one thing.

    .TH is no command here, and a\b no escape.
    """


PAGES = dict(man_pages(click.Context(tool, info_name="tool")))


def test_the_program_and_each_verb_have_a_page() -> None:
    assert list(PAGES) == ["tool", "tool-verb"]
    assert PAGES["tool-verb"].startswith('.TH "TOOL-VERB" "1"\n.SH NAME\ntool-verb \\- Do one')
    assert ".TP\n\\fBverb\\fR\nDo one thing." in PAGES["tool"]


def test_options_are_listed() -> None:
    assert ".SH OPTIONS\n.TP\n\\fB\\-\\-now\\fR\nAt once." in PAGES["tool-verb"]


def test_arguments_are_no_options() -> None:
    assert "PATH" in PAGES["tool-verb"].partition(".SH OPTIONS")[0]
    assert "PATH" not in PAGES["tool-verb"].partition(".SH OPTIONS")[2]


def test_examples_keep_their_lines() -> None:
    assert ".nf\ntool verb \\-\\-now\n.fi" in PAGES["tool"]


def test_text_that_looks_like_a_command_is_text() -> None:
    assert "\\&.TH is no command here, and a\\eb no escape." in PAGES["tool-verb"]
