"""A session of the demo that does not start says where Spark's own words are; nothing is lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.spark.test_demo import DEMO

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_installed")]


def test_a_spark_that_does_not_start_is_explained(tmp_path: Path) -> None:
    """By a Java that knows its version and nothing else."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    version = '-version) echo "openjdk version \\"17\\"" >&2 ;;'
    java.write_text(f'#!/bin/sh\ncase "$1" in {version} *) echo "no room" >&2; exit 1 ;; esac\n')
    java.chmod(0o755)
    done = subprocess.run(
        [*DEMO, str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": str(java.parents[1])},
    )
    assert done.returncode == 2
    log = tmp_path / "demo" / "spark.log"
    assert done.stderr.splitlines() == [
        "secure-bloom: error: Spark did not start",
        f"secure-bloom: hint: {log} says why",
    ]
    assert "no room" in log.read_text()
