"""How a partition's replicas agree: the leader's and the follower's half as state machines without I/O."""
