"""A run whose statements are written down in place of being sent."""

from sqlanon.runs.dry_run.running import DryRun, run_dry
from sqlanon.runs.dry_run.script import HEAD, script_lines

__all__ = ["HEAD", "DryRun", "run_dry", "script_lines"]
