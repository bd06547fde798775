"""Parts that a package adds to sqlanon: a privacy model and an algorithm."""
