"""Connect servers: one that does not answer is named at once."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Iterator

import pytest

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError

pytestmark = pytest.mark.skipif(
    "SQLANON_REQUIRE_SPARK" not in os.environ and importlib.util.find_spec("grpc") is None,
    reason="takes the packages that speak to Connect servers",
)


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
