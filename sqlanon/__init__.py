"""sqlanon anonymizes a relational table where it lives."""

__version__ = "0.1.0"
