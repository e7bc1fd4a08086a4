"""Small changes to single records, and predicates that select the records."""
