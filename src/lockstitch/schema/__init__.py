"""Frozen values shared by every layer. This package imports nothing of Lockstitch but itself."""
