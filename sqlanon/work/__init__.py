"""What runs work with: the databases of a run, its work tables, its journal, and word from and to others."""
