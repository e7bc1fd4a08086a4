"""Copies of tables on this machine, for pull queries: each follows the topic of its table into a file of SQLite."""
