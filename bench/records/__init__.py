"""What runs leave on disk: the schema, one reader and one writer."""
