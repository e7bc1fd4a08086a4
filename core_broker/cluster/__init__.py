"""Who owns what: the metadata log, the controller and the partitions of this broker."""
