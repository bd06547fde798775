"""DuckDB: its sessions, the files that they read, what they may reach, and its errors."""
