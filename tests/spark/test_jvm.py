"""The jar of the KMS clients is that of its sources; a user's class is compiled once and cached."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

import pytest

from secure_bloom.errors import SecureBloomError, SparkUnavailableError
from secure_bloom.spark import jvm
from secure_bloom.spark.kms import JVM_CLIENTS
from secure_bloom.spark.session import session_config
from testing.project import ROOT
from testing.spark import kms_jar
from testing.spark.cluster import POLICY
from tests.spark.versions import since_4_0

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_installed")]

#: The version of class files of Java 8.
JAVA_8 = 52
GREETING = b"package demo; public class Greeting { public int length() { return %d; } }"


def write_java(folder: Path, banner: str) -> Path:
    """A stand-in for Java in ``folder/bin`` that only tells a version."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    command.chmod(0o755)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "secure-bloom"


@pytest.fixture(scope="module")
def compiled(spark_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first jar, of which caches get copies: to compile one takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("compiled")))
        return jvm.compile_jar("Greeting", GREETING % 1)


@pytest.fixture
def cached(compiled: Path, cache: Path) -> Path:
    """The first jar in the cache of a test."""
    cache.mkdir(parents=True, mode=0o700)
    return Path(shutil.copy(compiled, cache))


@pytest.mark.parametrize("client", JVM_CLIENTS)
def test_a_kms_jar_holds_the_class_that_sessions_name(client: str) -> None:
    name = JVM_CLIENTS[client].name
    with zipfile.ZipFile(jvm.kms_jar()) as archive:
        assert f"secure_bloom/spark/{name}.class" in archive.namelist()


def test_the_jar_is_what_its_sources_and_the_compiler_make() -> None:
    """Else it was not built after a change: make jar."""
    kept, built = jvm.kms_jar().read_bytes(), kms_jar.built()
    if kms_jar.created_by(kept) == kms_jar.compiler():
        assert kept == built
    # Another Spark's compiler may write other bytes, of the same classes.
    assert kms_jar.classes_of(kept).keys() == kms_jar.classes_of(built).keys()


def test_a_session_compiles_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(write_java(tmp_path, 'openjdk version "21.0.2"')))
    assert session_config(POLICY)["spark.jars"] == str(jvm.kms_jar())
    assert not cache.exists()


