"""How long a stream may be silent: pure arithmetic over how long each read has waited.

Only time spent waiting for the server counts, never the consumer's own time between reads.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Watchdog:
    """Budgets of one stream, in seconds.

    Between data frames ``idle_s`` may pass; comments and unfinished frames do not restart it. Before the
    first data frame any bytes restart it, but all waiting together is bounded by ``first_frame_s``:
    gateways send comments while a model reads a long prompt.
    """

    idle_s: float
    first_frame_s: float
    _silent_s: float = 0.0
    _waited_s: float = 0.0
    _frames: int = 0

    @property
    def begun(self) -> bool:
        """A data frame has come."""
        return self._frames > 0

    def allowance_s(self) -> float:
        """How long the next read may wait."""
        left_s = self.idle_s - self._silent_s
        if self._frames == 0:
            left_s = min(left_s, self.first_frame_s - self._waited_s)
        return max(left_s, 0.0)

    def waited(self, seconds: float) -> None:
        """A read has waited so long."""
        self._silent_s += seconds
        if self._frames == 0:
            self._waited_s += seconds

    def received(self, frames: int) -> None:
        """Bytes have arrived and were decoded; ``frames`` is the number of data frames so far."""
        if frames > self._frames or self._frames == 0:
            self._silent_s = 0.0
        self._frames = frames
