"""Data by schemas as columns of Arrow, both ways. Nothing outside this package may need Arrow to be imported."""
