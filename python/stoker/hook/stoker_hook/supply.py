"""Lets the package stoker feed the DataLoaders of a job that `stoker run --supply` started.

The package belongs to the job's Python and may be missing there: the job then goes on as it is, and one line says so.
"""

import functools
import sys

from . import places


def install(module):
    cls = module.DataLoader
    original = cls._get_iterator
    checked = cls.__dict__.get("check_worker_number_rationality")
    if checked is not None:
        cls.check_worker_number_rationality = _Noted(checked)

    @functools.wraps(original)
    def _get_iterator(loader):
        loader.__dict__["_stoker_asked"] = True
        supply = None if hasattr(type(loader), "supply") else _supply(loader)
        if supply is None:
            return original(loader)
        return supply.iterator(loader, lambda: original(loader))

    iterate = cls.__iter__

    @functools.wraps(iterate)
    def __iter__(loader):
        iterator = iterate(loader)
        if "_stoker_asked" not in loader.__dict__:  # a class of the job has a _get_iterator that passes ours by
            loader.__dict__["_stoker_asked"] = True
            supply = None if hasattr(type(loader), "supply") else _supply(loader)
            if supply is not None:
                supply.refuse("%s makes its iterators itself" % type(loader).__name__)
        return iterator

    cls._get_iterator, cls.__iter__ = _get_iterator, __iter__


class _Noted:
    """The last method that torch's constructor calls: notes where the loader is made, without a frame of ours in between."""

    def __init__(self, original):
        self._original = original

    def __get__(self, loader, owner=None):
        if loader is not None and "_stoker_place" not in loader.__dict__:
            try:
                place = places.caller()
                loader.__dict__["_stoker_place"] = place and {name: place[name] for name in ("file", "line", "function", "name")}
            except Exception:
                pass
        return self._original.__get__(loader, owner)


def _supply(loader):
    try:
        from stoker.supply import supply_of
    except Exception as error:
        _say_once("nothing is replaced: %s cannot import the package stoker (%s); pip install it there" % (sys.executable, error))
        return None
    return supply_of(loader, loader.__dict__.get("_stoker_place"))


_said = set()


def _say_once(text):
    if text in _said:
        return
    _said.add(text)
    try:
        sys.stderr.write("stoker: %s\n" % text)
    except Exception:
        pass
