"""What people read of a run: one self-contained page, made from the catalog alone."""
