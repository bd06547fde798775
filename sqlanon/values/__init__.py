"""Values: one meaning of equal, one text, one double, one digest, on every engine."""
