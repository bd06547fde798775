"""Sign-off: the record of a run as a document of its own, and the check of a release against it."""
