"""What runs between brokers so that replicas agree: fetches from leaders, changes of in-sync replicas."""
