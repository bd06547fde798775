"""Runs: from the policy to the published, recorded release; their work tables, their progress, their end."""
