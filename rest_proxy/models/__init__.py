"""Bodies of requests and answers, as the OpenAPI document shows them."""
