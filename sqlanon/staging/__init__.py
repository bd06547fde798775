"""The staged release: from a partition to rows that show regions, where nobody sees them yet."""
