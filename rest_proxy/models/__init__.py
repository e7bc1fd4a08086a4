"""Bodies of requests and responses, as the OpenAPI document shows them."""
