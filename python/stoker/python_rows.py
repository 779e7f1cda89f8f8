"""One sample through a Python callable, and the result into its row of the batch.

The same code runs in worker processes and, with ``python_workers=0``, in the calling thread. So the batches are the same.
"""

from __future__ import annotations

import collections
import pickle
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from . import _engine

__all__ = ["Call", "Leaf", "PackedError", "Rows", "Steps", "flattened", "rebuilt", "sample_seed"]

_MASK = 2**64 - 1
_TRACEBACK_CHARACTERS = 20_000  # of a traceback that a worker sends
BFLOAT16 = "bfloat16"  # numpy has no such type: the words lie in arrays of int16
IN_PLACE = "in place"  # the form of results that lie where their samples lay
_AFTER_CALLABLES = 1 << 20  # stream of the random numbers of operations after callables; those of views count from 0
_seed_now = 0
_key_now = 0, 0, 0  # seed, epoch, sample id


def sample_seed() -> int:
    """The seed of the sample that a callable is being run for: a function of (seed, epoch, sample id).

    ``random``, ``numpy.random`` and torch are seeded with it before each call. A library that has a generator of its own can be seeded with it:
    ``augment.set_random_seed(stoker.sample_seed() % 2**32)``.
    """
    return _seed_now


@dataclass
class Call:
    """What workers run for each sample. ``kind`` is "transform" (arrays to arrays), "decode" (bytes to an array) or "dataset" (a number to anything)."""

    kind: str
    function: Callable[[Any], Any]
    seed: int
    output: str = "numpy"  # where results go: other libraries have fewer types than numpy

    def text(self) -> str:
        """The names of what is called, one after the other, for people."""
        name = str(getattr(self.function, "__qualname__", type(self.function).__name__))
        after = self.function.after if isinstance(self.function, Steps) else "[]"
        return name if after == "[]" else f"{name}, {_engine.transform_text(after)}"


class Steps:
    """Callables one after the other, and the engine's operations on what they return: an image of uint8 [H, W, C]."""

    def __init__(self, callables: list[Callable[[Any], Any]], after: str, layout: str, dtype: str) -> None:
        self.callables, self.after, self.layout, self.dtype = callables, after, layout, dtype
        self._native: Any = None
        self.__qualname__ = " and ".join(str(getattr(one, "__qualname__", type(one).__name__)) for one in callables)

    def __call__(self, sample: Any) -> Any:
        for one in self.callables:
            sample = one(sample)
        if self.after == "[]":
            return sample
        image = as_array(sample)
        if image.dtype != numpy.uint8 or image.ndim != 3:
            raise TypeError(f"it returned {image.dtype} {list(image.shape)}: operations after a callable take images of uint8 [H, W, C]")
        if self._native is None:
            self._native = _engine.RowTransform(self.after, layout=self.layout, dtype=self.dtype)
        seed, epoch, sample_id = _key_now
        return self._native.apply(numpy.ascontiguousarray(image), seed=seed, epoch=epoch, id=sample_id, stream=_AFTER_CALLABLES)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None}


@dataclass(frozen=True)
class Leaf:
    """An array in what a callable returned; ``dtype`` None is an object that no array holds, such as a text."""

    dtype: str | None
    shape: tuple[int, ...] = ()

    @property
    def array_dtype(self) -> str:
        """Of the array that holds it."""
        assert self.dtype is not None
        return "<i2" if self.dtype == BFLOAT16 else self.dtype

    def __str__(self) -> str:
        return "an object" if self.dtype is None else f"{self.dtype if self.dtype == BFLOAT16 else numpy.dtype(self.dtype)} {list(self.shape)}"


class Named(NamedTuple):
    """The type of a named tuple, by its name: forms of results cross processes and states, and the type may not."""

    module: str
    name: str
    fields: tuple[str, ...]

    @staticmethod
    def of(kind: Any) -> Named:
        named = Named(kind.__module__, kind.__qualname__, kind._fields)
        _named_types[named] = kind
        return named

    def type(self) -> Any:
        """The type itself where this process has met it or can look it up, else one like it."""
        kind = _named_types.get(self)
        if kind is None:
            found: Any = sys.modules.get(self.module)
            for word in self.name.split("."):
                found = getattr(found, word, None)
            is_it = isinstance(found, type) and issubclass(found, tuple) and getattr(found, "_fields", None) == self.fields
            kind = _named_types[self] = found if is_it else collections.namedtuple(self.name.rpartition(".")[2], self.fields)
        return kind


_named_types: dict[Named, Any] = {}


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:
        return f"(its text cannot be shown: {type(failure).__name__} in __str__)"


class PackedError:
    """An exception that crosses processes: itself where it can be pickled, and its traceback as text."""

    def __init__(self, error: BaseException) -> None:
        self.name = type(error).__name__
        self.text = f"{self.name}: {_text_of(error)}"
        self.traceback = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARACTERS:]
        self.pickled: bytes | None = None
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)
            if len(pickled) <= _TRACEBACK_CHARACTERS:
                self.pickled = pickled
        except Exception:
            pass

    def exception(self) -> BaseException:
        """The exception; its cause is the traceback of the process that raised it."""
        error: BaseException = RuntimeError(self.text)
        if self.pickled is not None:
            try:
                error = pickle.loads(self.pickled)
            except Exception:
                pass
        error.__cause__ = WorkerTraceback(self.traceback)
        return error


