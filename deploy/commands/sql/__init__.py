"""`caudal sql`: statements of SQL over topics: at a prompt, from a file or a command line; or only checked."""
