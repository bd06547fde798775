"""Live tables as they are looked at before a run: ranges and NULLs, identifiers that repeat, what names say."""
