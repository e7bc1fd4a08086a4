"""Tasks on Celery workers, owned by leases in Redis."""
