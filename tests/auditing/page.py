"""docs/findings.md, from the table of ids and the examples of the tests.

`python -m tests.auditing.page` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from secure_bloom.auditing.rules import RULES, Rule
from testing.project import ROOT
from tests.auditing.examples import EXAMPLES

PAGE = ROOT / "docs" / "findings.md"
HEAD = """# Every finding

What [the audit](audit.md) can find, by its stable id: what it means, what to do, and an example.
The severity comes first. A note leaves an audit clean.
"""
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
    """The page: a heading for each group, a paragraph for each id."""
    return f"{HEAD}\n" + "\n\n".join(_parts()) + "\n"


def _parts() -> Iterator[str]:
    groups = dict(_GROUPS)
    for rule in RULES.values():
        heading = groups.pop(rule.id.partition("-")[0], None)
        if heading is not None:
            yield f"## {heading}"
        yield _paragraph(rule)


def _paragraph(rule: Rule) -> str:
    shown = " ".join((EXAMPLES[rule.id].__doc__ or "").split())
    return (
        f"### `{rule.id}`\n\n"
        f"**{rule.severity.capitalize()}.** {rule.meaning}\n\n- Do: {rule.fix}\n- Example: {shown}"
    )


if __name__ == "__main__":
    PAGE.write_text(render())