class WorkerTraceback(Exception):
    """Shows the traceback of another process where Python prints causes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


@dataclass
class Rows:
    """The arrays of one batch as a callable's rows see them."""

    epoch: int
    ids: numpy.ndarray
    indices: numpy.ndarray
    valid: numpy.ndarray
    inputs: dict[str, numpy.ndarray]           # by name of the output; packed bytes where `places` is set
    places: numpy.ndarray | None = None        # where each row begins, and how long it is
    lengths: numpy.ndarray | None = None
    form: Any = None                           # of results: None is unknown yet, else IN_PLACE or (structure, leaves)
    outputs: Sequence[numpy.ndarray | None] = ()  # one for each leaf; None for objects

    def sample(self, row: int, call: Call) -> Any:
        if call.kind == "dataset":
            return int(self.indices[row])
        if call.kind == "decode":
            assert self.places is not None and self.lengths is not None
            place = int(self.places[row])
            return memoryview(self.inputs["data"][place : place + int(self.lengths[row])]).toreadonly()
        if len(self.inputs) == 1 and "data" in self.inputs:
            return self.inputs["data"][row]
        return {name: array[row] for name, array in self.inputs.items()}

    def is_given(self, row: int, call: Call) -> bool:
        """False for a row that holds no sample: padding, or one that the engine could not read."""
        return call.kind == "dataset" or bool(self.valid[row])

    def run(self, row: int, call: Call) -> Any:
        """Calls the callable. Its result, for the first one; else None, or the objects among it: the arrays are in their rows then."""
        if not self.is_given(row, call):
            return None
        sample = self.sample(row, call)
        seed_for(call.seed, self.epoch, int(self.ids[row]))
        result = call.function(sample)
        if self.form is None:
            return result
        return self.write(row, call, result)

    def write(self, row: int, call: Call, result: Any) -> list[Any] | None:
        if self.form == IN_PLACE:
            self._write_in_place(row, result, call.output)
            return None
        structure, leaves, values = flattened(result, call)
        if (structure, leaves) != self.form:
            raise TypeError(different(self.form, structure, leaves))
        objects = []
        for value, output in zip(values, self.outputs, strict=True):
            if output is None:
                objects.append(value)
            else:
                output[row] = value
        return objects or None

    def _write_in_place(self, row: int, result: Any, output: str) -> None:
        inputs = self.inputs
        if not isinstance(result, dict):
            result = {"data": result}
        if unknown := [name for name in result if name not in inputs]:
            raise TypeError(f"the callable returned {unknown[0]!r}; it returned none for an earlier sample")
        for name, array in inputs.items():
            if name not in result:
                raise TypeError(f"the callable returned no {name!r}; it returned one for an earlier sample")
            target, value = array[row], as_array(result[name], output)
            if value.dtype != target.dtype or value.shape != target.shape:
                raise TypeError(different_arrays(f"{target.dtype} {list(target.shape)}", value))
            if value.__array_interface__["data"][0] != target.__array_interface__["data"][0] or value.strides != target.strides:
                target[...] = value


def form_of(rows: Rows, row: int, call: Call, result: Any) -> Any:
    """How results are kept, by the first one: in the rows that the samples lie in where they fit, else in arrays of their own."""
    if call.kind == "transform":
        sample = rows.sample(row, call)
        samples = sample if isinstance(sample, dict) else {"data": sample}
        results = result if isinstance(result, dict) else {"data": result}
        if set(samples) == set(results) and not any(_is_named(value) or _is_bfloat16(value) for value in results.values()):
            arrays = {name: as_array(value, call.output) for name, value in results.items()}
            if all(arrays[name].dtype == samples[name].dtype and arrays[name].shape == samples[name].shape for name in samples):
                return IN_PLACE
    structure, leaves, _ = flattened(result, call)
    return structure, leaves


def is_in_place(form: Any) -> bool:
    return form == IN_PLACE


def different(form: Any, structure: Any, leaves: tuple[Leaf, ...]) -> str:
    if structure == form[0] and len(leaves) == len(form[1]):
        before, after = next((a, b) for a, b in zip(form[1], leaves, strict=True) if a != b)
        return f"it returned {after}, and {before} for an earlier sample: every sample must give the same shape and type"
    return "what it returned is built otherwise than for an earlier sample: every sample must give the same keys and the same number of items"


def different_arrays(before: str, value: numpy.ndarray) -> str:
    return f"it returned {value.dtype} {list(value.shape)}, and {before} for an earlier sample: every sample must give the same shape and type"


# ---- what a callable returned

