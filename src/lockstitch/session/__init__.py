"""Durable sessions: the gate, the closers and the stores."""
