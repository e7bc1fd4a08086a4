"""`caudal doctor`: looks at the machine, the environment and the running platform, and says what to do next."""
