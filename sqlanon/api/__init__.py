"""Calls of programs: whole tasks by policy or URL, and runs of data that a program holds."""
