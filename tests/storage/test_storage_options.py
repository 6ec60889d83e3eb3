"""Settings of S3 by the names that Polars, deltalake, pandas and pyiceberg have for them."""

from __future__ import annotations

import inspect
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.storage.storage_options import granted, storage_grant, with_storage_options
from testing.command_line import run
from testing.storage import Bucket, port, s3_rights

__all__ = ["port", "s3_rights"]

VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL")


@pytest.fixture
def lake(port: str, s3_rights: None, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket with a file, which nothing in the environment leads to."""
    found = Bucket(port)
    content = io.BytesIO()
    pq.write_table(pa.table({"email": ["a", "b"], "n": [1, 2]}), content)
    found.put("lake/x.parquet", body=content.getvalue())
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return found


def forms(port: str) -> dict[str, dict[str, Any]]:
    endpoint = f"http://127.0.0.1:{port}"
    rights = ("testing", "testing", "us-east-1")
    return {
        "polars": {
            "aws_endpoint_url": endpoint,
            "aws_access_key_id": rights[0],
            "aws_secret_access_key": rights[1],
            "aws_region": rights[2],
        },
        "deltalake": {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": rights[0],
            "AWS_SECRET_ACCESS_KEY": rights[1],
            "AWS_REGION": rights[2],
            "AWS_ALLOW_HTTP": "true",
        },
        "fsspec": {
            "key": rights[0],
            "secret": rights[1],
            "client_kwargs": {"endpoint_url": endpoint, "region_name": rights[2]},
        },
        "pyiceberg": {
            "s3.endpoint": endpoint,
            "s3.access-key-id": rights[0],
            "s3.secret-access-key": rights[1],
            "s3.region": rights[2],
        },
    }


@pytest.mark.parametrize("form", ["polars", "deltalake", "fsspec", "pyiceberg"])
def test_rows_are_read_by_the_options_alone(lake: Bucket, port: str, form: str) -> None:
    options = forms(port)[form]
    path = f"s3://{lake.name}/lake"
    assert sb.read_table(path, "n = 2", storage_options=options)["email"].to_pylist() == ["b"]
    stream = sb.read_batches(path, storage_options=options)
    assert sum(batch.num_rows for batch in stream) == 2


def test_every_verb_takes_them(lake: Bucket, port: str) -> None:
    options = forms(port)["polars"]
    path = f"s3://{lake.name}/lake"
    with sb.open_table(path, storage_options=options) as table:
        assert table.count("email = 'a'") == 1
    done = sb.add_bloom_filters([path], columns="email", storage_options=options)
    assert [file.status for file in done.files] == ["added"]
    found = sb.probe(path, "email", ["a", "z"], storage_options=options)
    assert [str(it) for it in found.values.values()] == ["maybe", "absent"]
    (file,) = sb.inspect(iter([path]), storage_options=options).files
    assert file.rows == 2
    assert sb.audit(path, policy=sb.KeyPolicy(), storage_options=options).files == 1
    answer = sb.sql(f"SELECT max(n) AS n FROM '{path}'", storage_options=options)
    assert answer.to_pylist() == [{"n": 2}]
    assert sb.advise(path, storage_options=options).to_dict()


def test_what_is_not_taken_says_what_is(lake: Bucket) -> None:
    with pytest.raises(sb.PolicyError, match="storage_options has account_key, which") as caught:
        sb.read_table("s3://b/x", storage_options={"account_key": "secret"})
    assert "AZURE_STORAGE_KEY" in str(caught.value.hint)
    assert "secret" not in str(caught.value)
    path = "abfs://c@account.dfs.core.windows.net/x"
    with pytest.raises(sb.PolicyError, match="storage_options are for S3 alone"):
        sb.inspect(path, storage_options={"aws_region": "eu-west-1"})


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("aws_access_key_id", "aws_secret_access_key"),
        ("aws_secret_access_key", "aws_access_key_id"),
    ],
)
def test_half_of_a_pair_of_keys_names_the_other(given: str, missing: str) -> None:
    with pytest.raises(sb.PolicyError, match="one key of a pair") as caught:
        sb.read_table("s3://lake/x", storage_options={given: "hidden"})
    assert missing in str(caught.value.hint)
    assert "hidden" not in f"{caught.value}{caught.value.hint}"


def test_a_right_lasts_as_long_as_its_block() -> None:
    options = {"aws_endpoint_url": "http://127.0.0.1:1"}
    assert storage_grant("local/x", options) is None
    with granted("s3://one/x", options):
        pass
    grant = storage_grant("s3://one/x", {"aws_endpoint_url": "http://127.0.0.1:2"})
    assert grant is not None
    assert grant.settings.endpoint == "http://127.0.0.1:2"

    @with_storage_options
    def count(paths: Any, *, storage_options: Any = None) -> int:
        return len(list(paths))

    assert count(iter(["s3://two/a", "s3://two/b"]), storage_options=options) == 2


def public_functions() -> list[Any]:
    """All public functions that take paths of tables, those of Hudi and Paimon too."""
    found = []
    for module in (sb, sb.hudi, sb.paimon):
        for name in module.__all__:
            function = getattr(module, name)
            if (
                inspect.isfunction(function)
                and PATHS & inspect.signature(function).parameters.keys()
            ):
                found.append(pytest.param(function, id=f"{module.__name__}.{name}"))
    return found


PATHS = {"paths", "path", "files", "data_file", "query"}


@pytest.mark.parametrize("function", public_functions())
def test_all_that_takes_paths_takes_them(function: Any) -> None:
    assert "storage_options" in inspect.signature(function).parameters


def test_hudi_and_paimon_use_them(lake: Bucket, port: str) -> None:
    options = {"storage_options": forms(port)["polars"]}
    path = f"s3://{lake.name}/lake/x.parquet"
    done = sb.hudi.add_record_key_filter(path, column="email", **options)
    assert not done.failed
    assert sb.hudi.read_record_key_filter(path, **options).column == "email"
    assert sb.hudi.lookup(path, "a", column="email", **options).found == {"a": (path,)}
    assert not sb.paimon.build_indexes(path, "email", **options).failed
    assert sb.paimon.build_index(path, "n", **options).error is None
    assert len(sb.paimon.show(path, **options).to_dict()["indexes"]) == 1
    (verdict,) = sb.paimon.probe(path, "email = 'zz'", **options).files
    assert str(verdict.verdict) == "absent"


def test_the_command_line_takes_them(lake: Bucket, port: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("testing\n")
    given = {**forms(port)["polars"], "aws_secret_access_key": f"@{secret}"}
    options = [f"--storage-option={name}={value}" for name, value in given.items()]
    path = f"s3://{lake.name}/lake"
    content = lake.objects()["lake/x.parquet"]
    for number in range(40):
        lake.put(f"lake/{number}.parquet", body=content)
    done = run("add", path, "--column", "email", "--json", *options)
    assert done.returncode == 0, done.stderr
    assert {file["status"] for file in json.loads(done.stdout)["files"]} == {"added"}
    done = run("sql", f"SELECT count(*) AS n FROM '{path}' WHERE email = 'a'", "--json", *options)
    assert json.loads(done.stdout)["data"] == [{"n": 41}], done
    done = run("probe", path, "email", "zz", *options)
    assert done.returncode == 1, done
    # The environment has no rights, and nothing that may be a secret is quoted.
    for wrong in ("hunter2", "account_key=hunter2"):
        done = run("inspect", path, "--storage-option", wrong)
        assert done.returncode == 2
        assert "hunter2" not in done.stdout + done.stderr
