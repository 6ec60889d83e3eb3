"""The jar with the KMS clients for Spark's JVM, and the compiler for a user's own class.

The jar is a file of this package, so a session compiles nothing.  Spark contains the Janino
compiler, with which a Java runtime is enough to compile another class.  A compiled jar is kept in
the user's cache folder.  Its name depends on the source and on Spark's own jars, so another source
or another Spark gets another jar, and the same ones are compiled once.

The JVM runs the code in the cache folder, with the keys of the session.  So a folder or a file is
only used if no other user than root can have written it, or can replace it:

- folder, and each folder above it: owned by the user or root; not writable by a group or by others,
  unless it is sticky, as /tmp is, where nobody can exchange what others own.
- file: a regular file of the user or root, which neither a group nor others may write.

An ACL that lets somebody write is visible as the group's permission.  All checks use descriptors
that follow no link, each opened below the one that was checked before.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

from secure_bloom.errors import SecureBloomError, SparkUnavailableError, install_hint
from secure_bloom.spark.compat import oldest_java

#: The jar, which `make jar` builds from the Java sources beside it.
KMS_JAR = "secure-bloom-kms.jar"
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
_INSTALL_JAVA = (
    "install Java 17 or later (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17), or set JAVA_HOME to the folder of one"
)


def kms_jar() -> Path:
    """Return the jar with this package's KMS clients for parquet-java, for `spark.jars`.

    The keyring, Vault, OpenBao and AWS are served, on Java 8 or later and Spark 3.5 or later.  The
    jar is a file beside this module.  If the package is in a zip, it is copied out of it.
    """
    packed = resources.files("secure_bloom.spark").joinpath(KMS_JAR)
    if isinstance(packed, Path):
        return packed
    content = packed.read_bytes()
    name = f"{hashlib.sha256(content).hexdigest()[:16]}-{KMS_JAR}"
    jar = _safe_folder() / name
    if not is_own_file(jar):
        with tempfile.TemporaryDirectory(dir=jar.parent, prefix="copy-") as work:
            copy = Path(work, name)
            copy.write_bytes(content)
            copy.chmod(0o644)
            copy.replace(jar)
    return jar


def compile_jar(class_name: str, source: bytes) -> Path:
    """Return the jar of one Java source with the public class ``class_name``, cached or new.

    The source may use every class on Spark's class path, but only the Java that Janino supports:
    raw types, no lambdas, no diamonds.
    """
    jars = spark_jars()
    name = f"{class_name}-{_fingerprint(source, jars)}.jar"
    jar = _safe_folder() / name
    if not is_own_file(jar):
        _build(class_name, source, jars, jar)
    return jar


def spark_jars() -> list[Path]:
    """Return the jars of the Spark that PySpark will start: in `$SPARK_HOME/jars` or its own."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkUnavailableError("PySpark is not installed", hint=install_hint("spark"))
    home = Path(os.environ.get("SPARK_HOME") or Path(spec.origin).resolve().parent)
    jars = sorted((home / "jars").glob("*.jar"))
    if not jars:
        raise SparkUnavailableError(
            f"{home} holds no Spark: no jars/*.jar",
            hint="unset SPARK_HOME, or set it to the folder of a Spark distribution",
        )
    return jars


def java() -> Path:
    """Return the Java that Spark will run on, found as Spark does it.

    This is `$JAVA_HOME/bin/java`, else the one on PATH.
    """
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if command is None:
        where = f"in JAVA_HOME, {home}" if home else "on PATH, and JAVA_HOME is not set"
        raise SparkUnavailableError(f"Java was not found {where}", hint=_INSTALL_JAVA)
    core = next((jar.name for jar in spark_jars() if jar.name.startswith("spark-core_")), "")
    _require_recent(command, oldest_java(core))
    return Path(command)


def _require_recent(command: str, oldest: int) -> None:
    """Raise SparkUnavailableError for an older Java, as its `-version` says.

    A version is a text such as `version "17.0.15"`, or `"1.8.0_402"` for 8.
    """
    answer = _release(command) or _answer(command)
    found = re.search(r'(?:version |JAVA_VERSION=)"(?:1\.)?(\d+)', answer)
    if found is None:
        raise SparkUnavailableError(f"{command} -version names no version", hint=_INSTALL_JAVA)
    if int(found[1]) < oldest:
        raise SparkUnavailableError(
            f"{command} is Java {found[1]}, Spark needs {oldest} or later", hint=_INSTALL_JAVA
        )


def _release(command: str) -> str:
    """Return the text of the file `release` of a Java, or "" without one.

    Reading it is faster than starting the Java.
    """
    try:
        return Path(command).resolve().parents[1].joinpath("release").read_text()
    except OSError:
        return ""


