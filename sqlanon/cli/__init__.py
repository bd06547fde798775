"""The command line: parse, call, print. Each file holds a group of commands."""

from sqlanon.cli.program import app, main

__all__ = ["app", "main"]