def as_array(value: Any, output: str = "numpy") -> numpy.ndarray:
    """An array of numbers in the byte order of this machine, of a type that ``output`` has. TypeError for anything else, though numpy makes arrays of it."""
    if isinstance(value, numpy.ma.MaskedArray):
        raise TypeError("it returned a masked array, and batches have no masks: return value.filled(...), and value.mask beside it where that is needed")
    if isinstance(value, tuple):
        raise TypeError("it returned a tuple: return one array, or a dict of arrays")
    if _is_bfloat16(value):
        raise TypeError("it returned a tensor of bfloat16, which goes with output=\"torch\" alone: return value.float()")
    if isinstance(value, numpy.ndarray):
        array = value
    elif _is_tensor(value):
        array = value.detach().cpu().numpy()
    else:
        array = numpy.asarray(value)
    kind = array.dtype.kind
    if kind in "OSUV":
        named = "None" if value is None else f"an array of {array.dtype}" if isinstance(value, (numpy.ndarray, numpy.generic)) else type(value).__name__
        raise TypeError(f"it returned {named}, not an array of numbers")
    if output != "numpy" and (kind in "mM" or array.dtype.char in "gG"):
        raise TypeError(f"it returned an array of {array.dtype}, a type that output={output!r} lacks: return it as {'int64' if kind in 'mM' else 'float64'}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


# These are no functions inside of functions: one that calls itself would keep its arrays until the garbage collector comes by.

def flattened(value: Any, call: Call) -> tuple[Any, tuple[Leaf, ...], list[Any]]:
    """The structure of a result, its leaves, and what stands in each: an array, or an object. The structure is what torch's default_collate keeps."""
    leaves: list[Leaf] = []
    values: list[Any] = []
    structure = _walked(value, call, leaves, values)
    if not leaves and call.kind != "dataset":
        raise TypeError(f"it returned {type(value).__name__} with nothing in it, not an array of numbers")
    return structure, tuple(leaves), values


def _walked(value: Any, call: Call, leaves: list[Leaf], values: list[Any]) -> Any:
    takes_all = call.kind == "dataset"
    if isinstance(value, Mapping):
        return ("dict", tuple((key, _walked(inner, call, leaves, values)) for key, inner in value.items()))
    if _is_named(value):
        return ("named", Named.of(type(value)), tuple(_walked(inner, call, leaves, values) for inner in value))
    if takes_all and isinstance(value, (tuple, list)):
        return ("list", tuple(_walked(inner, call, leaves, values) for inner in value))
    if takes_all and (value is None or isinstance(value, (str, bytes))):
        leaves.append(Leaf(None))
        values.append(value)
        return "leaf"
    if call.output == "torch" and _is_bfloat16(value):
        leaves.append(Leaf(BFLOAT16, tuple(value.shape)))
        values.append(value.detach().cpu().contiguous().view(sys.modules["torch"].int16).numpy())
        return "leaf"
    array = numpy.asarray(value, numpy.bool_ if isinstance(value, bool) else numpy.int64) if isinstance(value, int) else as_array(value, call.output)
    leaves.append(Leaf(array.dtype.str, array.shape))
    values.append(array)
    return "leaf"


def rebuilt(structure: Any, values: list[Any]) -> Any:
    """The structure with one value for each leaf. Tuples become lists, as with default_collate."""
    return _built(structure, iter(values))


def _built(structure: Any, left: Iterator[Any]) -> Any:
    if structure == "leaf":
        return next(left)
    if structure[0] == "dict":
        return {key: _built(inner, left) for key, inner in structure[1]}
    items = [_built(inner, left) for inner in structure[-1]]
    # default_collate gives objects as a list, and as a tuple inside of sequences.
    items = [tuple(item) if inner == "leaf" and isinstance(item, list) else item for item, inner in zip(items, structure[-1], strict=True)]
    return structure[1].type()(*items) if structure[0] == "named" else items


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_bfloat16(value: Any) -> bool:
    return _is_tensor(value) and value.dtype == sys.modules["torch"].bfloat16


# ---- randomness

def seed_for(seed: int, epoch: int, sample: int) -> None:
    """Seeds random, numpy.random and torch for one sample: what a callable draws does not depend on the worker that runs it."""
    global _seed_now, _key_now
    _key_now = seed, epoch, sample
    mixed = _mixed(_mixed((seed ^ (epoch * 0x9E3779B97F4A7C15)) & _MASK) ^ (sample & _MASK))
    _seed_now = mixed
    random.seed(mixed)
    numpy.random.seed(mixed & 0xFFFFFFFF)
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "default_generator"):
        torch.default_generator.manual_seed(mixed >> 1)  # torch.manual_seed would also keep notes for devices


def _mixed(value: int) -> int:
    """The finalizer of splitmix64."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class OwnRandom:
    """Keeps the generators of the calling thread as they were, where callables run in it."""

    def __enter__(self) -> None:
        self._random, self._numpy = random.getstate(), numpy.random.get_state()
        torch = sys.modules.get("torch")
        self._torch = torch.default_generator.get_state() if torch is not None and hasattr(torch, "default_generator") else None

    def __exit__(self, *_: object) -> None:
        random.setstate(self._random)
        numpy.random.set_state(self._numpy)
        if self._torch is not None:
            sys.modules["torch"].default_generator.set_state(self._torch)
