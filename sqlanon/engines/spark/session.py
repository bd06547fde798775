"""Sessions of Spark: this process has one Spark context, which ends with the last session that the program opened."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.private_files import make_private_directory, remove_dead_directories, remove_directory
from sqlanon.engines.session_limits import kilobytes
from sqlanon.engines.spark.dialect import SparkAddress
from sqlanon.engines.spark.errors import (
    WITHOUT_LOGS,
    directory_of_executors,
    opening_error,
    require_java,
    unless_disconnected,
)
from sqlanon.engines.urls import redacted
from sqlanon.engines.worker import StatementWorker
from sqlanon.errors import AccessError, PolicyError, SqlanonError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

MEANINGS = {
    "spark.sql.ansi.enabled": "true",  # overflow and bad casts are errors, not NULLs
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # 01 in the name of a directory stays a text
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",  # a time without a zone is read as one
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 says of no time whether it has a zone
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # one calendar for all days
    "spark.sql.parquet.writeLegacyFormat": "false",  # of decimals and lists
}


RETRIES = 5  # of a request, some 20 s in all: a run that a lost server ends, or Ctrl-C, does not wait for minutes


"""Settings by which statements, and the files that they read and write, mean the same whatever the user's own are."""


ADAPTIVE = "spark.sql.adaptive.enabled"


SHUFFLED_PARTS = "spark.sql.shuffle.partitions"


FEW_PARTS = 32  # of what is shuffled, where that does not grow with the rows


FILE_MASK = "spark.hadoop.fs.permissions.umask-mode"


_WAREHOUSE = "spark.sql.warehouse.dir"


_LOCAL_DIR, _LOCAL_DIRS = "spark.local.dir", "SPARK_LOCAL_DIRS"  # a setting, and the variable that goes before it


_ANSWER = 10.0  # seconds for a Connect server


_END = 30.0  # seconds for a JVM without a context


_OF_DRIVER, _OF_EXECUTORS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"


_STARTING = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    _OF_DRIVER: WITHOUT_LOGS,
    FILE_MASK: "077",  # what is written is its owner's alone, as raw values are in it
}


_CHOOSES_JAVA = {"PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR"}  # that runs already, or by a spark-env.sh


_HEAP = (1024, 4096)  # megabytes of a JVM on this machine, at least and at most, where nobody has set them


_HEAP_SHARE = 4  # of the memory that DuckDB would take here, which is four fifths of it


_lock = threading.Lock()


_open = 0


_owned: Any = None  # the session that started the context, where the program did


_latest: SparkAddress | None = None  # where the program started one last, whose JVM runs on


_spills: tuple[Path, ...] = ()  # what that one's shuffles, cached rows and work tables are in


_java_files: Path | None = None  # the temporary files of that JVM


_executors: Path | None = None  # what its executors write, where they are processes of this machine


_warehouse: tuple[str, str] = ("", "")  # of a context whose tables end with it: by its setting, and where it would be


def open_session(address: SparkAddress, timeout: float | None = None) -> SparkSession:
    """Open a session at a place; every one is to be given to `close_session` once.

    timeout: seconds for a Connect server to answer, ten at most.
    Raises AccessError, with the remedy, where pyspark or Java is missing or nobody answers.
    """
    global _open
    if importlib.util.find_spec("pyspark") is None:
        raise AccessError("Spark needs the package pyspark: pip install 'sqlanon[spark]'.")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # none is used
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the error says it
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True  # it quotes whole statements
    with _lock:
        try:
            session = _connect(address, timeout)
            for name, value in MEANINGS.items():
                session.conf.set(name, value)  # the first that a Connect server is asked, and may refuse
        except BaseException as error:
            _end_unused()
            if isinstance(error, SqlanonError) or not isinstance(error, Exception):
                raise
            raise opening_error(error, redacted(address.remote or address.master or "")) from None
        _open += 1
    return session


@contextlib.contextmanager
def in_one_job(session: SparkSession) -> Iterator[None]:
    """Let each query inside be one job: adaptive execution makes a job of every shuffle, and little is shuffled."""
    parts = session.conf.get(SHUFFLED_PARTS) or ""  # some vendors' clusters take words, such as auto
    few = min(int(parts), FEW_PARTS) if parts.isdecimal() else FEW_PARTS
    asked = {ADAPTIVE: "false", SHUFFLED_PARTS: str(few)}
    before = {name: session.conf.get(name) or "" for name in asked}
    try:
        for name, value in asked.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def close_session(session: SparkSession) -> None:
    """End a session, and with the last one the context that the program started: its JVM would run on."""
    global _open
    with _lock:
        _open -= 1
        _end_unused()
        if not hasattr(session, "sparkContext"):
            with unless_disconnected():
                session.stop()  # of a server, where a session is nobody else's


