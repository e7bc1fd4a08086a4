"""Records by their schemas: framing, subject names, Avro, JSON Schema, Protobuf."""
