"""The HTTP statuses at which each kind of wording counts; ``None`` is an error inside an accepted answer."""

from typing import Final, TypeAlias

Statuses: TypeAlias = frozenset[int | None]

ANY: Final[Statuses] = frozenset({None, *range(100, 600)})
REQUEST: Final[Statuses] = frozenset({None, *range(400, 500)} - {401, 402, 403, 408, 409, 429})
"""Where the request itself may be at fault. Neither 429 nor 5xx is here: waiting cures those, shrinking does
not, and a compaction thrown at them costs history for nothing."""
SERVER: Final[Statuses] = frozenset({None, *range(500, 600)})
DETERMINISTIC: Final[Statuses] = REQUEST | SERVER
"""For words that stay true on a retry, whatever status a gateway wraps them in."""
QUOTA_AT: Final[Statuses] = frozenset({None, 400, 401, 402, 403, 404, 422, 429})
WAITING_AT: Final[Statuses] = frozenset({None, 400, 403, 413, 422, 429})
BUSY_AT: Final[Statuses] = SERVER | {408, 409, 429}
ACCESS: Final[Statuses] = frozenset({None, 400, 401, 403, 404, 407, 422})
MODEL_AT: Final[Statuses] = frozenset({None, 400, 401, 403, 404, 405, 410, 422})
PAYLOAD: Final[Statuses] = REQUEST | {500}
ROUTE: Final[Statuses] = frozenset({404, 405})
IN_STREAM: Final[Statuses] = frozenset({None})
