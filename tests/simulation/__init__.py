"""A cluster in one process, with time, network and disks that a seed decides about."""
