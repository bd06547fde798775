"""Output privacy: questions and rules that disclose values of the persons of a table."""
