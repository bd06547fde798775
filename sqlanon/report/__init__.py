"""The report of a run for people: one self-contained page, made from the catalog alone."""
