"""The Java that Spark would start is looked at before: what is wrong with it is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlanon.engines.spark.errors import require_java
from sqlanon.errors import AccessError

SAYS = """#!/bin/sh
echo '{said}' >&2
exit {code}
"""


def make_java(home: Path, said: str, code: int = 0) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(SAYS.format(said=said, code=code))
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("said", "code", "problem"),
    [
        ('openjdk version "1.8.0_402"', 0, "is Java 8"),
        ('openjdk version "11.0.2" 2019-01-15', 0, "is Java 11"),
        ("Error: A JNI error has occurred", 1, "does not start"),
        ("nothing of a version", 0, "does not start"),
    ],
)
def test_a_java_that_spark_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, problem: str
) -> None:
    make_java(tmp_path, said, code)
    for variables in ({"JAVA_HOME": str(tmp_path)}, {"JAVA_HOME": "", "PATH": f"{tmp_path}/bin:/bin:/usr/bin"}):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            with pytest.raises(AccessError, match=f"needs Java 17 or 21, and {tmp_path}/bin/java {problem}.*JAVA_HOME"):
                require_java()


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(AccessError, match="none on the PATH"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(AccessError, match=rf"none at {tmp_path}/bin/java \(JAVA_HOME\)"):
        require_java()


def test_a_java_that_it_can_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    make_java(tmp_path, 'openjdk version "17.0.17" 2025-10-21')
    require_java()
