"""The Java that a session of Spark would start, looked at before: Spark's own scripts say little of what is wrong.

And the options that it starts with, by which neither it nor executors of this machine write a log.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from sqlanon.errors import AccessError

if TYPE_CHECKING:
    from pyspark import SparkContext

LEAST = 17
REMEDY = "install it (Debian: openjdk-17-jre-headless), or set JAVA_HOME."
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # 1.8 is 8
_SECONDS = 60.0
_LOG = Path(__file__).with_name("log4j2.properties")
WITHOUT_LOGS = (
    f"-Dlog4j2.configurationFile=file:{_LOG} -Dderby.stream.error.file={os.devnull}"  # not into any directory
)


def require_java() -> None:
    """Raise AccessError, with the remedy, where there is no Java, or it does not start, or is too old."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or shutil.which(program) is None:
        place = "on the PATH, and JAVA_HOME is not set" if program is None else f"at {program} (JAVA_HOME)"
        raise AccessError(f"Spark needs Java 17 or 21, and there is none {place}: {REMEDY}")
    version = _version_of(program)
    if version is None:
        raise AccessError(f"Spark needs Java 17 or 21, and {program} does not start: {REMEDY}")
    if version < LEAST:
        raise AccessError(f"Spark needs Java 17 or 21, and {program} is Java {version}: {REMEDY}")


def _version_of(program: str) -> int | None:
    """Ask a Java for its version; None where it gives no answer."""
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(answer.stderr + answer.stdout)
    return None if answer.returncode or version is None else int(version[1])


def directory_of_executors(context: SparkContext) -> Path:
    """Name the directory in which Spark keeps what executors of this machine write to their standard streams.

    It is beside Spark's own files, and no setting moves it.
    """
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home()) / "work" / str(context.applicationId)
