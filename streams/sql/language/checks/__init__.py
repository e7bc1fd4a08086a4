"""What is wrong with a statement although it can be parsed, as far as that shows without a cluster."""