def _answer(command: str) -> str:
    # The macOS stand-in for a missing Java prints a text with no version and fails.
    return subprocess.run(  # noqa: S603
        [command, "-version"], capture_output=True, text=True, check=False
    ).stderr


def _fingerprint(source: bytes, jars: list[Path]) -> str:
    names = "\n".join(jar.name for jar in jars).encode()
    return hashlib.sha256(names + b"\0" + source).hexdigest()[:16]


def _safe_folder() -> Path:
    # Spark runs what it finds there, in a process that has the keys.
    return user_cache() or _temporary_folder()


@functools.cache
def _temporary_folder() -> Path:
    """Return a folder of this process alone, so that nobody else can put a jar there for Spark."""
    folder = Path(tempfile.mkdtemp(prefix="secure-bloom-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if not is_own_folder(folder):
        raise SecureBloomError(
            f"compiled classes have no safe place: other users can exchange what is in "
            f"{folder.parent}, and the user's cache cannot be used",
            hint="set XDG_CACHE_HOME or TMPDIR to a folder that only you can write: chmod go-w",
        )
    return folder


def _build(class_name: str, source: bytes, jars: list[Path], jar: Path) -> None:
    """Compile and zip beside ``jar``, then rename: others see the whole jar or none."""
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix="build-") as work:
        classes = compile_class(class_name, source, jars, Path(work))
        _zip(classes, Path(work, jar.name)).replace(jar)


def compile_class(class_name: str, source: bytes, jars: list[Path], work: Path) -> Path:
    """Compile into the folder ``classes`` below ``work``. Return that folder.

    Janino writes classes for Java 6. Raises SecureBloomError if the source does not compile.
    """
    classes, java_file = work / "classes", work / f"{class_name}.java"
    classes.mkdir(exist_ok=True)
    java_file.write_bytes(source)
    class_path = os.pathsep.join(map(str, jars))
    command = [str(java()), "-cp", class_path, _COMPILER, "-d", str(classes)]
    done = subprocess.run(  # noqa: S603
        [*command, "-classpath", class_path, str(java_file)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SecureBloomError(f"{class_name}.java does not compile: {done.stderr.strip()}")
    return classes


def _zip(classes: Path, jar: Path) -> Path:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
    jar.chmod(0o644)  # whatever the umask is: a jar that others may write is not taken again
    return jar


#: Linux opens what it may not read, to look at it; elsewhere what cannot be read does not count.
#: A system without these flags (Windows) opens no folder, so nothing counts there.
_LOOK = (
    getattr(os, "O_PATH", getattr(os, "O_NONBLOCK", 0))
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def user_cache() -> Path | None:
    """Return `$XDG_CACHE_HOME/secure-bloom`, else `~/.cache/secure-bloom`, created if necessary.

    Return None if it cannot be created or written, or if others can put files into it.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    folder = Path(home, "secure-bloom")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        folder = folder.resolve()
    except OSError:
        return None
    return folder if is_own_folder(folder) and os.access(folder, os.W_OK | os.X_OK) else None


def is_own_folder(folder: Path) -> bool:
    """Return whether only the user or root can put files into this folder, or replace it.

    ``folder`` is absolute. A link anywhere in the path makes the result False.
    """
    with ExitStack() as opened:
        try:
            *parents, status = _statuses(opened, folder, _DIRECTORY)
        except (OSError, NotImplementedError):
            return False
    return _is_written_by_its_owner(status) and all(map(_keeps_its_names, parents))


def is_own_file(path: Path) -> bool:
    """Return whether only the user or root can have written or can replace this regular file."""
    with ExitStack() as opened:
        try:
            *parents, folder, status = _statuses(opened, path, 0)
        except (OSError, NotImplementedError):
            return False
    return (
        stat.S_ISREG(status.st_mode)
        and all(map(_is_written_by_its_owner, (status, folder)))
        and all(map(_keeps_its_names, parents))
    )


def _statuses(opened: ExitStack, path: Path, flags: int) -> Iterator[os.stat_result]:
    """Yield the status of each folder from the root on, and of what ``path`` names."""
    below: int | None = None
    parts = path.parts
    for number, part in enumerate(parts, start=1):
        kind = flags if number == len(parts) else _DIRECTORY
        below = os.open(part, _LOOK | kind, dir_fd=below)
        opened.callback(os.close, below)
        yield os.fstat(below)


def _is_written_by_its_owner(status: os.stat_result) -> bool:
    return _is_trusted(status) and not status.st_mode & _OTHERS_WRITE


def _keeps_its_names(status: os.stat_result) -> bool:
    """Return whether other users cannot replace files of the user or root in this folder."""
    shared = status.st_mode & _OTHERS_WRITE
    return _is_trusted(status) and not (shared and not status.st_mode & stat.S_ISVTX)


def _is_trusted(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())
