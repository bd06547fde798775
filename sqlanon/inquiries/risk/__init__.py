"""Risk of any table before or after protection, by GROUP BY in the database.

Histograms of class sizes alone leave the database, never rows, and never classes one by one.
"""
