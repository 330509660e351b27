"""Errors of a process, for the launcher that started it."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """A main function whose exception is written to $TORCHELASTIC_ERROR_FILE, if a launcher set that.

    >>> record(lambda x: x + 1)(2)
    3
    """

    @functools.wraps(fn)
    def wrapper(*args: object, **kwargs: object) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            place = os.environ.get("TORCHELASTIC_ERROR_FILE")
            if error_handler is not None:
                error_handler.record_exception(error)
            elif place:
                more = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
                message = {"message": f"{type(error).__name__}: {error}", "extraInfo": more}
                unfinished = Path(f"{place}.{os.getpid()}")
                unfinished.write_text(json.dumps({"message": message}))
                unfinished.replace(place)
            raise

    return wrapper
