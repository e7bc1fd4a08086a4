"""Consumer groups: state machines without I/O, and the coordinator that carries out what they decide."""
