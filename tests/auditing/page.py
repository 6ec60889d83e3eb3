"""The reference part of docs/audit.md, from the table of ids and the examples of the tests.

`python -m tests.auditing.page` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from secure_bloom.auditing.rules import RULES, Rule
from tests.auditing.examples import EXAMPLES
from tests.project import ROOT

PAGE = ROOT / "docs" / "audit.md"
#: Everything below this line comes from here.
MARK = "## Every finding\n"
_GROUPS = {
    "policy": "The policy itself",
    "spark": "Spark properties",
    "column": "Keys",
    "impossible": "What cannot be true",
    "filter": "Bloom filters",
    "statistics": "Leaks beside the filter",
    "unchecked": "What could not be checked",
}


def render() -> str:
    """The reference: a heading for each group, a paragraph for each id."""
    return f"{MARK}\n" + "\n\n".join(_parts()) + "\n"


def _parts() -> Iterator[str]:
    groups = dict(_GROUPS)
    for rule in RULES.values():
        heading = groups.pop(rule.id.partition("-")[0], None)
        if heading is not None:
            yield f"### {heading}"
        yield _paragraph(rule)


def _paragraph(rule: Rule) -> str:
    shown = " ".join((EXAMPLES[rule.id].__doc__ or "").split())
    return (
        f"#### `{rule.id}` · {rule.severity}\n\n"
        f"{rule.meaning}\n\n- Do: {rule.fix}\n- Example: {shown}"
    )


def written(page: str) -> str:
    """The reference part of a page."""
    return page[page.index(MARK) :]


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(text.replace(written(text), render()))
