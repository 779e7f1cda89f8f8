"""States of :meth:`stoker.Loader.state_dict` that come from elsewhere: read, and refused in one sentence where they are none."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from . import _engine
from .arguments import shuffle_value, shuffle_word, state_number
from .errors import UsageError, shortened
from .python_rows import IN_PLACE
from .result_form import form_from_state

__all__ = ["State", "read_state"]


class State(NamedTuple):
    numbers: dict[str, int]           # epoch, position, seed, size and fingerprint
    shuffle: str
    settings: list[tuple[str, str]]   # of volumes; states of earlier versions have none
    form: Any                         # of what callables return; None: the first result decides


def read_state(state: Any, kind: str | None) -> State:
    """``kind``: of the loader's callable on single samples, None without one."""
    if not isinstance(state, dict) or state.get("version") != 1:
        raise UsageError(f"cannot load a state: this is not one of Loader.state_dict(): {shortened(state)}")
    try:
        values = {word: state_number(word, state[word]) for word in ("epoch", "position", "seed", "size")}
        fingerprint, shuffle = state["fingerprint"], state["shuffle"]
        if not isinstance(shuffle, (bool, str)):
            raise UsageError(f"shuffle is True, False or a text, not {shortened(shuffle)}")
        if shuffle != "given":
            shuffle = shuffle_word(_engine.checked_option("shuffle", shuffle_value(shuffle)))
        if not isinstance(fingerprint, str) or not re.fullmatch("[0-9a-f]{16}", fingerprint):
            raise UsageError(f"fingerprint is a text of 16 hexadecimal digits, not {shortened(fingerprint)}")
        form = form_from_state(state.get("results"))
        if form == IN_PLACE and kind not in (None, "transform"):
            raise UsageError(f"results is of callables in transform=, and this loader has {kind}=")
    except KeyError as error:
        raise UsageError(f"cannot load a state: {error} is missing in {shortened(state)}") from None
    except UsageError as error:
        raise UsageError(f"cannot load a state: {error.message}; the state is {shortened(state)}", error.hint) from None
    values["fingerprint"] = int(fingerprint, 16)
    settings = state.get("settings")
    named = [(str(name), str(value)) for name, value in settings.items()] if isinstance(settings, dict) else []
    return State(values, shuffle, named, form)
