"""Keys and values between HTTP and Kafka: binary, JSON, text, and by schema."""
