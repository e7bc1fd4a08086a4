"""Java's dates, numbers and regular expressions, as configurations use them."""
