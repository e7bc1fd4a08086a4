"""A small certificate authority in a folder, for a platform and its clients."""
