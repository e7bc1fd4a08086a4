"""Small changes to single records, and predicates that choose the records."""
