"""A published release held against its source: every check that a run makes, without anything that the run left."""
