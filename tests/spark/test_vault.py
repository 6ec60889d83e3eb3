"""Spark and all of this package on one policy whose keys are in OpenBao."""

from __future__ import annotations

import json
import pickle
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.spark import add_bloom_filters, audit, register, session_config
from testing.command_line import run
from testing.http_servers import http_server
from testing.openbao import OpenBao
from testing.spark.cluster import VAULT_KMS, Cluster, session_with
from testing.tables import customers
from tests.spark.conftest import JVM_ENVIRONMENT
from tests.spark.typed_tables import data_files
from tests.spark.versions import since_4_0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 600
POLICY = """
[kms]
client = "vault"
address = "{address}"
token_file = "token"
{more}
[footer]
key = "lake_footer"
[columns.email]
key = "lake_pii"
bloom = true
"""


@pytest.fixture(scope="module")
def token(openbao: OpenBao) -> str:
    """That of a writer, as docs/keys.md has it."""
    rights = {}
    for name in ("lake_footer", "lake_pii"):
        openbao.make_key(name)
        rights |= {f"keys/{name}": "read"}
        rights |= {f"{verb}/{name}": "update" for verb in ("encrypt", "decrypt")}
    return openbao.token(openbao.allow("lake-writer", rights))


@pytest.fixture
def policy_file(openbao: OpenBao, token: str, tmp_path: Path) -> Path:
    return write_policy(tmp_path, openbao.address, token)


def write_policy(folder: Path, address: str, token: str, more: str = "") -> Path:
    (folder / "token").write_text(token + "\n")
    (folder / "token").chmod(0o600)
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(address=address, more=more))
    return policy


def write_and_read(spark: SparkSession, table: str) -> dict[str, Any]:
    """Under the policy: parquet-java writes and reads."""
    rows = spark.range(ROWS).selectExpr("id", "concat('user', id, '@example.com') AS email")
    rows.repartition(2).write.parquet(table)
    found = spark.read.parquet(table)
    return {
        "read": found.count(),
        "email": [row.email for row in found.where("id = 7").collect()],
    }


def add_and_audit(spark: SparkSession, table: str, policy: str) -> dict[str, Any]:
    """The step, and the audit on the executors."""
    added = add_bloom_filters(spark, table, policy).collect()
    return {
        # Where a task runs twice, its copy finds the filter that the other one made, and keeps it.
        "added": sorted({f"{row.column}: {row.error}" for row in added}),
        "findings": [row.message for row in audit(spark, table, policy).collect()],
    }


def read_by_source(spark: SparkSession, table: str, policy: str) -> list[int]:
    """The data source."""
    register(spark)
    source = spark.read.format("secure_bloom").option("policy", policy)
    return [
        row.id
        for row in source.option("where", "email = 'user7@example.com'").load(table).collect()
    ]


#: What the three tell.
WRITTEN = {"read": ROWS, "email": ["user7@example.com"]}
ADDED = {"added": ["email: None"], "findings": []}


class Processes:
    """The command lines of all processes that were seen during the test, as `ps` shows them."""

    def __init__(self) -> None:
        self.lines: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Processes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.3):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.lines.add(path.read_bytes().decode(errors="replace").replace("\0", " "))
                except OSError:
                    continue


@since_4_0
@pytest.mark.usefixtures("cold_keys")
def test_one_policy_serves_the_session_and_everything_else(
    spark: SparkSession, token: str, policy_file: Path, tmp_path: Path
) -> None:
    table, config = tmp_path / "table", session_config(policy_file)
    session, given = session_with(spark, config), (str(table), str(policy_file))
    assert write_and_read(session, str(table)) == WRITTEN
    assert add_and_audit(session, *given) == ADDED
    assert read_by_source(session, *given) == [7]
    for path in data_files(table):
        assert path.read_bytes()[:4] == b"PARE"
    assert_the_command_line_works(table, policy_file)
    assert_pyarrow_opens(table, policy_file)
    shown = [json.dumps(config), pickle.dumps(KeyPolicy.load(policy_file))]
    assert_hidden(token, [*shown, *contents(table).values()])
    assert_hidden("vault:v1:", shown)
    assert all(b"vault:v1:" in path.read_bytes() for path in data_files(table))


