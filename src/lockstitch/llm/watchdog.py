"""How long a stream may be silent: pure arithmetic over how long each read has waited.

Only time spent waiting for the server counts, never the consumer's own time between reads.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Watchdog:
    """Budgets of one stream, in seconds.

    Between chunks ``idle_s`` may pass; comments, unfinished frames and frames that say nothing do not restart
    it. Before the first chunk any bytes restart it, but all waiting together is bounded by
    ``first_frame_s``: gateways send comments, or empty frames, while a model reads a long prompt.
    """

    idle_s: float
    first_frame_s: float
    _silent_s: float = 0.0
    _waited_s: float = 0.0
    _chunks: int = 0

    @property
    def begun(self) -> bool:
        """A chunk has come."""
        return self._chunks > 0

    def allowance_s(self) -> float:
        """How long the next read may wait."""
        left_s = self.idle_s - self._silent_s
        if self._chunks == 0:
            left_s = min(left_s, self.first_frame_s - self._waited_s)
        return max(left_s, 0.0)

    def waited(self, seconds: float) -> None:
        """A read has waited so long."""
        self._silent_s += seconds
        if self._chunks == 0:
            self._waited_s += seconds

    def received(self, chunks: int) -> None:
        """Bytes have arrived and were decoded; ``chunks`` is their number so far."""
        if chunks > self._chunks or self._chunks == 0:
            self._silent_s = 0.0
        self._chunks = chunks
