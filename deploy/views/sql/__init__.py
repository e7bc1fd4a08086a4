"""What statements of SQL over topics answer, as tables and lines, without a terminal."""
