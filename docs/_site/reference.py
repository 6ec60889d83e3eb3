"""Reference pages of the site, and parts of them, made from the program while the site is built.

A hook of MkDocs (https://www.mkdocs.org/user-guide/configuration/#hooks).  It adds pages below
``reference/``.  In pages that are there it replaces ``<!-- verbs: add, read -->`` by the synopsis,
options and exit codes of these verbs, and ``<!-- public names -->`` by the Python reference.  It
completes links from the docs into the repository.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import secure_bloom
from secure_bloom import errors
from secure_bloom.cli.verbs import cli

DOCS = Path(__file__).parents[1]
_LINK_OUT = re.compile(r"\]\(((?:\.\./)+)([^)]+)\)")
_ROLE = re.compile(r":(?:class|func|data|meth|mod):`~?([^`]+)`")
_VERBS_HERE = re.compile(r"<!-- verbs: (.*?) -->")
#: How much a find on a page counts in the search: tasks before explanations, measurements last.
_BOOSTS = {
    "benchmarks/": 0.1,
    "design/": 0.5,
    **dict.fromkeys(
        ("which-bloom", "what-is", "keys", "iceberg", "reference/probe", "rotation"), 3
    ),
}
_NAMES_HERE = "<!-- public names -->"
_SECTION = re.compile(r"^(Args|Returns|Raises|Example):\n((?:    .*\n|\n)+)", re.MULTILINE)
_DOCTEST = re.compile(r"^((?:>>> .*|\.\.\. .*)\n(?:(?!>>>)\S.*\n)*)+", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    pages = {
        "command-line": command_line(),
        "json": json_documents(),
        "errors": errors_and_codes(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Return the page with its generated parts, and with whole links into the repository."""
    boost = next((b for start, b in _BOOSTS.items() if page.file.src_uri.startswith(start)), None)
    if boost is not None:
        page.meta["search"] = {"boost": boost}
    markdown = _VERBS_HERE.sub(lambda found: _verbs_named(found[1].split(", ")), markdown)
    if _NAMES_HERE in markdown:
        markdown = markdown.replace(_NAMES_HERE, python())
    depth = page.file.src_uri.count("/")

    def whole(link: re.Match[str]) -> str:
        if link[1].count("../") <= depth:
            return link[0]
        return f"]({config.extra['repository']}/blob/main/{link[2]})"

    return _LINK_OUT.sub(whole, markdown)


def command_line() -> str:
    """Return a table of all verbs: what each does, and the page that has the rest."""
    context = click.Context(cli, info_name="secure-bloom")
    rows = []
    for path, command in _leaves(cli, context):
        summary = inspect.cleandoc(command.help or "").partition("\n\n")[0].replace("\n", " ")
        rows.append(f"| [`{path}`]({_page_of(path.split()[1])}) | {summary} |")
    head = (
        "# Command line\n\n`secure-bloom VERB --help` shows the same.  What holds for all verbs: "
    )
    head += "[every verb](every-verb.md), [exit codes](errors.md).\n\n"
    return head + "\n".join(["| verb | what it does |", "| --- | --- |", *rows]) + "\n"


def _page_of(verb: str) -> str:
    """Return the reference page that names the verb in its mark."""
    for path in sorted((DOCS / "reference").glob("*.md")):
        if any(verb in mark.split(", ") for mark in _VERBS_HERE.findall(path.read_text())):
            return path.name
    raise LookupError(f"no page of docs/reference has <!-- verbs: {verb} -->")


def _verbs_named(names: list[str]) -> str:
    context = click.Context(cli, info_name="secure-bloom")
    parts: list[str] = []
    for name in names:
        command = cli.get_command(context, name)
        assert command is not None, name
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            parts += [f"## {inner.command_path}\n\n{command.help}\n", *_verbs(command, inner)]
        else:
            parts.append(_verb(command, inner))
    return "\n".join(parts)


