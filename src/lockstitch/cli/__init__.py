"""The command line: one module per command, each only parses, calls and prints."""
