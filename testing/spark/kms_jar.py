"""Build the jar of the KMS clients from the Java sources: `make jar`, or in memory for a test.

The same sources and the same Janino give the same bytes: entries have no times, and are stored as
they are, because each zlib packs in its own way.
"""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from pathlib import Path

from secure_bloom.spark import jvm

SOURCES = Path(jvm.__file__).parent
_MANIFEST = "META-INF/MANIFEST.MF"


def compiler() -> str:
    """The version of the Janino that Spark has."""
    (name,) = [it.name for it in jvm.spark_jars() if re.match(r"janino-\d", it.name)]
    return name.removesuffix(".jar")


def built() -> bytes:
    """The jar as its sources and this Janino make it."""
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as work, zipfile.ZipFile(content, "w") as archive:
        for source in sorted(SOURCES.glob("*.java")):
            classes = jvm.compile_class(
                source.stem, source.read_bytes(), jvm.spark_jars(), Path(work)
            )
        manifest = f"Manifest-Version: 1.0\r\nCreated-By: {compiler()}\r\n\r\n"
        archive.writestr(zipfile.ZipInfo(_MANIFEST), manifest)
        for path in sorted(classes.rglob("*.class")):
            entry = zipfile.ZipInfo(path.relative_to(classes).as_posix())
            archive.writestr(entry, path.read_bytes())
    return content.getvalue()


def classes_of(jar: bytes) -> dict[str, bytes]:
    """The class files in a jar, by their names."""
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        return {it: archive.read(it) for it in archive.namelist() if it != _MANIFEST}


def created_by(jar: bytes) -> str:
    """The compiler of a jar."""
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        manifest = archive.read(_MANIFEST).decode()
    return manifest.partition("Created-By: ")[2].splitlines()[0]


if __name__ == "__main__":
    (SOURCES / jvm.KMS_JAR).write_bytes(built())
