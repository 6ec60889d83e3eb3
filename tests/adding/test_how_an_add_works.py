"""The page "How an add works" names modules that an add visits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from testing.project import PACKAGE, ROOT
from testing.tables import Mode, customers, write

PAGE = (ROOT / "docs" / "design" / "how-an-add-works.md").read_text()
#: Prints each module of the package when the first of its functions is called.
TRACED = """
import sys, threading
from testing.tables import KEYRING
import secure_bloom as sb
from secure_bloom.adding import rewrite_plan

seen = set()

def visit(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    is_new = event == "call" and name.startswith("secure_bloom.") and name not in seen
    if is_new and frame.f_code.co_name != "<module>":
        seen.add(name)
        print(name.removeprefix("secure_bloom.").replace(".", "/"))

sys.setprofile(visit)
threading.setprofile(visit)
report = sb.add_bloom_filters(sys.argv[1], columns=["email"], keys=KEYRING)
sys.setprofile(None)
assert [file.status for file in report.files] == ["added"], report
"""


def named(text: str) -> list[str]:
    return re.findall(r"`(\w+(?:/\w+)+)`", text)


def test_every_module_of_the_page_exists() -> None:
    assert [name for name in named(PAGE) if not (PACKAGE / f"{name}.py").exists()] == []


def test_an_add_visits_the_modules_of_the_page(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    command = [sys.executable, "-c", TRACED, str(tmp_path)]
    visited = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    steps = [named(line) for line in PAGE.splitlines() if re.match(r"\| \d", line)]
    assert len(steps) == 13
    missing = {name for names in steps for name in names} - set(visited.stdout.split())
    assert missing == set()
