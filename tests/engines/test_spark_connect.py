"""Connect servers: one that does not answer is named at once; over one that does, the release is that of DuckDB."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError
from sqlanon.sql import Statement
from tests.cli.support import execute, run_program
from tests.patience import wait_until
from tests.spark_support import needs_spark, settings_of_metastore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "SQLANON_REQUIRE_SPARK" not in os.environ and importlib.util.find_spec("grpc") is None,
        reason="takes the packages that speak to Connect servers",
    ),
]
PEOPLE = "SELECT i * 37 % 89 AS age, i * 101 % 97 AS zip, 'job ' || i * i % 3 AS job FROM range(300) AS r (i)"
ROLES = {"age": "quasi-identifier", "zip": "quasi-identifier", "job": "sensitive"}
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(params=["closed", "silent"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """A port that refuses connections, or takes them and says nothing."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if request.param == "silent":
            taken.listen()
        yield taken.getsockname()[1]


def test_a_server_that_does_not_answer_is_named(port: int) -> None:
    url = f"sc://127.0.0.1:{port}/;token=secret"
    with pytest.raises(AccessError, match=rf"127\.0\.0\.1:{port}.* within 0\.5 s: start one") as refused:
        connect(url, EngineOptions(statement_timeout=0.5))
    assert "secret" not in str(refused.value)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The URL of a server of the installed package, whose tables are kept under a directory of the test."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"sc://127.0.0.1:{free.getsockname()[1]}"
    settings = {
        **settings_of_metastore(tmp_path),
        "spark.connect.grpc.binding.port": urlsplit(url).port,
        "spark.hadoop.fs.permissions.umask-mode": "077",
        "spark.ui.enabled": "false",
    }
    listed = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    started = subprocess.Popen(
        [program, "--master", "local[2]", *listed, "--class", SERVER, "spark-internal"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,  # where its metastore keeps a log
    )
    try:
        wait_until(lambda: started.poll() is not None or _answers(url))
        yield url
    finally:
        started.terminate()
        started.wait(30)


def _answers(url: str) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", urlsplit(url).port)) == 0


def policy_at(home: Path, url: str, **source: str) -> Path:
    """Write a policy for the people, whose catalog is beside it."""
    home.mkdir()
    policy: dict[str, Any] = {
        "source": {"url": url, **source},
        "release": {"table": "people_r"},
        "catalog": {"url": f"duckdb:///{home}/catalog.duckdb"},
        "attributes": {name: {"role": role} for name, role in ROLES.items()},
        "privacy": [{"model": "k-anonymity", "k": 5}],
        "digest": "run",
    }
    path = home / "policy.yml"
    path.write_text(json.dumps(policy))
    return path


def released_by(policy: Path) -> str:
    """Run a policy; the digest of what it released."""
    code, _, errors = run_program("run", policy, "--json")
    assert code == 0, errors
    with connect(f"duckdb:///{policy.parent}/catalog.duckdb") as catalog:
        ((digest,),) = catalog.fetch(Statement("digest", "SELECT content_digest FROM sqlanon.releases"))
    return str(digest)


@needs_spark
@pytest.mark.waits
def test_check_run_and_verify_over_a_server(server: str, tmp_path: Path) -> None:
    """By the commands, as a process that has been a client of a server can't open a session of its own any more."""
    parquet, url = tmp_path / "people.parquet", f"duckdb:///{tmp_path}/rows.duckdb"
    execute(url, f"CREATE TABLE people AS {PEOPLE}", f"COPY people TO '{parquet}'")
    policy = policy_at(tmp_path / "there", server, file=str(parquet))
    assert run_program("check", policy)[0] == 0
    assert released_by(policy) == released_by(policy_at(tmp_path / "here", url, table="people"))
    assert run_program("verify", policy)[0] == 0
