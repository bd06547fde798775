"""PostgreSQL: its sessions, their settings, values kept from its log, and its errors."""
