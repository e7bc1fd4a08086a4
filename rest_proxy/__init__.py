"""HTTP in, Kafka out, and back: the APIs of Confluent's REST proxy (v2 and v3), and reads without a consumer."""
