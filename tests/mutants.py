"""What ``make mutants`` found: how many changed programs the tests notice, and which they do not.

``python -m tests.mutants`` prints a table, and fails below nine in ten; with ``--show`` the
changes that went unnoticed too.  Every one of those has its reason in ``tests/README.md``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from testing.project import ROOT

_WANTED = 0.9
#: What mutmut notes of a mutant: the exit code of pytest, or one of its own.
_SURVIVED = {0: "survived", 5: "no test runs it", 33: "no test runs it", None: "not tried"}


def results() -> Iterator[tuple[str, dict[str, int | None]]]:
    """The modules that were changed, each with its mutants and what became of them."""
    folder = ROOT / "mutants"
    for meta in sorted(folder.rglob("*.meta")):
        codes = json.loads(meta.read_text())["exit_code_by_key"]
        if codes:
            yield str(meta.relative_to(folder)).removesuffix(".py.meta"), codes


def main(arguments: list[str]) -> int:
    found = dict(results())
    if not found:
        print("nothing was tried: run make mutants", file=sys.stderr)
        return 2
    unnoticed = {name: code for codes in found.values() for name, code in codes.items()}
    unnoticed = {name: code for name, code in unnoticed.items() if code in _SURVIVED}
    print("| module | mutants | killed | share |\n| --- | ---: | ---: | ---: |")
    shares = []
    for module, codes in found.items():
        killed = sum(name not in unnoticed for name in codes)
        shares.append(killed / len(codes))
        print(f"| `{module}` | {len(codes)} | {killed} | {100 * shares[-1]:.1f} % |")
    for name, code in unnoticed.items():
        print(f"{name}: {_SURVIVED[code]}")
        if "--show" in arguments:
            print(_change(name))
    return min(shares) < _WANTED


def _change(name: str) -> str:
    command = [sys.executable, "-m", "mutmut", "show", name]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    lines = [line for line in shown.splitlines() if line.startswith(("+", "-"))]
    return "\n".join(f"    {line}" for line in lines if not line.startswith(("+++", "---")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
