"""What a configuration may say: plugins, options, providers, overrides, and whether it can work."""
