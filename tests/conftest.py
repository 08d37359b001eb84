"""Settings of the whole suite."""

from hypothesis import HealthCheck, settings

# No timed assertion anywhere: how long an example takes says more about the machine than about the code.
settings.register_profile("lockstitch", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lockstitch")
