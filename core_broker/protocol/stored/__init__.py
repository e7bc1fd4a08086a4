"""Records of internal topics and files, in Kafka's own formats."""
