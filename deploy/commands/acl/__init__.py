"""`caudal acl`: who may do what."""
