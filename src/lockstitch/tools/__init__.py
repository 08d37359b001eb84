"""Tools: typed functions, their schemas, the registry, and the built-in ones."""
