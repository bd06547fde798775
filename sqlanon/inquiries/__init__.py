"""Questions about tables and releases that make no release of their own."""
