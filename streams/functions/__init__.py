"""What Spark's SQL cannot express, in Python."""
