"""Protocols and profiles: pure translation between a provider's format and ours."""
