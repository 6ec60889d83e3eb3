"""The table of `docs/reliability.md`: one row for each campaign, of its last full run."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from campaigns import PAGE, ROOT
from campaigns.outcome import Outcome

BEGIN, END = "<!-- rows: full runs of campaigns write them -->\n", "<!-- end of rows -->\n"
HEAD = (
    "| campaign | tried | trials | failures | date | commit | machine | run it |\n"
    "| --- | --- | ---: | ---: | --- | --- | --- | --- |\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One campaign's last full run."""

    campaign: str
    outcome: Outcome
    date: str
    commit: str
    machine: str
    command: str

    def __str__(self) -> str:
        cells = (
            self.campaign,
            self.outcome.tried.replace("|", "\\|"),
            f"{self.outcome.trials:,}",
            f"{len(self.outcome.failures):,}",
            self.date,
            self.commit,
            self.machine,
            f"`{self.command}`",
        )
        return f"| {' | '.join(cells)} |\n"


def record(row: Row, page: Path = PAGE) -> None:
    """Put the row into the page, in the place of the campaign's older one; the rest stays."""
    before, begin, rest = page.read_text().partition(BEGIN)
    table, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has lost the marks around its table")
    rows = {_campaign(line): line for line in table.splitlines(keepends=True)[len(_HEAD_LINES) :]}
    rows[row.campaign] = str(row)
    lines = "".join(rows[campaign] for campaign in sorted(rows))
    page.write_text(f"{before}{BEGIN}{HEAD}{lines}{END}{after}")


def commit() -> str:
    """The commit that was tried, with a + where files were changed since."""

    def git(*arguments: str) -> str:
        asked = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()

    # The page itself has rows that this very run has written.
    changed = git("status", "--porcelain", "--", ".", f":!{PAGE.relative_to(ROOT)}")
    return git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def _campaign(line: str) -> str:
    return line.split("|")[1].strip()


_HEAD_LINES = HEAD.splitlines()
