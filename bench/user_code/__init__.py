"""Users' own files: methods and models that do not ship, found, copied and told apart by their source."""
