"""The blocks of a page of the docs, and a session that does what they say, in their order."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import secure_bloom as sb
from testing.command_line import run
from testing.project import ROOT

DOCS = ROOT / "docs"
#: Prose beside the folder of the docs that may have blocks, as paths below it.
_BESIDE = tuple(f"../{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG"))
_BLOCK = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_EXIT_CODE = re.compile(r"# exit code (\d)")
#: Commands that other tests run, or that install.
_ELSEWHERE = ("pip ", "secure-bloom demo ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block; ``title`` is the name of a file that it is the text of."""

    language: str
    title: str | None
    text: str

    def commands(self) -> Iterator[tuple[str, int, list[str]]]:
        """Command, exit code and the lines that stand below it, of a block of a console."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            line, *shown = part.splitlines()
            code = _EXIT_CODE.search(line)
            command = line if code else re.sub(r"\s+# .*", "", line)
            yield command.partition(" # exit")[0].strip(), int(code[1]) if code else 0, shown


def pages() -> list[str]:
    """All pages that have blocks of code, as paths below docs/."""
    return [name for name in every_page() if blocks(name)]


def every_page() -> list[str]:
    """All pages, as paths below docs/."""
    return sorted([*_BESIDE, *(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))])


def blocks(page: str, *languages: str) -> list[Block]:
    """The blocks of a page; of all languages unless some are named."""
    return [
        Block(
            language=language,
            title=title[1] if (title := _TITLE.search(info)) else None,
            text=re.sub(rf"^{indent}", "", text, flags=re.MULTILINE),
        )
        for indent, language, info, text in _BLOCK.findall((DOCS / page).read_text())
        if language != "text" and (not languages or language in languages)
    ]


@dataclass(slots=True)
class Session:
    """A reader who types a page into an empty folder, which is the working directory already.

    ``names`` are those that the page's Python knows before it begins.
    """

    names: dict[str, Any] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    def follow(self, page: str) -> None:
        """Do what each block says."""
        for block in blocks(page):
            self.do(block)

    def do(self, block: Block) -> None:
        """Do what a block says; a language that nobody types is an error."""
        getattr(self, f"_{block.language}")(block)

    def _toml(self, block: Block) -> None:
        """Every one of them is a policy, or a part of one."""
        part = Path("part-of-a-policy.toml")
        # A part that another file includes has the footer of that file.
        is_whole = "[footer]" in block.text
        part.write_text(block.text if is_whole else f'[footer]\nkey = "k_footer"\n{block.text}')
        sb.KeyPolicy.load(part)
        part.unlink()
        self._keep(block)

    def _json(self, block: Block) -> None:
        json.loads(block.text)
        self._keep(block)

    def _keep(self, block: Block) -> None:
        if block.title:
            Path(block.title).write_text(block.text)

    _yaml = _sql = _keep

    def _python(self, block: Block) -> None:
        exec(compile(block.text, "page", "exec"), self.names)

    def _console(self, block: Block) -> None:
        for command, code, shown in block.commands():
            if command.startswith("make "):
                assert f"\n{command.split()[1]}: " in (ROOT / "Makefile").read_text(), command
            elif not command.startswith(_ELSEWHERE):
                self._command(command, code, shown)

    def _command(self, command: str, code: int, shown: list[str]) -> None:
        name, *arguments = shlex.split(command)
        if name == "cd":
            os.chdir(arguments[0])
            return
        if name == "sed":
            subprocess.run([name, *arguments], check=True)
            return
        assert name == "secure-bloom", command
        # As a shell does: a pattern that no file matches stays as it is.
        done = run(*(path for word in arguments for path in glob.glob(word) or [word]))  # noqa: PTH207
        assert done.returncode == code, (command, done.stdout, done.stderr)
        self.shown.append(done.stdout)
        for line in shown:
            assert line.rstrip() in done.stdout, (command, line)


def development_keys() -> None:
    """Put the policy and the keyring of the repository where pages expect them."""
    shutil.copytree(ROOT / "keys", "keys")
    for name in os.listdir("keys"):  # noqa: PTH208
        Path("keys", name).chmod(0o600)


#: Parts of pages that programs write: results of benchmarks, of campaigns, and of trials.
_WRITTEN = re.compile(r"<!-- (?:rows|results|measured).*?<!-- end[^>]*-->", re.DOTALL)


def words_of_the_docs() -> dict[str, int]:
    """Words of each page, without measurements and without what programs write.

    The findings are written by ``python -m tests.auditing.page``.
    """
    counted = {}
    for name in every_page():
        if name.startswith(("../", "benchmarks/", "filters.md", "findings.md", "where-the-time")):
            continue
        text = _WRITTEN.sub("", (DOCS / name).read_text())
        if name == "compatibility.md":
            text = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
        counted[name] = len(text.split())
    return counted