def _verbs(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield _verb(command, click.Context(command, info_name=name, parent=context))


def _verb(command: click.Command, context: click.Context) -> str:
    depth = "###" if context.parent and context.parent.parent else "##"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    help_ = "\n\n".join(map(_paragraph, inspect.cleandoc(command.help or "").split("\n\n")))
    rows = "\n".join(_option(p, context) for p in command.params if isinstance(p, click.Option))
    options = f"\n| option | |\n| --- | --- |\n{rows}\n" if rows else ""
    return f"{depth} {context.command_path}\n\n```text\n{usage}\n```\n\n{help_}\n{options}"


def _paragraph(text: str) -> str:
    """A paragraph of help; what click is told to keep as it is (``\\b``) is a session."""
    if not text.startswith("\b"):
        return text
    return f"```text\n{text[1:].strip()}\n```"


def _option(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    names, help_ = record if record else (", ".join(option.opts), "")
    return f"| `{names}` | {' '.join(help_.split())} |"


def python() -> str:
    """Every public name, from its signature and its docstring."""
    named = [(name, getattr(secure_bloom, name)) for name in secure_bloom.__all__]
    functions = [(n, v) for n, v in named if inspect.isfunction(v)]
    kinds = [(n, v) for n, v in named if inspect.isclass(v) and not issubclass(v, Exception)]
    parts = ["## Functions\n", *(_function(n, v) for n, v in functions)]
    parts += ["## Classes\n", *(_class(n, v) for n, v in kinds)]
    for room in ("hudi", "paimon"):
        module = getattr(secure_bloom, room)
        parts.append(f"## sb.{room}\n\n{_text(module)}\n")
        parts += [
            (_function if inspect.isfunction(value) else _class)(f"{room}.{name}", value)
            for name, value in ((name, getattr(module, name)) for name in module.__all__)
            if inspect.isfunction(value) or inspect.isclass(value)
        ]
    return "\n".join(parts)


def _function(name: str, function: Any, *, depth: int = 3) -> str:
    signature = _signature(function)
    return f"{'#' * depth} {name}\n\n```python\n{name}{signature}\n```\n\n{_text(function)}\n"


def _signature(function: Any) -> str:
    text = str(inspect.signature(function)).replace("'", "")
    if len(text) < 60:
        return text
    inside, arrow, result = text[1:].rpartition(") -> ")
    arguments = re.split(r", (?![^\[(]*[\])])", inside if arrow else text[1:-1])
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"(\n{lines}){' -> ' + result if arrow else ''}"


def _class(name: str, kind: Any) -> str:
    members = [
        _member(member, getattr(kind, member))
        for member in sorted(vars(kind))
        if not member.startswith("_") and inspect.getdoc(getattr(kind, member))
        if callable(getattr(kind, member)) or isinstance(vars(kind)[member], property)
    ]
    return f"### {name}\n\n{_text(kind)}\n\n" + "\n".join(members) + "\n"


def _member(name: str, value: Any) -> str:
    called = str(inspect.signature(value)).replace("'", "") if inspect.isroutine(value) else ""
    summary = _text(value).partition("\n\n")[0].replace("\n", " ")
    return f"- `{name}{called}`: {summary}"


def _text(thing: Any) -> str:
    """A docstring as Markdown."""
    text = _ROLE.sub(r"`\1`", inspect.getdoc(thing) or "") + "\n"
    text = re.sub(r"  # doctest: .*", "", text)
    text = _SECTION.sub(_listed, text)
    return _DOCTEST.sub(lambda found: f"```python\n{found[0]}```\n", text).strip()


def _listed(section: re.Match[str]) -> str:
    """A section of Google's style: its name in bold, and what it names as a list."""
    body = inspect.cleandoc("\n" + section[2])
    if section[1] == "Example":
        return f"{body}\n"
    if section[1] == "Returns":
        return f"**Returns:** {body}\n"
    items = re.sub(r"^(\w+): ", r"- `\1`: ", body, flags=re.MULTILINE)
    return f"**{section[1]}:**\n\n{items}\n"


def json_documents() -> str:
    """The documents of ``--json``, from their schemas."""
    head = (
        "# JSON documents\n\nEach verb prints one document with `--json`. Their schemas "
        "(JSON Schema, draft 2020-12) are files beside this page, and tests hold real output of "
        "every verb to them. `schema_version` is 1; it grows when a key goes or changes its "
        "meaning. A document may get new keys at any time.\n"
    )
    return "\n".join([head, *map(_schema, sorted((DOCS / "schemas").glob("*.json")))])


def _schema(path: Path) -> str:
    schema = json.loads(path.read_text())
    rows = "\n".join(
        f"| {'&nbsp;' * 4 * depth}`{name}` | {kind} | {text} |"
        for depth, name, kind, text in _fields(schema, 0)
    )
    return (
        f"## {schema['title']}\n\n{schema['description']} "
        f"[{path.name}](../schemas/{path.name})\n\n| key | type | |\n| --- | --- | --- |\n{rows}\n"
    )


def _fields(schema: dict[str, Any], depth: int) -> Iterator[tuple[int, str, str, str]]:
    for name, field in schema.get("properties", {}).items():
        kinds = field.get("type", "any")
        kind = " or ".join(kinds) if isinstance(kinds, list) else kinds
        values = ", ".join(f"`{value}`" for value in field.get("enum", ()) if value is not None)
        text = field.get("description", "")
        yield depth, name, kind, f"{text}{': ' if text and values else ''}{values}"
        yield from _fields(field.get("items", field), depth + 1)


def errors_and_codes() -> str:
    """Every error, and what a verb's exit code means."""
    classes = [v for v in vars(errors).values() if inspect.isclass(v) and issubclass(v, Exception)]
    listed = "\n\n".join(_error(kind) for kind in classes if kind.__module__ == errors.__name__)
    return f"""# Errors and exit codes

## Exit codes

{_exit_codes()}

Every verb ends with 130 after Ctrl-C, and with 141 where whoever reads its output went away. On
stderr an error is a line `secure-bloom: error: ...`, often followed by `secure-bloom: hint: ...`;
with `-v`, `secure-bloom: cause: ...` lines tell what led to it.

## Errors in Python

All are `sb.SecureBloomError`; `hint` says what to do, `path`, `row_group` and `column` where.

{listed}
"""


def _error(kind: type) -> str:
    bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
    return f"### {kind.__name__}\n\n*A {bases}.* {_text(kind)}"


def _exit_codes() -> str:
    """The lines of every verb's help that say what its exit codes mean."""
    context = click.Context(cli, info_name="secure-bloom")
    rows = [
        f"| `{path}` | {' '.join(found[1].split())} |"
        for path, command in _leaves(cli, context)
        if (found := re.search(r"Exit codes?: (.*?)(?:\n\n|\Z)", command.help or "", re.DOTALL))
    ]
    return "\n".join(["| verb | exit codes |", "| --- | --- |", *rows])


def _leaves(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _leaves(command, inner)
        else:
            yield inner.command_path, command
