"""Records that live inside internal topics and files, in Kafka's own layouts."""
