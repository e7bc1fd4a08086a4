"""Who calls an HTTP service, and what it may do there: logins by password, token or certificate, and access rules."""
