"""The output of commands, on a terminal or elsewhere."""
