"""A scheduler of pytest-xdist by which one worker alone starts a Java."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling


class OneJava(LoadScopeScheduling):
    """Give a worker a file at a time, but all that take Spark at once: a Java is slow until it has run for minutes."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "spark" if path.rpartition("/")[2].startswith("test_spark") else path
