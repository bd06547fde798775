"""Spark SQL: classic sessions of this process, and sessions of a Spark Connect server."""
