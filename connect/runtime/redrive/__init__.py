"""Dead letters, looked at and sent again."""
