"""Files: a file that grows as a stream of lines, and folders of JSON lines, CSV, Parquet, Avro and text."""