def _end_unused() -> None:
    """End the context that the program started, and remove its spill, where no session is open."""
    global _owned, _spills, _executors
    if _open:
        return
    if _owned is not None:
        with unless_disconnected():
            _owned.stop()
        _owned = None
    remove_directory(_executors)
    _executors = None
    for directory in _spills:
        remove_directory(directory)
    _spills = ()


def make_work_directories(session: SparkSession) -> tuple[Path, ...]:
    """Make a private directory for the work tables of one run, where Spark spills; see `Engine.prepare_work`."""
    place = spill_directory() or (session.conf.get(_LOCAL_DIR, None) or "").partition(",")[0] or None
    made = make_private_directory(place)
    return (made, *_spills, *([] if _java_files is None else [_java_files]))


def spill_directory() -> Path | None:
    """Return the private directory for spill of this machine's Spark; None where the program has started none."""
    return _spills[0] if _spills else None


def spill_places() -> tuple[Path, ...]:
    """List the directories that hold the private ones for spill of this machine's Spark."""
    return tuple(directory.parent for directory in _spills)


def warehouse_of(session: SparkSession) -> str:
    """Name the directory of the session's tables; of tables that end with the session, where they would be else."""
    warehouse = str(session.conf.get(_WAREHOUSE))
    private, usual = _warehouse
    return usual if warehouse == private else warehouse


def _connect(address: SparkAddress, timeout: float | None) -> SparkSession:
    """Start a context, or open another session of the one that runs."""
    from pyspark.sql import SparkSession

    if address.remote is not None:
        require_server(address.remote, min(_ANSWER, timeout or _ANSWER))
        session = SparkSession.builder.remote(address.remote).create()
        limit_retries(session)
        return session
    running = _owned or SparkSession.getActiveSession()
    if running is None:
        _start(address)
        running = _owned
    elif address.master != (master := running.conf.get("spark.master")):
        raise PolicyError(f"This program has a session with Spark at {master}; end it before one at another place.")
    elif _owned is not None and address != _latest:
        raise PolicyError(
            "This program has a session with Spark by other settings, which all of its sessions share: write the same"
            " settings in each URL, or start another program."
        )
    return running.newSession()


