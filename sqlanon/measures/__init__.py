"""What classes of rows say: their sizes, risk and utility, and the loss of a partition."""
