"""`secure-bloom audit` as its users meet it: exit codes, formats, files, errors."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom import cli
from testing import tables
from testing.command_line import COMMAND, run
from testing.tables import Mode
from tests.auditing.examples import SIGNED
from tests.cli.conftest import POLICY, assert_clean, assert_error


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two encrypted files with filters below ``out``, a policy that they obey, its keyring."""
    folder = tmp_path_factory.mktemp("lake")
    (folder / "out").mkdir()
    for part in range(2):
        path = folder / "out" / f"part-{part}.parquet"
        tables.write(path, tables.customers(60, part), Mode.ENCRYPTED)
    (folder / "policy.toml").write_text(POLICY)
    keyring = folder / "keyring.json"
    keyring.write_text(tables.keyring_json())
    keyring.chmod(0o600)
    assert not sb.add_bloom_filters(folder / "out", policy=folder / "policy.toml").failed
    return folder


@pytest.fixture
def lake(written: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(written, tmp_path / "lake")


def main(*arguments: object) -> subprocess.CompletedProcess[str]:
    """``secure-bloom audit`` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        cli.main(["audit", *map(str, arguments)])
    code = ended.value.code
    assert isinstance(code, int)
    done = subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
    assert_clean(done)
    return done


def audit(lake: Path, *arguments: object) -> tuple[int, str]:
    """Exit code and stdout."""
    done = main(lake / "out", "--policy", lake / "policy.toml", *arguments)
    assert done.stderr == ""
    return done.returncode, done.stdout


def put_in_clear(lake: Path) -> str:
    path = lake / "out" / "part-1.parquet"
    tables.write(path, tables.customers(60), column_keys={"k_finance": ["iban"]})
    return str(path)


def test_a_clean_dataset_exits_with_0(lake: Path) -> None:
    code, text = audit(lake)
    assert code == 0
    assert "clean" in text
    code, text = audit(lake, "--json", "--check-values")
    document = json.loads(text)
    assert (code, document["findings"], document["files"]) == (0, [], 2)
    assert document["columns_checked"] == 10


def test_audit_is_a_verb_of_the_command_line(lake: Path) -> None:
    put_in_clear(lake)
    done = run("audit", lake / "out", "--policy", lake / "policy.toml")
    assert_clean(done)
    assert (done.returncode, done.stderr) == (1, "")
    assert "column-in-clear" in done.stdout


def test_findings_exit_with_1_in_every_format(lake: Path) -> None:
    path = put_in_clear(lake)
    for form in ("text", "json", "sarif", "html"):
        code, text = audit(lake, "--format", form)
        assert code == 1
        assert "column-in-clear" in text
        assert "\x1b" not in text
    code, text = audit(lake, "--json")
    assert path in {finding["path"] for finding in json.loads(text)["findings"]}


def test_a_report_goes_into_a_file(lake: Path) -> None:
    put_in_clear(lake)
    target = lake / "audit.sarif"
    written = ("--format", "sarif", "--output", target)
    done = main(lake / "out", "--policy", lake / "policy.toml", *written)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"note: {target}: the files do not obey the policy\n"
    (result,) = json.loads(target.read_text())["runs"]
    assert "column-in-clear" in {r["ruleId"] for r in result["results"]}
    rules = {rule["id"]: rule for rule in result["tool"]["driver"]["rules"]}
    assert "without encryption" in rules["column-in-clear"]["fullDescription"]["text"]


def test_ignored_findings_do_not_fail_and_are_shown(lake: Path) -> None:
    put_in_clear(lake)
    ignored = [
        word
        for name in ("footer-not-encrypted", "filter-missing", "column-in-clear:email")
        for word in ("--ignore", name)
    ]
    code, text = audit(lake, *ignored, "--json")
    document = json.loads(text)
    assert code == 1
    assert {(f["id"], f["column"]) for f in document["findings"]} == {("column-in-clear", "iban")}
    code, text = audit(lake, *ignored, "--ignore", "column-in-clear")
    assert code == 0
    assert "column-in-clear" in text


def test_severity_sample_and_an_outsiders_look(lake: Path) -> None:
    code, text = audit(lake, "--sample", 1, "--severity", "medium", "--json")
    document = json.loads(text)
    assert (code, document["files"]) == (0, 1)
    assert [finding["id"] for finding in document["ignored"]] == ["unchecked-sample"]
    code, text = audit(lake, "--without-keys", "--json")
    assert code == 1
    assert {f["id"] for f in json.loads(text)["findings"]} == {
        "unchecked-footer",
        # It is that of `city`, which the policy leaves in clear.
        "unchecked-filter",
    }


@pytest.mark.parametrize("form", ["{}={}", "spark.hadoop.{} {}", "{} : {}"])
def test_the_properties_of_a_session_are_held_against_the_policy(lake: Path, form: str) -> None:
    properties = lake / "spark-defaults.conf"
    wanted = {
        **SIGNED.spark_properties(),
        "parquet.encryption.plaintext.footer": "false",
        "parquet.bloom.filter.enabled#email": "true",
    }
    lines = ["# a comment", "", *(form.format(*item) for item in wanted.items())]
    properties.write_text("\n".join(lines))
    assert audit(lake, "--spark-properties", properties)[0] == 0
    properties.write_text("\n".join(lines).replace("k_pii:email", "k_pii:emial"))
    code, text = audit(lake, "--spark-properties", properties, "--json")
    assert code == 1
    assert {(f["id"], f["column"]) for f in json.loads(text)["findings"]} == {
        ("spark-column-unprotected", "email"),
        ("spark-column-unknown", "emial"),
    }


def test_a_mistake_in_the_policy_is_a_finding(lake: Path) -> None:
    policy = lake / "policy.toml"
    policy.write_text(POLICY.replace("fpp", "ffp"))
    code, text = audit(lake, "--json")
    assert code == 1
    assert {f["id"] for f in json.loads(text)["findings"]} == {"policy-unknown-word"}


def test_an_audit_that_fails_exits_with_2(lake: Path) -> None:
    policy = ("--policy", lake / "policy.toml")
    assert_error(main(lake / "nowhere", *policy), "no such file")
    assert_error(main(lake / "out"), "--policy")
    assert_error(main(lake / "out", "--policy", lake / "none.toml"), "policy")
    assert_error(
        run("audit", lake / "out", *policy, "--ignore", "colum-in-clear"), "hint", "column"
    )
    assert_error(main(lake / "out", *policy, "--severity", "urgent"), "urgent")
    assert_error(main(lake / "out", *policy, "--output", lake), "written")
    assert_error(main(lake / "out", *policy, "--spark-properties", lake), "properties")
    (lake / "policy.toml").write_text("[columns")
    failed = main(lake / "out", *policy, "--json")
    assert_error(failed, "TOML")
    assert "TOML" in json.loads(failed.stdout)["error"]


def test_a_report_that_cannot_be_written_is_an_error_for_people(lake: Path) -> None:
    policy = lake / "policy.toml"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "audit", lake / "out", "--policy", policy],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "the report cannot be written" in done.stderr


def test_an_audit_that_is_interrupted_says_that_nothing_changed(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("secure_bloom.auditing.auditor.audit_file", interrupt)
    done = main(lake / "out", "--policy", lake / "policy.toml")
    assert (done.returncode, done.stdout) == (130, "")
    assert "interrupted; an audit changes nothing" in done.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [("a = " + "[" * 100_000, "nested too deep"), ("a = " + "1" * 10_000, "number too long")],
)
def test_a_policy_that_no_parser_takes_is_not_toml(lake: Path, content: str, told: str) -> None:
    (lake / "policy.toml").write_text(content)
    assert_error(main(lake / "out", "--policy", lake / "policy.toml"), "TOML", told)


def test_a_policy_may_begin_with_a_byte_order_mark(lake: Path) -> None:
    policy = lake / "policy.toml"
    policy.write_text(policy.read_text(), encoding="utf-8-sig")
    assert audit(lake)[0] == 0


#: Options of every verb.
EVERYWHERE = {"--verbose", "--quiet", "--color"}


@pytest.mark.parametrize("form", ["html", "sarif"])
def test_two_forms_of_a_report_are_refused(lake: Path, form: str) -> None:
    done = main(lake / "out", "--policy", lake / "policy.toml", "--json", "--format", form)
    assert done.returncode == 2
    assert f"--json and --format {form} are two forms" in json.loads(done.stdout)["error"]
    _, text = audit(lake, "--json", "--format", "json")
    assert text.lstrip()[0] == "{"
