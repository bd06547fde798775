"""Data that a Python program holds, anonymized by a run: frames, Arrow tables, connections, files."""