@pytest.mark.slow
def test_one_policy_serves_a_cluster_and_everything_else(
    cluster: Cluster, openbao: OpenBao, token: str, policy_file: Path, tmp_path: Path
) -> None:
    table, config = tmp_path / "table", session_config(policy_file)
    with Processes() as processes:
        given = (str(table), str(policy_file))
        written = cluster.run(write_and_read, str(table), config=config)
        added = cluster.run(add_and_audit, *given, config=config)
        found = cluster.run(read_by_source, *given, config=config)
    assert (written, added, found) == (WRITTEN, ADDED, [7])
    for path in data_files(table):
        assert path.read_bytes()[:4] == b"PARE"
    assert_the_command_line_works(table, policy_file)
    assert_pyarrow_opens(table, policy_file)
    everything = [json.dumps(config), *processes.lines, pickle.dumps(KeyPolicy.load(policy_file))]
    assert any("CoarseGrained" in line for line in processes.lines)
    walked = {**contents(cluster.folder), **contents(table)}
    events = [walked[path] for path in walked if path.is_relative_to(cluster.events)]
    assert any(str(table).encode() in text for text in events)
    assert_hidden(token, [*everything, *walked.values()])
    # Parquet files hold wrapped keys, nothing else does.
    others = [text for path, text in walked.items() if path.suffix != ".parquet"]
    assert_hidden("vault:v1:", [*everything, *others])
    assert any(b"vault:v1:" in path.read_bytes() for path in data_files(table))


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file that is there; Spark's own temporary ones come and go meanwhile."""
    found = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):
            found[path] = path.read_bytes()
    return found


def assert_hidden(secret: str, shown: list[str | bytes]) -> None:
    for content in shown:
        found = content.encode() if isinstance(content, str) else content
        assert secret.encode() not in found


def assert_the_command_line_works(table: Path, policy: Path) -> None:
    with_policy = ("--policy", str(policy))
    for arguments, code, text in (
        (("probe", str(table), "email", "nobody@example.com"), 1, "absent"),
        (("read", str(table), "--where", "email = 'user7@example.com'"), 0, "user7@example.com"),
        (("audit", str(table)), 0, ""),
        (("inspect", str(table)), 0, "lake_pii"),
        (("add", str(table), "--replace-filters"), 0, "2 replaced"),
    ):
        found = run(*arguments, *with_policy)
        assert (found.returncode, text in found.stdout + found.stderr) == (code, True), found


def assert_pyarrow_opens(table: Path, policy: Path) -> None:
    kms = KeyPolicy.load(policy).kms_client()
    factory = pe.CryptoFactory(lambda _: sb.PyarrowKms(kms))
    properties = factory.file_decryption_properties(pe.KmsConnectionConfig())
    rows = [
        pq.ParquetFile(path, decryption_properties=properties).read() for path in data_files(table)
    ]
    assert sum(row.num_rows for row in rows) == ROWS


