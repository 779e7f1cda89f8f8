"""The C++ engine of Stoker. Private: use the package stoker."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray


def fork_generation() -> int:
    """A number that changes in every child made by fork()."""

class Dataset:
    """Which samples exist. Immutable; safe from any thread."""

    def __len__(self) -> int: ...

    @property
    def address(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def fingerprint(self) -> int: ...

    @property
    def total_bytes(self) -> int: ...

    @property
    def largest_bytes(self) -> int: ...

    @property
    def label_kind(self) -> str: ...

    @property
    def classes(self) -> list[str]: ...

    @property
    def columns(self) -> list[str]: ...

    @property
    def notes(self) -> list[str]: ...

    def name(self, index: int) -> str: ...

    def names(self, indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[str]: ...

def open_dataset(address: str, *, label: Sequence[str], use_cache: bool, options: dict) -> Dataset:
    """`options`: names and values, as in loader_options()."""

def open_volumes(images: Sequence[str], *, masks: Sequence[str], weights: Sequence[float], patch: Sequence[int], samples: int, is_grid: bool, overlap: Sequence[int], foreground: float, pad: bool, flip: Sequence[bool], turn: bool, normalize: str, first: float, second: float, level: int, member: str, mask_member: str, use_cache: bool, options: dict) -> Dataset:
    """
    Patches of volumes. `masks`: one for each image, or none; `normalize`: none, zscore, window or scale, with its two numbers.
    """

def volume_info(address: str, *, level: int, member: str) -> dict:
    """What one volume is, without reading its elements."""

def volumes_csv_of(address: str) -> str:
    """
    The csv that names the volumes at an address; empty: the address is one volume.
    """

def read_volumes_csv(address: str, *, where: str) -> tuple[list[str], list[str], list[float]]:
    """
    The columns image, mask and weight of a volumes.csv, of the rows that match `where`; empty: of all.
    """

def dataset_from_list(paths: Sequence[str], *, integers: Sequence[int], reals: Sequence[float], label_kind: str, classes: Sequence[str], ids_are_places: bool, options: dict) -> Dataset:
    """
    `classes`: the names of the integer labels, sorted; none: they have none.
    """

def dataset_of_numbers(count: int, *, name: str, options: dict) -> Dataset:
    """Samples that Python makes, by their number."""

def dtype_name(code: int) -> str:
    """The name of an element type of the engine, by its number."""

class Batch:
    """A batch in a slab of the pool; arrays over it keep the slab."""

    @property
    def size(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def step(self) -> int: ...

    @property
    def slab_bytes(self) -> int: ...

    @property
    def slab_address(self) -> int:
        """Of the first byte, in this process."""

    @property
    def shared_offset(self) -> int:
        """The same in the loader's SharedRegion."""

    @property
    def tensor_names(self) -> list[str]: ...

    def dtype(self, index: int) -> str: ...

    def numpy(self, index: int) -> NDArray:
        """In place; bfloat16 comes as uint16."""

    def dlpack(self, index: int) -> Any:
        """In place, as an object with __dlpack__."""

    def labels(self) -> object: ...

    def coords(self) -> object:
        """Where each row lies in its sample; None where rows are whole samples."""

    def ids(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def indices(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def lengths(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def packs_rows(self) -> bool: ...

    def places(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Where each row begins in the only tensor, where rows are packed."""

    def valid(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]: ...

    def position(self, row: int) -> int:
        """Of the row's sample in the epoch, over all ranks."""

def loader_options() -> list:
    """
    The table of loader options: a dict for each, in the order of the docs.
    """

def checked_option(name: str, value: Any) -> Any:
    """The value as the loader takes it; a wrong one lists the right ones."""

class SharedRegion:
    """Memory that worker processes may map."""

    def __init__(self) -> None: ...

    @property
    def fd(self) -> int: ...

    def take(self, bytes: int) -> int:
        """The offset of a range of zeros."""

    def give_back(self, offset: int, bytes: int) -> None: ...

class RowBoard:
    """Rows that worker processes claim one by one."""

    def __init__(self, memory: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], *, slots: int, rows: int, workers: int, text_bytes: int) -> None: ...

    @staticmethod
    def bytes_for(*, slots: int, rows: int, workers: int, text_bytes: int) -> int: ...

    def publish(self, slot: int, item: int, first: int, rows: int, text: bytes) -> None: ...

    def cancel(self, slot: int) -> None: ...

    def is_finished(self, slot: int) -> bool: ...

    def wait(self, slot: int, timeout_s: float) -> None:
        """Until the item is finished, or time is up."""

    def outcome(self, slot: int, row: int) -> int: ...

    def lose(self, worker: int) -> tuple[int, int, int] | None:
        """The row that a dead worker had: slot, row, item."""

    def work_of(self, worker: int) -> tuple[int, int]:
        """Rows, and nanoseconds in callables."""

    def close(self) -> None: ...

    @property
    def is_closed(self) -> bool: ...

    def claim(self, worker: int, timeout_s: float) -> tuple[int, int, int] | None:
        """A row to work on: slot, row, item. None after close() or in time."""

    def finish(self, worker: int, slot: int, row: int, item: int, is_good: bool, busy_ns: int) -> None: ...

    def text(self, slot: int) -> bytes: ...

class Loader:
    """The engine's loader."""

    def __init__(self, dataset: Dataset, options: dict, given_order: bool = False, shared: SharedRegion | None = None) -> None:
        """
        `options`: names and values, as in loader_options(). `given_order`: give() says which samples are next. `shared`: where batches lie.
        """

    def give(self, indices: Sequence[int]) -> None:
        """The samples of one more batch of the epoch."""

    def end_order(self) -> None:
        """The epoch ends after what was given."""

    @property
    def steps_wanted(self) -> int: ...

    @property
    def slabs_held(self) -> int:
        """Batches that were handed out and are still in use."""

    def steps_from(self, position: int = 0) -> int:
        """Steps of an epoch that is entered at a global position."""

    @property
    def steps(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def is_forked(self) -> bool: ...

    def refuse_after_fork(self) -> None:
        """Raises in a child made by fork()."""

    @property
    def notes(self) -> list[str]: ...

    @property
    def plan(self) -> str: ...

    def passes(self) -> list:
        """
        What runs together over the pixels of an image, with the time of one sample in 16.
        """

    def options(self) -> dict: ...

    def start_epoch(self, epoch: int, position: int = 0) -> None: ...

    def next(self) -> Batch | None:
        """The next batch, or None at the end of the epoch."""

    @property
    def padding_bytes(self) -> int: ...

    def state(self) -> dict: ...

    def check_state(self, *, epoch: int, position: int, seed: int, shuffle: str, size: int, fingerprint: int, settings: Sequence[tuple[str, str]]) -> None: ...

    def keep_order(self, epoch: int, position: int, shuffle: str) -> bool:
        """
        shuffle=nodes: the rest of this epoch keeps the order of a state. Whether it differs from the loader's own.
        """

    def shuffle_of(self, arg: int, /) -> object: ...

    def set_num_workers(self, workers: object) -> None: ...

    def stats(self) -> dict: ...

    def reset_stats(self) -> None: ...

    def errors(self) -> list: ...

    def close(self) -> None: ...

def judge(*, compute_s: float, fetch_s: float, prep_s: float, handoff_s: float) -> dict: ...

def transform_text(transform: str) -> str:
    """Checks a transform (JSON or short text) and gives its short text."""

def default_memory_limit() -> int:
    """Bytes: what memory_limit is where it is not given."""

def parse_bytes(text: str) -> int: ...

def format_bytes(bytes: int) -> str: ...

def set_stream_provider(provider: object | None) -> None: ...

def process_memory() -> dict: ...

version: str = '0.1.0'

def measured(folder: str) -> str:
    """The answer from the records in a folder, as JSON."""

class PackBuilder:
    """Writes a pack batch by batch. One thread calls."""

    def __init__(self, destination: str, *, classes: Sequence[str], shard_size: int, memory_limit: int, force: bool) -> None: ...

    def append(self, bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], *, dtype: str, shape: Sequence[int], ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], integers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], reals: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], label_kind: str, names: Sequence[str]) -> int: ...

    def has(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object: ...

    @property
    def count(self) -> int: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...

def draw_actions(transform: str, *, width: int, height: int, channels: int, seed: int, id: int, bits: int = 8) -> list:
    """
    What chance decides for one image of 8 or 16 bits: a list of actions, as transform/action.h names them.
    """

def draw_volume_actions(transform: str, *, patch: Sequence[int], seed: int, epoch: int, id: int) -> list:
    """
    What chance decides for one patch of a volume: a list of actions, as transform/volume_plan.h has them.
    """

def transform_image(transform: str, image: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], *, seed: int, id: int) -> tuple:
    """One image [H, W, C] of uint8, transformed, and what chance decided."""

class RowTransform:
    """Operations on images of uint8 [H, W, C], one by one."""

    def __init__(self, transform: str, *, layout: str, dtype: str) -> None:
        """`dtype`: empty is what the operations give."""

    def apply(self, image: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], *, seed: int, epoch: int, id: int, stream: int) -> NDArray: ...
