"""Errors of Spark as ours, and of its Java: what could quote a value of the data is dropped."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sqlanon.errors import AccessError, Cancelled, EngineError, PolicyError, SqlanonError

if TYPE_CHECKING:
    from pyspark import SparkContext

_OF_METASTORE = "_LEGACY_ERROR_TEMP_3065"  # what Hive's client fails at


# Conditions of Spark whose messages speak of names alone.
_OF_NAMES = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "UNRESOLVED_COLUMN", "INSUFFICIENT_PERMISSIONS")


_OF_NOTHING = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "CATALOG_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "NESTED_DATABASE_UNSUPPORTED_BY_V1_SESSION_CATALOG",
)


LEAST = 17


REMEDY = "install it (Debian: openjdk-17-jre-headless), or set JAVA_HOME."


_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # 1.8 is 8


_SECONDS = 60.0


_LOG = Path(__file__).with_name("log4j2.properties")


WITHOUT_LOGS = (
    f"-Dlog4j2.configurationFile=file:{_LOG} -Dderby.stream.error.file={os.devnull}"  # not into any directory
)


"""Conditions of names that stand for nothing; the last two are of catalogs that there are none of."""


_UNANSWERED = re.compile(r"An error occurred while calling \S+")  # all that py4j says where no answer came


_ENDED = re.compile(
    r"\bJob \d+ cancelled because SparkContext was shut down\b|\bCannot call methods on a stopped SparkContext\b"
)


_CANCELLED = re.compile(r"\[(?:SPARK_JOB_CANCELLED|OPERATION_CANCELED)\]|\bJob \d+ cancelled\b")


_DENIED = re.compile(r"\(Permission denied\)|\bAccess(?:Control|Denied)Exception\b|\bMkdirs failed to create\b")


_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def condition_of(error: BaseException) -> str:
    """Return the condition of an error of Spark, such as TABLE_OR_VIEW_NOT_FOUND; empty where it has none."""
    get_condition = getattr(error, "getCondition", None)
    return (_answer(get_condition) or "") if callable(get_condition) else ""


def _answer(question: Callable[[], object]) -> str | None:
    """Ask an error of Java's; None where nobody answers, as it asks the JVM in turn, which may have gone."""
    try:
        return str(question() or "")
    except Exception as lost:  # of py4j
        if not is_disconnected(lost):
            raise
        return None


def _status_of(error: BaseException) -> str:
    """Return what gRPC says of an answer of a server, such as UNAUTHENTICATED; empty for an error of anything else."""
    get_status = getattr(error, "getGrpcStatusCode", None)
    return str(get_status().name) if callable(get_status) else ""


def _parameter(error: BaseException, name: str) -> str:
    """Return a name that the message of an error speaks of; empty where it says none."""
    get_parameters = getattr(error, "getMessageParameters", None)
    return str(((get_parameters() if callable(get_parameters) else None) or {}).get(name, ""))


def names_nothing(error: SqlanonError) -> bool:
    """Tell whether a statement failed as there is no table, schema or catalog that it names."""
    return condition_of(error.__cause__ or error).startswith(_OF_NOTHING)


def is_disconnected(error: BaseException) -> bool:
    """Tell whether an error means that the JVM, or the server, answers no more."""
    kind = type(error).__name__
    if kind == "Py4JError":
        return _UNANSWERED.fullmatch(str(error)) is not None
    if isinstance(error, ConnectionError) or kind == "Py4JNetworkError" or _status_of(error) == "UNAVAILABLE":
        return True
    text = _answer(error.__str__)
    return text is None or _ENDED.search(text) is not None


def is_denied(error: BaseException) -> bool:
    """Tell whether an error means that Spark's user lacks a right on files, of which no name is passed on."""
    return _DENIED.search(str(error)) is not None


@contextlib.contextmanager
def unless_disconnected() -> Iterator[None]:
    """Pass over an error of what need not be ended any more, as the JVM or the server has gone."""
    try:
        yield
    except Exception as error:  # of py4j or grpc, which share no class
        if not is_disconnected(error):
            raise


def opening_error(error: BaseException, place: str) -> SqlanonError:
    """Explain, as an error, why there is no session at a place."""
    if condition_of(error) == "JAVA_GATEWAY_EXITED":
        return AccessError(f"Spark needs Java 17 or 21, and found none that starts: {REMEDY}")
    if is_disconnected(error):
        return AccessError("Spark has ended, or is not reached any more; start this program again.")
    kind = " ".join(filter(None, (type(error).__name__, condition_of(error) or _status_of(error))))
    return AccessError(f"No session with Spark at {place} ({kind}).")


def statement_error(error: BaseException, name: str) -> SqlanonError:
    """Explain, as an error, why the statement from template `name` failed."""
    if is_disconnected(error):
        return EngineError(f"{name}: the connection with Spark was lost; to run again is safe.")
    condition = condition_of(error)
    if "CANCEL" in condition or _CANCELLED.search(str(error)):  # not any text, which names and values may have
        return Cancelled("Interrupted.")
    if missing := _MISSING_MODULE.search(str(error)):
        return EngineError(
            f"{name}: executors of Spark lack the Python module {missing[1]}: install sqlanon[spark] in their Python,"
            " which PYSPARK_PYTHON names."
        )
    if is_denied(error):
        return AccessError(
            f"{name}: this user may not read or write the files of a table (permission denied); have the owner of its"
            " directory, or of the warehouse, give the right to them."
        )
    if condition == "COLUMN_ALREADY_EXISTS":
        return PolicyError(
            f"Two columns have the name {_parameter(error, 'columnName')}, but for case, by which Spark does not tell"
            " names apart: write the table or the files anew, and call one of them otherwise."
        )
    if condition.startswith(_OF_NAMES):
        return EngineError(f"{name}: {str(error).partition(chr(10))[0].strip()}")
    if condition == _OF_METASTORE:
        return AccessError(
            "Spark can't use its metastore: it is not reached, this user may not write where it or its warehouse is, or"
            " another process holds it, as Derby's lets in one."
        )
    kind = f"{type(error).__name__} {condition}".strip()
    return EngineError(f"{name}: Spark failed the statement ({kind}).")


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
