"""Parts that a package adds to sqlanon: a privacy model, an algorithm, a quality model, a hierarchy."""
