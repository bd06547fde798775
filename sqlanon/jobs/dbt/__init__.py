"""A recoding as part of a dbt project: models, tests that are SELECTs of violating classes, and what declares them."""
