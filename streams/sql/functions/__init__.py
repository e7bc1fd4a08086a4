"""The built-in functions of SQL: one table, which finds them, writes them in Spark's SQL and describes them."""
