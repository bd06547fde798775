"""Connect servers: whether one answers, before a session is opened, which would try for minutes."""

from __future__ import annotations

from typing import Any

from sqlanon.engines.urls import redacted
from sqlanon.errors import AccessError

RETRIES = 5  # of a request, some 20 s in all: a run that a lost server ends, or Ctrl-C, does not wait for minutes


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
