"""Keys and values between HTTP and Kafka: binary, JSON, text, and formats with schemas."""
