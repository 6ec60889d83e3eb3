"""Parse JSON that others wrote, if what it becomes in memory is within the memory budget."""

from __future__ import annotations

import json
from typing import Any

from secure_bloom.storage.memory_budget import json_size, refuse_beyond


def loads(text: bytes | str, what: str, **options: Any) -> Any:
    """Return what :func:`json.loads` returns.

    Raises MemoryBudgetError for a text that takes more than the budget, and what json raises.
    """
    content = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if isinstance(content, bytes):
        refuse_beyond(json_size(content), what)
    return json.loads(text, **options)
