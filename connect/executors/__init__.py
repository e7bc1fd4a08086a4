"""Where tasks run: in this process and its children, or on Celery workers."""
