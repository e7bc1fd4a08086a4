"""From tokens to the syntax tree, by recursive descent."""
