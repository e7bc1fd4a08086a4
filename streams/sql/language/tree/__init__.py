"""The syntax tree: what a statement says, and where in the text it says it."""
