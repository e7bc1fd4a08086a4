"""From the syntax tree back to text: one way to write each statement."""
