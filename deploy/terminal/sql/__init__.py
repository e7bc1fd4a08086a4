"""SQL over topics on a terminal: a prompt that completes, answers, and tables that keep up with a query."""
