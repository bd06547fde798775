"""Equipment of runs: their databases, work tables and journal, and messages from and to others."""
