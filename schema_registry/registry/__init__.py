"""The registry's rules: register, look up, delete, levels, references, contexts, modes."""
