"""Jobs: stored recodings that run again and again, in the database or by `sqlanon job run`."""
