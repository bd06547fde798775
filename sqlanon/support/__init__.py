"""Small things of the machine and of texts: processes, environment, bounded reading, plugins, nearest words."""
