"""Public testing aids: a mock gateway that misbehaves on demand."""
