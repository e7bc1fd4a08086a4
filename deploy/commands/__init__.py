"""What `caudal WORD` does: one module, or one folder, for each word."""
