"""Search spaces: one YAML file a method, default and distributions side by side."""