def test_the_jar_of_a_package_in_a_zip_is_copied_out(tmp_path: Path, cache: Path) -> None:
    with zipfile.ZipFile(tmp_path / "secure_bloom.zip", "w") as archive:
        for path in (ROOT / "secure_bloom").rglob("*"):
            if path.suffix in (".py", ".jar"):
                archive.write(path, path.relative_to(ROOT))
    said = "from secure_bloom.spark.jvm import kms_jar; print(kms_jar())"
    done = subprocess.run(
        [sys.executable, "-c", f"{said}; print(kms_jar())"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "secure_bloom.zip")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    jar, again = done.stdout.split()
    assert (jar, Path(jar).parent) == (again, cache)
    assert Path(jar).read_bytes() == jvm.kms_jar().read_bytes()
    assert [it.name for it in cache.iterdir()] == [Path(jar).name]


def test_the_classes_have_the_version_of_the_oldest_java_of_any_spark() -> None:
    with zipfile.ZipFile(jvm.kms_jar()) as archive:
        for name in archive.namelist()[1:]:
            magic, _, version = struct.unpack(">IHH", archive.read(name)[:8])
            assert (magic, version <= JAVA_8) == (0xCAFEBABE, True)


@pytest.mark.slow
def test_the_classes_call_what_the_oldest_java_of_any_spark_has(tmp_path: Path) -> None:
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("needs a JDK: javac knows what Java 8 has")
    folder = resources.files("secure_bloom.spark")
    sources = [str(folder.joinpath(f"{client.name}.java")) for client in JVM_CLIENTS.values()]
    jars = os.pathsep.join(map(str, jvm.spark_jars()))
    command = [javac, "--release", "8", "-nowarn", "-Xmaxerrs", "1000", "-cp", jars]
    command += ["-d", str(tmp_path), *sources]
    done = subprocess.run(command, capture_output=True, text=True)
    if "release version 8 not supported" in done.stderr:
        pytest.skip("this JDK no longer knows Java 8")
    # Java 8 does not read the classes of a Spark that needs Java 17.
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    assert all("wrong version" in line or "cannot access" in line for line in errors)


def test_the_second_call_compiles_nothing(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(compiled.parents[1]))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert jvm.compile_jar("Greeting", GREETING % 1) == compiled
    assert list(compiled.parent.iterdir()) == [compiled]


def test_another_source_gives_another_jar(cached: Path) -> None:
    assert jvm.compile_jar("Greeting", GREETING % 1) == cached
    assert jvm.compile_jar("Greeting", GREETING % 2) != cached


@pytest.mark.slow
def test_another_spark_gives_another_jar(
    cached: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "spark" / "jars"
    own.mkdir(parents=True)
    for path in jvm.spark_jars():
        (own / path.name.replace("spark-core", "our-spark-core")).symlink_to(path)
    monkeypatch.setenv("SPARK_HOME", str(own.parent))
    assert jvm.compile_jar("Greeting", GREETING % 1) != cached


def test_a_cache_that_cannot_be_made_is_replaced_for_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    jar = jvm.compile_jar("Greeting", GREETING % 1)
    assert zipfile.is_zipfile(jar)
    assert jar.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("which", ["cache", "folder of the cache", "jar"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_jar_that_others_can_replace_is_not_run(cached: Path, which: str) -> None:
    cache = cached.parent
    cached.write_bytes(b"not ours")
    others = {"cache": cache, "folder of the cache": cache.parent, "jar": cached}[which]
    os.chown(others, 1234, 1234)
    taken = jvm.compile_jar("Greeting", GREETING % 1)
    assert zipfile.is_zipfile(taken)
    assert taken.stat().st_uid == 0
    assert taken.parent.stat().st_mode & 0o022 == 0
    if which != "jar":
        assert taken.parent != cache


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_cache_that_others_may_write_is_not_used(cache: Path, mode: int) -> None:
    cache.mkdir(parents=True)
    cache.chmod(mode)
    assert jvm.compile_jar("Greeting", GREETING % 1).parent != cache


def test_without_any_safe_folder_nothing_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jvm._temporary_folder.cache_clear()
    with pytest.raises(SecureBloomError, match="have no safe place") as caught:
        jvm.compile_jar("Greeting", GREETING % 1)
    assert str(tmp_path) in str(caught.value)
    assert "TMPDIR" in str(caught.value.hint)


def test_a_compile_error_names_class_and_line(cache: Path) -> None:
    with pytest.raises(SecureBloomError, match=r"(?s)Greeting\.java does not compile:.*Line 1"):
        jvm.compile_jar("Greeting", b"public class Greeting { int length() { return; } }")
    assert list(cache.iterdir()) == []


class TestJava:
    def test_java_home_goes_before_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ours = write_java(tmp_path / "ours", 'openjdk version "21.0.2" 2024-01-16')
        path = write_java(tmp_path / "path", 'openjdk version "17" 2021-09-14')
        monkeypatch.setenv("PATH", str(path / "bin"), prepend=os.pathsep)
        monkeypatch.setenv("JAVA_HOME", str(ours))
        assert jvm.java() == ours / "bin" / "java"
        monkeypatch.delenv("JAVA_HOME")
        assert jvm.java() == path / "bin" / "java"

    @since_4_0
    @pytest.mark.parametrize(
        ("banner", "complaint"),
        [
            ('java version "1.8.0_402"', "is Java 8, Spark needs 17"),
            ('openjdk version "11.0.22" 2024-01-16', "is Java 11, Spark needs 17"),
            ("The operation could not be completed.", "names no version"),
        ],
    )
    def test_an_old_java_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str, complaint: str
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(write_java(tmp_path, banner)))
        with pytest.raises(SparkUnavailableError, match=complaint):
            jvm.java()

    def test_the_java_of_spark_3_5_may_be_8(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spark = tmp_path / "spark" / "jars"
        spark.mkdir(parents=True)
        (spark / "spark-core_2.12-3.5.9.jar").touch()
        monkeypatch.setenv("SPARK_HOME", str(spark.parent))
        home = write_java(tmp_path / "java", "nothing")
        (home / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="1.8.0_402"\n')
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert jvm.java() == home / "bin" / "java"
        (home / "release").write_text('JAVA_VERSION="1.7.0_80"\n')
        with pytest.raises(SparkUnavailableError, match="is Java 7, Spark needs 8"):
            jvm.java()

    def test_a_session_is_not_configured_for_a_java_that_is_too_old(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where the classes are compiled already: the JVM's own error names class files."""
        monkeypatch.setenv("JAVA_HOME", str(write_java(tmp_path, 'java version "1.6.0_45"')))
        with pytest.raises(SparkUnavailableError, match="is Java 6, Spark needs"):
            session_config(POLICY)

    def test_a_missing_java_is_an_error_that_says_what_to_install(
        self, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(SparkUnavailableError, match="Java was not found on PATH") as caught:
            session_config(POLICY)
        for remedy in ("openjdk-17-jre-headless", "brew install openjdk@17", "JAVA_HOME"):
            assert remedy in str(caught.value.hint)

    def test_a_spark_home_without_spark_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SPARK_HOME", str(tmp_path))
        with pytest.raises(SparkUnavailableError, match="holds no Spark"):
            session_config(POLICY)
