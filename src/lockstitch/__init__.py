"""An agent runtime whose sessions cannot be bricked."""

__version__ = "0.1.0.dev0"
