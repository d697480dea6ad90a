"""The release spec: its models, and reading one from YAML."""
