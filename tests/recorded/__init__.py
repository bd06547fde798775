"""Content that earlier versions of the program wrote into catalogs, and the runs that it comes from."""