@pytest.mark.usefixtures("cold_keys")
class TestJvmClient:
    """What the JVM's client says; the session's own policy is another one."""

    def options(self, openbao: OpenBao, **words: object) -> dict[str, str]:
        given = {"address": openbao.address, "retry_seconds": 1, **words}
        return {
            "parquet.encryption.kms.client.class": f"secure_bloom.spark.{VAULT_KMS}",
            **{f"secure_bloom.vault.{word}": str(value) for word, value in given.items()},
        }

    def write(self, spark: SparkSession, folder: Path, key: str, **options: str) -> None:
        keys = {
            "parquet.encryption.footer.key": key,
            "parquet.encryption.column.keys": f"{key}:email",
        }
        rows = spark.range(10).selectExpr("id", "concat('user', id) AS email").coalesce(1)
        rows.write.options(**keys, **options).parquet(str(folder))

    def test_tls_namespace_and_approle(
        self, spark: SparkSession, openbao: OpenBao, tmp_path: Path
    ) -> None:
        openbao.ask("POST", "sys/namespaces/jvm", {})
        inside = {"X-Vault-Namespace": "jvm"}
        openbao.ask("POST", "sys/mounts/lake", {"type": "transit"}, **inside)
        openbao.ask("POST", "lake/keys/k", {}, **inside)
        openbao.ask("POST", "sys/auth/ours", {"type": "approle"}, **inside)
        rules = {"policy": 'path "lake/*" { capabilities = ["read", "update"] }'}
        openbao.ask("PUT", "sys/policies/acl/lake", rules, **inside)
        role = {"token_policies": ["lake"], "token_ttl": "1s"}
        openbao.ask("POST", "auth/ours/role/spark", role, **inside)
        at = "auth/ours/role/spark"
        role_id = openbao.ask("GET", f"{at}/role-id", **inside)["data"]["role_id"]
        secret_id = openbao.ask("POST", f"{at}/secret-id", {}, **inside)["data"]["secret_id"]
        (tmp_path / "role_id").write_text(role_id)
        (tmp_path / "secret_id").write_text(secret_id)
        options = self.options(
            openbao,
            address=openbao.tls_address,
            ca_file=openbao.ca_file,
            namespace="jvm",
            mount="lake",
            auth="approle",
            auth_mount="ours",
            role_id_file=tmp_path / "role_id",
            secret_id_file=tmp_path / "secret_id",
        )
        for number in range(3):
            self.write(spark, tmp_path / str(number), "k", **options)
            # Longer than a token lives: the next write logs in anew, in the same client.
            threading.Event().wait(0.8)
        assert spark.read.options(**options).parquet(str(tmp_path / "2")).count() == 10

    def test_secrets_of_the_environment(
        self, spark: SparkSession, openbao: OpenBao, token: str, tmp_path: Path
    ) -> None:
        openbao.ask("POST", "sys/auth/jvm", {"type": "approle"})
        openbao.ask("POST", "auth/jvm/role/spark", {"token_policies": ["lake-writer"]})
        role_id = {"role_id": JVM_ENVIRONMENT["VAULT_ROLE_ID"]}
        openbao.ask("POST", "auth/jvm/role/spark/role-id", role_id)
        secret_id = {"secret_id": JVM_ENVIRONMENT["BAO_SECRET_ID"]}
        openbao.ask("POST", "auth/jvm/role/spark/custom-secret-id", secret_id)
        options = self.options(openbao, auth="approle", auth_mount="jvm")
        self.write(spark, tmp_path / "t", "lake_pii", **options)
        assert spark.read.options(**options).parquet(str(tmp_path / "t")).count() == 10

    def test_files_of_pyarrow_through_the_same_engine(
        self, spark: SparkSession, openbao: OpenBao, token: str, tmp_path: Path
    ) -> None:
        policy = KeyPolicy.load(write_policy(tmp_path, openbao.address, token))
        kms = sb.PyarrowKms(policy.kms_client())
        keys = pe.CryptoFactory(lambda _: kms).file_encryption_properties(
            pe.KmsConnectionConfig(),
            pe.EncryptionConfiguration(
                footer_key="lake_footer", column_keys={"lake_pii": ["email"]}
            ),
        )
        folder = tmp_path / "table"
        folder.mkdir()
        pq.write_table(customers(50), folder / "0.parquet", encryption_properties=keys)
        options = self.options(openbao, token_file=tmp_path / "token")
        assert spark.read.options(**options).parquet(str(folder)).count() == 50

    @pytest.mark.parametrize(
        ("key", "words", "complaint"),
        [
            ("never-there", {}, "has no master key never-there at transit/"),
            ("../sys/seal", {}, "name cannot be one of"),
            ("signs-only", {}, "does not encrypt"),
            ("lake_pii", {"mount": "nowhere"}, "HTTP 403|HTTP 404"),
            ("lake_pii", {"token_file": "/none"}, "/none cannot be read on this machine"),
            ("lake_pii", {"address": "http://127.0.0.1:1"}, "is not available: no connection"),
            ("lake_pii", {"address": "http://vault.example.com"}, "without TLS"),
            ("lake_pii", {"address": "http://127.0.0.1.example.com"}, "without TLS"),
            (
                "lake_pii",
                {"auth": "approle", "auth_mount": "none", "token_file": ""},
                "refuses the login by approle: HTTP 40[34]",
            ),
            ("lake_pii", {"token_file": ""}, "no token for .* set VAULT_TOKEN or BAO_TOKEN"),
        ],
    )
    def test_a_refusal_says_what_failed(
        self,
        spark: SparkSession,
        openbao: OpenBao,
        token: str,
        tmp_path: Path,
        key: str,
        words: dict[str, str],
        complaint: str,
    ) -> None:
        openbao.make_key("signs-only", type="ed25519")
        (tmp_path / "token").write_text(openbao.root if key != "lake_pii" else token)
        options = self.options(openbao, **{"token_file": tmp_path / "token", **words})
        with pytest.raises(Exception, match=complaint) as caught:
            self.write(spark, tmp_path / "t", key, **options)
        assert token not in str(caught.value)
        assert "never-there" not in openbao.key_names()

    def test_a_certificate_that_does_not_fit(
        self, spark: SparkSession, openbao: OpenBao, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text(openbao.root)
        options = self.options(openbao, address=openbao.tls_address, token_file=tmp_path / "token")
        with pytest.raises(Exception, match=r"TLS of https://127\.0\.0\.1.* does not fit"):
            self.write(spark, tmp_path / "t", "lake_pii", **options)

    def test_throttling_is_waited_out(
        self, spark: SparkSession, openbao: OpenBao, token: str, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text(token)
        asked: list[str] = []

        def answer(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
            asked.append(path)
            if len(asked) % 2:
                return 429, {"Retry-After": "0"}, b'{"errors": ["too many"]}'
            found = openbao.ask(
                method, path.removeprefix("/v1/"), json.loads(body) if body else None
            )
            return 200, {}, json.dumps(found).encode()

        with http_server(answer) as url:
            options = self.options(
                openbao, address=url, token_file=tmp_path / "token", retry_seconds=20
            )
            self.write(spark, tmp_path / "t", "lake_pii", **options)
        assert len(asked) >= 4


def test_a_kms_that_is_down_is_no_finding_and_no_crash(
    spark: SparkSession, openbao: OpenBao, token: str, tmp_path: Path
) -> None:
    policy = write_policy(tmp_path, openbao.address, token)
    kms = sb.PyarrowKms(KeyPolicy.load(policy).kms_client())
    keys = pe.CryptoFactory(lambda _: kms).file_encryption_properties(
        pe.KmsConnectionConfig(),
        pe.EncryptionConfiguration(footer_key="lake_footer", column_keys={"lake_pii": ["email"]}),
    )
    pq.write_table(customers(50), tmp_path / "0.parquet", encryption_properties=keys)
    write_policy(tmp_path, "http://127.0.0.1:1", token, "retry_seconds = 0")
    with pytest.raises(sb.KmsUnavailableError, match="no connection: Connection refused"):
        audit(spark, tmp_path / "0.parquet", policy)
    report = add_bloom_filters(spark, tmp_path / "0.parquet", policy, on_error="report")
    [row] = report.collect()
    assert row.status == "failed"
    assert "no connection: Connection refused" in row.error
    before = (tmp_path / "0.parquet").read_bytes()
    with pytest.raises(sb.KmsUnavailableError, match="executors do not reach the KMS") as caught:
        add_bloom_filters(spark, tmp_path / "0.parquet", policy)
    assert "no connection: Connection refused" in str(caught.value)
    assert (tmp_path / "0.parquet").read_bytes() == before
