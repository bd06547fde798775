"""Releases of several owners together: no site shows its rows or its own counts; docs/federation.md says how."""
