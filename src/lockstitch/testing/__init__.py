"""Public testing aids: the mock gateway, a scripted model, a manual clock, conformance suites."""
