"""SARIF as code-scanning tools take it: its structure, and results that stay the same."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import jsonschema
import pytest

from secure_bloom.auditing.findings import AuditReport, Finding, Severity
from secure_bloom.auditing.formats import render_sarif
from testing.project import ROOT
from tests.auditing.formats import reports
from tests.auditing.formats.reports import filter_missing, finding, unchecked
from tests.auditing.page import PAGE as FINDINGS

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

TEXT = {"type": "string", "minLength": 1}
INDEX = {"type": "integer", "minimum": 0}
LEVEL = {"enum": ["none", "note", "warning", "error"]}


def thing(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """The schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def several(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


MESSAGE = thing({"text": TEXT})
#: What of SARIF 2.1.0 is written here, with the rules of the specification's schema and, where
#: code-scanning tools ask for more, of theirs: rules are described, results have a place.
RULE = thing(
    {
        "id": TEXT,
        "name": TEXT,
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "help": MESSAGE,
        "helpUri": {"type": "string", "pattern": r"^https://[^#]+/docs/findings\.md#[a-z-]+$"},
        "defaultConfiguration": thing({"level": LEVEL}),
        "properties": thing(
            {
                "security-severity": {"type": "string", "pattern": r"^(10|\d)\.\d$"},
                "tags": {**several(TEXT), "uniqueItems": True, "maxItems": 10},
            }
        ),
    }
)
LOCATION = thing(
    {
        "physicalLocation": thing(
            {
                "artifactLocation": thing(
                    {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9/:.~_%@?&=-]+$"}}
                ),
                "region": thing({"startLine": {"type": "integer", "minimum": 1}}),
            }
        )
    },
    logicalLocations=several(thing({"fullyQualifiedName": TEXT, "kind": TEXT}), 1),
)
RESULT = thing(
    {
        "ruleId": TEXT,
        "ruleIndex": INDEX,
        "level": LEVEL,
        "message": MESSAGE,
        "locations": {**several(LOCATION, 1), "maxItems": 100},
        "partialFingerprints": thing({"primaryLocationLineHash": TEXT}),
    },
    kind={"const": "informational"},
    suppressions=several(
        thing({"kind": {"enum": ["inSource", "external"]}, "justification": TEXT})
    ),
)
INVOCATION = thing({"executionSuccessful": {"type": "boolean"}})
LOG = thing(
    {
        "$schema": {"type": "string", "pattern": "^https://.*sarif-schema-2.1.0.json$"},
        "version": {"const": "2.1.0"},
        "runs": several(
            thing(
                {
                    "tool": thing(
                        {"driver": thing({"name": TEXT, "version": TEXT, "rules": several(RULE)})}
                    ),
                    "invocations": several(INVOCATION),
                    "results": {**several(RESULT), "maxItems": 5000},
                    "properties": {"type": "object"},
                }
            ),
            1,
        ),
    }
)


def run_of(report: AuditReport) -> dict[str, Any]:
    """The run of a rendered report, after a look at its structure."""
    log = json.loads(render_sarif(report))
    jsonschema.validate(log, LOG)
    run = log["runs"][0]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert ids == sorted(set(ids))
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    return run


def results_of(*found: Finding, **settings: Any) -> list[dict[str, Any]]:
    return run_of(AuditReport(findings=found, **settings))["results"]


def prints(results: list[dict[str, Any]]) -> list[str]:
    return [r["partialFingerprints"]["primaryLocationLineHash"] for r in results]


def uri_of(result: dict[str, Any]) -> str:
    return result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


@pytest.mark.parametrize("name", ["small", "clean", "large"])
def test_the_structure_is_that_of_the_specification(name: str) -> None:
    report = getattr(reports, f"{name}_report")()
    run = run_of(report)
    assert len(set(prints(run["results"]))) == len(run["results"])
    assert bool(run["results"]) == bool(report.findings)


def test_a_mistake_in_one_file_is_one_result_with_its_row_groups() -> None:
    (result,) = results_of(*(finding(path="lake/a.parquet", row_group=g) for g in range(3)))
    assert result["level"] == "error"
    assert result["message"]["text"] == (
        "column email, row group 0, 1, 2: stored in clear, the policy asks for key k_pii. "
        "Fix: write the files anew under the policy, then delete these"
    )
    assert uri_of(result) == "lake/a.parquet"
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "email"


def test_levels_and_scores_follow_severity() -> None:
    found = tuple(finding(f"id-{severity}", severity) for severity in Severity)
    run = run_of(AuditReport(findings=found))
    assert [result["level"] for result in run["results"]] == [
        *("error", "error", "warning", "note", "none")
    ]
    rules = {rule["id"]: rule["properties"] for rule in run["tool"]["driver"]["rules"]}
    scores = [float(rules[f"id-{severity}"]["security-severity"]) for severity in Severity]
    assert scores == sorted(scores, reverse=True)


def test_unchecked_findings_are_results_too() -> None:
    run = run_of(AuditReport(findings=(unchecked("lake/a"),)))
    assert run["results"][0]["level"] == "warning"
    assert "unchecked" in run["tool"]["driver"]["rules"][0]["properties"]["tags"]


def test_ignored_findings_are_suppressed_results() -> None:
    run = run_of(AuditReport(findings=(finding(),), ignored=(filter_missing("lake/a"),)))
    assert [len(result.get("suppressions", ())) for result in run["results"]] == [0, 1]


def test_a_fingerprint_stays_whatever_else_is_found() -> None:
    mine = finding(path="lake/b", row_group=1)
    alone = prints(results_of(mine))
    more = results_of(
        unchecked("lake/a"), finding(path="lake/c"), mine, paths=("lake/a", "lake/b", "lake/c")
    )
    assert alone[0] in prints(more)
    others = (finding("column-wrong-key", path="lake/b"), finding(path="lake/b", what="open"))
    assert not set(alone) & set(prints(results_of(*others)))


def test_one_mistake_in_10_000_files_is_one_result_with_places() -> None:
    paths = tuple(reports.day_paths(20, 500))
    found = [finding(path=path, column=name) for path in paths for name in ("email", "iban")]
    [result] = results_of(*found, paths=paths)
    assert result["message"]["text"].startswith("columns email, iban, 10,000 files: ")
    assert len(result["locations"]) == 100
    columns = result["locations"][99]["logicalLocations"]
    assert [column["fullyQualifiedName"] for column in columns] == ["email", "iban"]


def test_a_log_of_anything_is_small_enough_for_the_tools() -> None:
    paths = tuple(reports.day_paths(40, 50))
    ids = [f"id-{letter}" for letter in "abcdefgh"]
    found = tuple(
        finding(ids[n % 8], path=path, column=f"c{n}", what=f"{path} {n}")
        for path in paths
        for n in range(50)
    )
    text = render_sarif(AuditReport(findings=found, paths=paths))
    assert len(json.loads(text)["runs"][0]["results"]) == 8
    assert len(text) < 2_000_000


def test_a_note_is_informational() -> None:
    note = finding("sizes-in-clear", Severity.NOTE)
    [result] = run_of(AuditReport(notes=(note,)))["results"]
    assert (result["kind"], result["level"]) == ("informational", "none")


def test_help_leads_to_the_heading_of_the_id() -> None:
    assert FINDINGS.read_text().count("### `column-in-clear`\n") == 1
    documentation = PYPROJECT["project"]["urls"]["Documentation"]
    [rule] = run_of(AuditReport(findings=(finding(),)))["tool"]["driver"]["rules"]
    assert rule["helpUri"] == f"{documentation}/{FINDINGS.name}#column-in-clear"


def test_a_finding_without_a_file_is_placed_at_the_folder_of_the_dataset() -> None:
    (result,) = results_of(finding(path=None), paths=("lake/dt=1/a", "lake/dt=2/a"))
    assert uri_of(result) == "lake/"
    assert uri_of(results_of(finding(path=None))[0]) == "."


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("lake/dt=1/a b.parquet", "lake/dt%3D1/a%20b.parquet"),
        ("/data/größe", "file:///data/gr%C3%B6%C3%9Fe"),
        ("s3://bucket/a%3Db/c d", "s3://bucket/a%253Db/c%20d"),
        ("a:b/c", "a%3Ab/c"),
        ("lake/\udcff\n", "lake/%ED%B3%BF%0A"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_paths_are_uris(path: str, uri: str) -> None:
    assert uri_of(results_of(finding(path=path))[0]) == uri


def test_text_from_a_file_is_no_link_no_placeholder_and_no_control() -> None:
    column = "[click](https://evil.example) {0} \x1b[2J \udcff"
    (result,) = results_of(finding(column=column, what="see {12}, bloom = { fpp = 0.01 }"))
    text = result["message"]["text"]
    assert "](" not in text
    assert "{{0}}" in text
    assert "see {{12}}, bloom = { fpp = 0.01 }" in text
    assert r"\x1b[2J \udcff" in text
    json.dumps(result, ensure_ascii=False).encode("utf-8")


def test_meanings_describe_rules() -> None:
    log = json.loads(
        render_sarif(AuditReport(findings=(finding(),)), meanings={"column-in-clear": "M."})
    )
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    assert rule["fullDescription"]["text"] == "M."
    assert rule["shortDescription"]["text"] == "Column in clear"
