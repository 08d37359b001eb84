"""The loop: a pure state machine and the driver that performs its effects."""
