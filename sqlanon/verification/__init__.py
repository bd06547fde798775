"""Independent checks: of any table against privacy models, and of a staged release against its source."""
