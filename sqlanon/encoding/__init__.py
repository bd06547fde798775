"""The source as codes: what every search works on, one snapshot of it."""
