"""Who a client is, and what it may do: rules without I/O, as far as possible."""
