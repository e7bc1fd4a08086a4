"""What a worker does to the records of a sink, for engines that carry them elsewhere."""
