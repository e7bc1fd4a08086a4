"""What has been defined: streams, tables, types and queries, and the log that all servers of one service share."""
