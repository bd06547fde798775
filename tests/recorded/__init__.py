"""What earlier versions of the program wrote into catalogs, and the runs of which it was."""