def heap_size(limit: str) -> int:
    """Return the megabytes for a JVM that does all the work, where DuckDB would take `limit`.

    In the 1 GB that is Spark's default, sorts and joins spill.
    """
    least, most = _HEAP
    return min(max(kilobytes(limit) // 1024 // _HEAP_SHARE, least), most)


def _memory_limit() -> str:
    """Return what DuckDB would take of this machine's memory, or the container's."""
    with contextlib.closing(DuckDBEngine.connect(MEMORY_URL)) as engine:
        (limit,) = engine.query_one("engines/get_memory_limit")
    return str(limit)


def _start(address: SparkAddress) -> None:
    """Start a context, whose shuffles and cached rows are this user's alone where it is all on this machine.

    By another thread, which Ctrl-C does not end: a JVM whose start is given up half-way would never end.
    """
    global _latest, _spills, _java_files
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if _latest not in (None, address):
        _end_java()
    if _latest is None and not _CHOOSES_JAVA & os.environ.keys():
        require_java()
    _latest = address
    _silence_libraries()
    settings, master = dict(_STARTING), address.master or ""
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks find what this program finds
        os.environ.setdefault("SPARK_DRIVER_MEMORY", f"{heap_size(_memory_limit())}m")
        settings["spark.python.daemon.module"] = "sqlanon.engines.spark.daemon"
        settings[_OF_DRIVER] += f' "-Djava.io.tmpdir={_files_of_java()}"'
        settings[_OF_EXECUTORS] = settings[_OF_DRIVER]  # where they are processes of their own
    settings |= address.settings or {}
    if master.startswith("local"):
        _spills = _make_spills(settings)
    builder = SparkSession.builder.appName("sqlanon").master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)

    def start() -> None:
        global _owned, _executors
        with _spilling_into(_spills):
            context = SparkContext.getOrCreate(SparkConf().setAll([*settings.items(), ("spark.master", master)]))
        _executors = directory_of_executors(context) if master.startswith("local-cluster") else None
        for name, value in _private_warehouse(context).items():
            builder.config(name, value)
        _owned = builder.getOrCreate()

    worker = StatementWorker("spark-start", None, lambda: None)
    try:
        worker.run(start)
    finally:
        worker.close()


def _files_of_java() -> Path:
    """Make the directory for temporary files of the JVM, which runs on from one context to the next."""
    global _java_files
    if _java_files is None:
        _java_files = make_private_directory()
        atexit.register(_remove_files_of_java)
    return _java_files


def _remove_files_of_java() -> None:
    global _java_files
    remove_directory(_java_files)
    _java_files = None


def _make_spills(settings: dict[str, str]) -> tuple[Path, ...]:
    """Make a private directory in each place for spill, and have Spark use them; the environment's places go first.

    What killed processes left there is removed.
    """
    places = os.environ.get(_LOCAL_DIRS) or settings.get(_LOCAL_DIR) or ""
    made = tuple(make_private_directory(place.strip() or None) for place in places.split(","))
    for directory in made:
        with contextlib.suppress(OSError):  # another process removes the same
            list(remove_dead_directories(directory.parent))
    settings[_LOCAL_DIR] = ",".join(map(str, made))
    return made


@contextlib.contextmanager
def _spilling_into(places: Sequence[Path]) -> Iterator[None]:
    """Let a JVM that starts inside take these places for those that the environment names."""
    named = os.environ.get(_LOCAL_DIRS)
    if named is None or not places:
        yield
        return
    os.environ[_LOCAL_DIRS] = ",".join(map(str, places))
    try:
        yield
    finally:
        os.environ[_LOCAL_DIRS] = named


def _private_warehouse(context: SparkContext) -> dict[str, str]:
    """Have tables that end with a context in its private directory; no setting for others, which stay."""
    global _warehouse
    known = context.getConf()
    if not _spills or known.contains(_WAREHOUSE) or known.get("spark.sql.catalogImplementation") == "hive":
        return {}
    _warehouse = f"file:{_spills[0]}/warehouse", f"file:{Path.cwd()}/spark-warehouse"
    return {_WAREHOUSE: _warehouse[0]}


def _silence_libraries() -> None:
    """Keep the tracebacks of a lost connection off stderr, that libraries write beside the program's own error."""
    from pyspark.accumulators import AccumulatorTCPServer

    server: Any = AccumulatorTCPServer
    server.handle_error = lambda *_: None
    logging.getLogger().addFilter(_is_not_of_py4j)  # which writes to the root logger


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _end_java() -> None:
    """End the JVM of a context that has ended: its threads would keep to the metastore that they have opened."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway  # pyspark has no other way to end it; statements have no use for it
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None or process.stdin is None:  # it was started by somebody else, and is theirs to end
        return
    gateway.shutdown()
    process.stdin.close()  # by which it ends
    try:
        process.wait(_END)
    except subprocess.TimeoutExpired:
        process.kill()
    SparkContext._gateway = SparkContext._jvm = None  # another is started; else the settings would ask the dead one


def require_server(remote: str, seconds: float) -> None:
    """Raise AccessError, with the remedy, where no server at a URL takes a connection within some seconds.

    The connection is made as that of a session will be: over TLS or a proxy, where the URL or the environment says so.
    """
    try:
        import grpc  # type: ignore[import-untyped]
        from pyspark.sql.connect.client import DefaultChannelBuilder

        channel = DefaultChannelBuilder(remote).toChannel()
    except ImportError:
        raise AccessError(
            "A Connect server (sc://) is spoken to by packages that are missing: pip install 'sqlanon[spark-connect]'."
        ) from None
    try:
        grpc.channel_ready_future(channel).result(seconds)
    except grpc.FutureTimeoutError:
        raise AccessError(
            f"No Spark Connect server answered at {redacted(remote)} within {seconds:g} s: start one there"
            " (sbin/start-connect-server.sh; its port is 15002 by default), or see whether host, port and use_ssl are"
            " right."
        ) from None
    finally:
        channel.close()


def limit_retries(session: Any) -> None:
    """Let the requests of a session be sent again a few times only to a server that is not to be reached."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
