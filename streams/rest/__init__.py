"""ksqlDB's REST API: statements, rows and inserts over HTTP/1.1, HTTP/2 and websockets."""
