"""The loader: arguments checked, epochs counted, batches converted. The work is done by ``stoker._engine``."""

from __future__ import annotations

import atexit
import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _engine, measuring
from .arguments import callable_or_none, foreign_options, shuffle_value, switch, whole_count
from .batch import Batch
from .epochs import Epochs
from .errors import Error, Note, UsageError
from .loader_state import read_state
from .order import given_order, largest_batch
from .output import copier_of, framework_of
from .passes import Plan, make_plan, mixing_text
from .per_sample import per_sample, refuse_beside_callables, refuse_beside_dataset, refuse_rows_of_zeros
from .python_rows import Call, Steps
from .ragged import Ragged, array_names
from .ranks import Rank, check_against_other_ranks, check_against_process_group, cpus_of_ray, find_rank, given_rank, made_at
from .result_form import form_to_state
from .sample_errors import ErrorList, SampleError
from .source import cache_folder, class_names, open_items, open_source
from .summary import judged, summary_of
from .trainers import ReadByTrainers, let_accelerate_prepare_loaders
from .volumes import Volumes

if TYPE_CHECKING:  # loaded where there are callables only: they start processes, and the modules for that take long to load
    from .python_calls import PythonCalls

__all__ = ["Loader", "SampleError", "ErrorList"]

_MOST_WORKERS = 1024


class Loader(ReadByTrainers):
    """Batches, in order, from a data set: a folder of classes, an index.csv, an .npy.

    ::

        loader = stoker.Loader("data/train", batch_size=256, shuffle=True, seed=42,
                               transform=[stoker.RandomResizedCrop(224), stoker.HorizontalFlip(), stoker.Normalize("imagenet")])
        for epoch in range(loader.epoch, 90):
            for images, labels in loader:
                train_step(images, labels)

    Which samples:
      source: the folder, index.csv or .npy; or ``stoker.Volumes([...], patch=...)``; or ``samples=[(path, label), ...]``.
      dataset: a map-style Dataset of torch, or any object with ``__getitem__`` and ``__len__``. Its items are made in ``python_workers``; batches are what torch's
        default_collate makes of them.
      label: the label column of an index.csv, or a list of several number columns (labels are then [B, columns]).
      subset, subset_seed: use this number of samples, drawn once.
      where: only rows of an index.csv whose columns match, such as "slice_spacing<3 and rows==512".
      class_list: use the classes of these names; a text or path is a file that names them.
      class_subset, class_subset_seed: use this number of classes, drawn once.
      inflate: repeat the data set this number of times, without copying.
      cache_dir: where listings, seek indexes and objects of a store are kept (False: nowhere).
      listing: "kept" lists a store once and keeps the answer in cache_dir.
    Which order:
      shuffle: True, or "blocks" to mix blocks of neighbours (for packs and arrays on disks that are fast in order; "blocks:32:4096" keeps 32 together and mixes 4096),
        or "nodes" to keep samples on their node in every epoch (for disk caches of many nodes; "nodes:4" says how many there are).
      batch_size (per rank), seed, drop_last or last_batch="keep|drop|pad".
      sampler: gives the samples of each epoch by number, such as one of torch.utils.data, for this rank alone. The loader reads it a few batches ahead.
      batch_sampler: the same, a list of numbers for each batch; batch_size is then that of the largest, if it does not say so itself.
      rank, world_size: if not given, the first ``iter()`` or ``len()`` takes them from torch.distributed if it is
        initialised, else from torchrun's variables, else from those of a Slurm step. rank=0, world_size=1: all samples.
      epochs: how many epochs the whole run has, from epoch 0 on; nothing is read ahead of the last.
    What comes out:
      transform: a list of operations, a short text, or a torchvision Compose. Python callables ``f(array) -> array`` in the list take one sample.
      batch_transform: ``f(data, labels) -> (data, labels)``, takes the whole batch, last of all, in the calling thread.
      seek_index: note places inside JPEG files as they are decoded, so that later crops decode only what they touch, with the same pixels:
        "auto" (kept within memory_limit and saved in cache_dir), "memory" (not saved), "off".
      decode: "exact" (Pillow's pixels), "fast" (close to them, for less work), "none" (the encoded bytes: ``batch.rows``),
        or a callable ``f(memoryview) -> array`` for a format Stoker lacks.
      arrays: the arrays of .npz files to load, by name: ``arrays=("x", "y")`` gives ``batch["x"]`` and ``batch["y"]``.
      shapes: "equal" (all files have one shape), "pad" (zeros up to the largest of the batch; ``batch.lengths`` has the true extents) or
        "list" (``batch.data`` is a list of arrays).
      python_workers: processes that run the callables of ``transform`` or ``decode`` on shared memory. 0, or none given, runs them in the calling thread,
        with the same batches; that time is ``python_s`` of :meth:`stats`. ``random``, ``numpy.random`` and torch are seeded for each sample.
      exif_orientation: turn images as their Exif says before anything else (off, as in torchvision).
      color="rgb|gray|keep", dtype="uint8|uint16|float16|bfloat16|float32|int16" (uint16: 16-bit images; int16: audio), layout="NCHW|NHWC|channels_last".
      output="auto|torch|numpy|jax|dlpack"; auto is torch if it is already imported, else numpy.
      copy: arrays of their own instead of views of the loader's memory, so that ``list(loader)`` works.
      device: "cuda" copies each batch there on a side stream. Never run on a GPU by us.
      pin_memory: page-lock the batches where a device runtime is found; ``loader.notes`` says what was found.
    How hard it works:
      num_workers: threads that decode; "auto" follows the cores, 0 decodes in the calling thread.
      prefetch_factor: ready batches beyond the one in use, in total.
      memory_limit: a hard bound, in bytes or as "4GB".
      storage="buffered|direct|mmap|ram|auto", io_depth, io_batch, io_threads, read_ahead: "auto" or a number.
      cache_limit: keep objects of a store (``s3://``) in cache_dir, up to this number of bytes or "200GB"; all processes of a machine share them.
      timeout: seconds without any progress before an error; 0 waits for ever.
    What happens to bad samples:
      on_error="raise|skip|replace|zero", max_errors: a count, or a share below 1; ``loader.errors`` lists them.

    Each ``iter(loader)`` starts the next epoch, also after a ``break``; the first one after :meth:`load_state_dict`
    continues where the state was taken. An iterator that handed out nothing has begun nothing: the next one starts the
    same epoch. One iterator is live at a time.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Volumes | None = None,
        *,
        samples: Sequence[Any] | None = None,
        dataset: Any = None,
        batch_size: int = 1,
        shuffle: bool | str = False,
        seed: int = 0,
        num_workers: int | str = "auto",
        prefetch_factor: int = 2,
        memory_limit: int | str | None = None,
        transform: Any = None,
        batch_transform: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        python_workers: int | None = None,
        decode: str | Callable[[memoryview], Any] = "exact",
        seek_index: str = "auto",
        arrays: str | Sequence[str] | None = None,
        shapes: str = "equal",
        color: str = "rgb",
        exif_orientation: bool = False,
        dtype: str | None = None,
        layout: str = "NCHW",
        output: str = "auto",
        copy: bool = False,
        storage: str = "buffered",
        io_depth: int | str = "auto",
        io_batch: int | str = "auto",
        read_ahead: int | str = "auto",
        io_threads: int | str = "auto",
        on_error: str = "raise",
        max_errors: int | float | None = None,
        drop_last: bool = False,
        last_batch: str | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        epochs: int | None = None,
        timeout: float | None = None,
        pin_memory: bool | None = None,
        device: Any = None,
        persistent_workers: bool | None = None,
        label: str | Sequence[str] | None = None,
        subset: int | None = None,
        subset_seed: int = 42,
        where: str | None = None,
        class_list: Sequence[str] | str | os.PathLike[str] | None = None,
        class_subset: int | None = None,
        class_subset_seed: int = 42,
        inflate: int = 1,
        cache_dir: str | os.PathLike[str] | bool | None = None,
        cache_limit: int | str | None = None,
        listing: str = "fresh",
        **other: Any,
    ) -> None:
        self._engine: _engine.Loader | None = None
        self._notes = foreign_options(other, list(Loader.__init__.__kwdefaults__ or ()))
        if persistent_workers is False:
            self._say("persistent_workers=False changes nothing: workers are threads that live until close()")

        self._batch_transform = callable_or_none("batch_transform", batch_transform)
        self._decode = decode if callable(decode) else None
        self._on_error = _engine.checked_option("on_error", on_error)
        self._items = dataset
        if dataset is not None:
            refuse_rows_of_zeros(self._on_error, last_batch)
            refuse_beside_dataset(source=source, samples=samples, transform=transform, batch_transform=batch_transform, label=label, where=where, arrays=arrays, device=device,
                                   decode=None if decode == "exact" else decode)
            if python_workers is None and num_workers not in ("auto", 0):
                self._say("num_workers= are threads of the engine, and the Dataset runs in the calling thread: python_workers= runs it in processes")
        if python_workers is not None:
            python_workers = whole_count("python_workers", python_workers, least=0, most=_MOST_WORKERS)
        if python_workers:
            from .python_server import refuse_while_main_is_imported
            refuse_while_main_is_imported()
        transform_text, self._transform, layout, dtype = per_sample(transform, layout, dtype)
        if self._decode is not None and transform_text != "[]":
            raise UsageError("transform: the engine cannot transform what a Python decode= returns",
                             "do it inside decode, or in a callable as the first transform", option="transform")
        if self._decode is not None and self._transform is not None:
            self._decode, self._transform = Steps([self._decode, self._transform], "[]", "", ""), None
        if python_workers is None and (dataset is not None or self._decode is not None or self._transform is not None):
            python_workers = 0
        dtype = _engine.checked_option("dtype", dtype)

        self._framework = framework_of(output, device)
        self._framework.check_dtype(dtype)
        self._copier = copier_of(device, self._framework)
        if pin_memory is None:
            pin_memory = self._copier is not None
        self._order = given_order(sampler, batch_sampler, batch_size=batch_size, shuffle=shuffle_value(shuffle), drop_last=switch("drop_last", drop_last),
                                  last_batch=last_batch, rank=rank)
        if batch_sampler is not None:
            batch_size = largest_batch(batch_sampler, batch_size)
        self._rank = given_rank(rank, world_size) if self._order is None else Rank(0, 1)  # None until it is needed
        self._rank_is_given = self._rank is not None
        self._kept_order: tuple[int, int, str] | None = None  # epoch, position and shuffle of the state that was loaded last
        self._place = made_at()
        self._is_compared = False  # with what other ranks have

        self._copy = switch("copy", copy)
        if num_workers == "auto" and (cpus := cpus_of_ray()) is not None:
            num_workers = cpus
            self._say(f"num_workers={cpus}: the CPUs that Ray gives this process")
        # The engine checks each of them by its table of options.
        self._given: dict[str, Any] = dict(
            batch_size=batch_size, shuffle=shuffle_value(shuffle), seed=seed, drop_last=switch("drop_last", drop_last), last_batch=last_batch,
            epochs=epochs,
            transform=transform_text, arrays=array_names(arrays), shapes=shapes, color=color, decode="none" if self._decode else decode, seek_index=seek_index,
            exif_orientation=switch("exif_orientation", exif_orientation), dtype=dtype, layout=layout, num_workers=num_workers, prefetch_factor=prefetch_factor,
            memory_limit=memory_limit, storage=storage, io_depth=io_depth, io_batch=io_batch, read_ahead=read_ahead, io_threads=io_threads,
            on_error=on_error, max_errors=max_errors, timeout=timeout, pin_memory=switch("pin_memory", False if pin_memory is None else pin_memory),
            where=where, class_list=class_names(class_list), class_subset=class_subset, class_subset_seed=class_subset_seed, subset=subset, subset_seed=subset_seed,
            inflate=inflate,
            cache_dir=cache_folder(cache_dir, cache_limit), cache_limit=cache_limit, listing=listing)
        self._classes: list[str] = []
        if dataset is not None:
            self._dataset = open_items(dataset, self._given)
        else:
            self._dataset, self._classes = open_source(source, samples, label=label, cache_dir=cache_dir, options=self._given)
        self._calls = self._make_calls(python_workers)
        try:
            self._engine = self._make_engine(self._rank or find_rank())
        except BaseException:
            if self._calls is not None:
                self._calls.close()
            raise
        names = [arrays] if isinstance(arrays, str) else list(arrays or ())
        self._ragged = Ragged(shapes, names, self._engine.padding_bytes) if shapes != "equal" else None
        if self._calls is not None:
            self._calls.stage.timeout_s = self._engine.options()["timeout"] or 0.0

        if self._framework.NAME == "torch" and self._engine.options()["pin_memory"]:  # the engine clears it without a device runtime
            _engine.set_stream_provider(self._framework.current_stream)

        let_accelerate_prepare_loaders()
        self._epochs = Epochs(self._engine, self._order)
        self._iteration = 0         # number of the live iterator
        self._recorded: Any = None  # under `stoker measure`: what tells it about this loader
        self._made_at = measuring.place()  # and where the program made it
        self._closed = False
        self._python_s = 0.0
        _live.add(self)
        for note in self._notes:
            warnings.warn(note, Note, stacklevel=2)

    # ---- iteration

    def __iter__(self) -> Iterator[Batch]:
        """Starts the next epoch (or continues a loaded one); an older iterator of this loader raises from now on.

        The epoch begins with its first batch. Until then the loader stands where it stood, and another ``iter()``
        starts the same epoch.
        """
        self._settle_rank()
        self._compare_ranks()
        if note := self._note_on_accelerate():
            warnings.warn(note, Note, stacklevel=2)
        self._iteration += 1
        if self._calls is not None:
            self._calls.drop()
        self._epochs.new_iterator()
        iteration = _Iteration(self, self._iteration)
        return measuring.recorded(self, iteration) if measuring.in_measured_job() else iteration

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank."""
        self._settle_rank()
        return self._usable().steps_from() if self._order is None else len(self._order)

    @property
    def epoch(self) -> int:
        """The epoch under way, also after a ``break``; between epochs, the one that the next ``iter()`` starts."""
        self._usable(closed=True)
        return self._epochs.now[0]

    def set_epoch(self, epoch: int) -> None:
        """This epoch begins next: with the next ``iter()``, or with the first batch of an iterator that has given none.

        A loaded state that stands inside the same epoch keeps its place. During an epoch, and after a ``break``, the
        state goes on counting the batches handed out: it moves to this epoch with its first batch.
        """
        self._usable(closed=True)
        if self._calls is not None and not self._epochs.has_begun:
            self._calls.drop()
        self._epochs.set(whole_count("epoch", epoch, least=0))

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on elsewhere, with any number of ranks and workers. Small, and JSON-able.

        It counts the batches that were handed out; after the last one of an epoch it stands at the start of the next.
        An ``iter()`` alone hands out nothing and changes nothing.
        """
        state = self._usable(closed=True).state()
        state["epoch"], state["position"] = self._epochs.now
        state["shuffle"] = self._usable(closed=True).shuffle_of(state["epoch"])
        results = None if self._calls is None else form_to_state(self._calls.stage.form)
        return {"version": 1, **state, "fingerprint": f"{state['fingerprint']:016x}", **({} if results is None else {"results": results})}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes a state of :meth:`state_dict`: the next ``iter()`` gives the batch after the last one handed out then.

        The data set, seed and shuffle must be the same; rank count, batch size and workers may differ. With ``shuffle="nodes"`` the rest of the epoch keeps the
        order of the state where its nodes or batches were others. What a callable returns must have the shapes and types
        that ``state["results"]`` tells; without that entry the first result decides again.
        """
        engine = self._usable()
        known = read_state(state, None if self._calls is None else self._calls.kind)
        engine.check_state(**known.numbers, shuffle=known.shuffle, settings=known.settings)
        place = known.numbers["epoch"], known.numbers["position"]
        self._kept_order = (*place, known.shuffle)
        self._keep_order()
        self._epochs.load(place, known.shuffle.startswith("nodes"))
        self._iteration += 1
        if self._calls is not None:
            self._calls.drop()
            self._calls.stage.expect(known.form)

    # ---- what is known

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of their label; empty where labels are numbers or missing."""
        return self._classes or self._dataset.classes

    @property
    def num_samples(self) -> int:
        """Samples of the data set, over all ranks."""
        return len(self._dataset)

    @property
    def notes(self) -> list[str]:
        """Things worth saying once: fallbacks, defaults that were chosen, files that were passed over."""
        return [*self._notes, *self._usable(closed=True).notes]

    @property
    def options(self) -> dict[str, Any]:
        """The options in force, with every "auto" resolved. ``rank`` and ``world_size`` are None until they are needed."""
        engine = self._usable(closed=True)
        rank, world_size = self._rank[:2] if self._rank else (None, None)
        return {**engine.options(), "rank": rank, "world_size": world_size, "output": self._framework.NAME}

    @property
    def errors(self) -> ErrorList:
        """The bad samples so far, in the order of their place."""
        listed = []
        for error in self._usable(closed=True).errors():
            offset = error["offset"]
            listed.append(SampleError(**{**error, "offset": offset if offset >= 0 else None}))
        if self._calls is not None:
            listed += self._calls.errors
        return ErrorList(sorted(listed, key=lambda error: (error.epoch, error.position) if error.epoch is not None else (-1, -1)))

    def plan(self) -> Plan:
        """How samples are made: the passes over the pixels of an image in their order, which operations are fused, what needs the whole image,
        how much working memory each output takes and, after some batches, the share of the time of each pass. ``print(loader.plan())``."""
        engine = self._usable(closed=True)
        then = [f"mixes batches: {text}"] if (text := mixing_text(self._given["transform"])) else []
        if self._calls is not None:
            then.append(f"in Python, for each sample: {self._calls.stage.call.text()}")
        if self._batch_transform is not None:
            then.append("in Python, for each batch: batch_transform")
        if self._items is not None:
            return make_plan("items of a Dataset, collated as torch does it", [], then)
        return make_plan(engine.plan, engine.passes(), then)

    def stats(self) -> dict[str, Any]:
        """Counters since the start (or :meth:`reset_stats`): rates, where the time went, queues, memory.

        ``wait`` splits the time the loop was blocked: fetch (bytes had not arrived), prep (decoding and transforming),
        handoff (ready, not yet delivered). ``python_s`` is the time in Python callables of the calling thread; ``compute_s`` is the rest, the step.
        With ``python_workers`` the time that the loop waits for callables is part of prep; ``python_rows`` counts what they did, ``python_busy_s`` is their time
        and ``python_bytes`` the memory of the workers, which ``memory_used`` contains.
        """
        stats = self._usable(closed=True).stats()
        stats["python_s"] = self._python_s
        if self._calls is not None:
            self._calls.add_to(stats)
        stats["compute_s"] = max(0.0, stats["compute_s"] - stats["python_s"])
        stats["samples_per_s"] = stats["samples"] / stats["running_s"] if stats["running_s"] > 0 else 0.0
        stats["verdict"] = judged(stats)
        return stats

    def reset_stats(self) -> None:
        """Starts all counts again from zero."""
        self._usable().reset_stats()
        self._python_s = 0.0
        if self._calls is not None:
            self._calls.reset_counts()

    def summary(self) -> str:
        """Two lines: what the loop waited for, and how fast it ran."""
        return summary_of(self.stats(), self._batch_transform is not None)

    def set_num_workers(self, workers: int | str) -> None:
        """Changes the number of worker threads at once; never what the batches hold."""
        self._usable().set_num_workers(workers)
        self._given["num_workers"] = workers

    # ---- the end

    def close(self) -> None:
        """Stops and joins every thread. Batches that are still held stay valid. May be called again, also after Ctrl-C ended it early."""
        if self._engine is None or self._engine.is_forked:
            return
        self._closed = True
        if self._copier is not None:
            self._copier.release_finished(wait=True)
        if self._calls is not None:
            self._calls.close()
        self._engine.close()
        _live.discard(self)

    def __enter__(self) -> Loader:
        self._usable()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise UsageError("cannot pickle a Loader: its workers are threads of this process",
                         "make the loader in the process that uses it; torch's DataLoader around it is not needed: iterate over it directly")

    def __repr__(self) -> str:
        if self._engine is None or self._engine.is_forked:
            return "<stoker.Loader>"
        options = self._engine.options()
        words = ", ".join(f"{word}={options[word]!r}" for word in ("batch_size", "shuffle", "seed", "num_workers"))
        ranks = f", rank={self._rank.rank} of {self._rank.world_size}" if self._rank and self._rank.world_size > 1 else ""
        closed = ", closed" if self._closed else ""
        samples = f"{self._dataset.address!r} ({self._dataset.kind}): {len(self._dataset):,} samples"
        return f"<stoker.Loader {samples}, {words}{ranks}, output={self._framework.NAME!r}{closed}>"

    # ---- inside

    def _next(self, iteration: int) -> Batch:
        if _exiting:  # a daemon thread that still iterates while the interpreter ends: ends without a traceback
            raise SystemExit
        engine = self._usable()
        if iteration != self._iteration:
            raise Error("cannot go on with this iterator: the loader has started another one since",
                        "one iterator is live at a time; make a second Loader for a second pass at the same time", "usage")
        try:
            batch = self._next_of_engine(engine) if self._calls is None else self._calls.next(engine, self._epochs)
        except Error:
            if _exiting:
                raise SystemExit from None
            raise
        if batch is None:
            self._epochs.ended()
            raise StopIteration
        if self._batch_transform is not None:
            started = time.perf_counter()
            try:
                self._change_batch(batch, self._batch_transform)
            finally:
                self._python_s += time.perf_counter() - started
        if self._items is not None:
            return batch
        if self._copy:
            batch._copy_out()
        if self._copier is not None:
            self._copier.move(batch)
        return batch

    def _next_of_engine(self, engine: _engine.Loader) -> Batch | None:
        self._epochs.ask()
        slab = engine.next()
        if slab is None:
            return None
        batch = Batch(slab, self._framework, self._dataset.names, self._ragged)
        self._epochs.taken()
        self._epochs.handed_out()
        return batch

    @staticmethod
    def _change_batch(batch: Batch, batch_transform: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        result = batch_transform(batch.data, batch.labels)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise UsageError(f"batch_transform returned {type(result).__name__}, not (data, labels)", "return both; for the data alone, return the labels as they came")
        batch._replace(*result)

    def _make_calls(self, workers: int | None) -> PythonCalls | None:
        if workers is None:
            return None
        function = self._items.__getitem__ if self._items is not None else self._decode or self._transform
        if function is None:
            self._say("python_workers= changes nothing: there is no Python callable for each sample, neither in transform= nor as decode=")
            return None
        kind = "dataset" if self._items is not None else "decode" if self._decode is not None else "transform"
        refuse_beside_callables(self._given, kind)
        from .python_calls import PythonCalls
        call = Call(kind, function, _engine.checked_option("seed", self._given["seed"]), self._framework.NAME)
        return PythonCalls(call, workers, self._given, self._dataset, self._framework, self._on_error, self._copy)

    def _usable(self, closed: bool = False) -> _engine.Loader:
        engine = self._engine
        if engine is None:
            raise Error("this loader was not made: its constructor failed", kind="usage")
        if self._closed and not closed:
            raise Error("cannot use this loader: it is closed", "make a new one", "usage")
        engine.refuse_after_fork()
        return engine

    def _make_engine(self, rank: Rank) -> _engine.Loader:
        return _engine.Loader(self._dataset, {**self._given, "rank": rank.rank, "world_size": rank.world_size}, self._order is not None,
                              None if self._calls is None else self._calls.stage.memory)

    def _steps_ahead(self) -> int:
        """Steps of the epoch that begins next."""
        self._settle_rank()
        if self._order is not None:
            return len(self._order) - -(-self._epochs.start[1] // self.batch_size)
        return self._usable().steps_from(self._epochs.start[1])

    def _iter_after(self, steps: int) -> Iterator[Batch]:
        """An iterator over the epoch that begins next, without its first steps. They are not read."""
        self._settle_rank()
        self._epochs.skip(steps * self.batch_size * self.options["world_size"])
        return iter(self)

    def _settle_rank(self) -> None:
        """Takes the rank when it is first needed, and says from where. Afterwards a process group must agree with it."""
        engine = self._usable()
        if self._rank_is_given:
            return
        if self._rank is not None:
            check_against_process_group(self._rank)
            return
        rank, options = find_rank(), engine.options()
        if (options["rank"], options["world_size"]) != rank[:2]:  # no thread of it has started
            self._engine = self._epochs.engine = self._make_engine(rank)
        self._rank = rank
        self._keep_order()
        if rank.note:
            self._say(rank.note)
            warnings.warn(rank.note, Note, stacklevel=3)

    def _keep_order(self) -> None:
        """``shuffle="nodes"``: the rest of the epoch of a state keeps its order, so that every sample comes once."""
        if self._kept_order is None or not self._usable().keep_order(*self._kept_order) or self._rank is None:
            return
        epoch, _, shuffle = self._kept_order
        self._say(f"epoch {epoch} goes on in the order of the saved state, shuffle={shuffle!r}; later epochs keep samples on the nodes of this run")

    def _compare_ranks(self) -> None:
        options = self._usable().options()
        if self._is_compared or options["world_size"] == 1:
            return
        self._is_compared = True
        epoch, position = self._epochs.start
        facts = {word: options[word] for word in ("world_size", "batch_size", "seed", "shuffle", "last_batch")}
        facts |= {"the version": _engine.version, "the number of samples": len(self._dataset), "the epoch": epoch, "the position": position}
        if self._dataset.kind != "list":  # a list has whole paths, which may differ from machine to machine
            facts["the data"] = f"{self._dataset.fingerprint:016x}"
        check_against_other_ranks(self._place, options["rank"], facts)

    def _say(self, text: str) -> None:
        self._notes.append(text)


class _Iteration(Iterator[Batch]):
    """One pass. Holds the loader, so that ``for batch in stoker.Loader(...)`` works."""

    def __init__(self, loader: Loader, number: int) -> None:
        self._loader = loader
        self._number = number
        self._done = False

    def __next__(self) -> Batch:
        if self._done:
            raise StopIteration
        try:
            return self._loader._next(self._number)
        except StopIteration:
            self._done = True
            raise

    def __length_hint__(self) -> int:
        if self._done:
            return 0
        return self._loader._epochs.steps_left if self._loader._order is None else self._loader._order.steps_left


_live: weakref.WeakSet[Loader] = weakref.WeakSet()
_exiting = False


@atexit.register
def _close_live_loaders() -> None:
    """Threads of the engine must be gone before the interpreter takes its memory apart."""
    global _exiting
    _exiting = True
    failure = None
    for loader in list(_live):
        try:
            if not loader._closed:  # else Ctrl-C ended a close(): its threads are not waited for again
                loader.close()
        except BaseException as error:  # Ctrl-C, or storage that never answers: the others still end
            failure = error
    _engine.set_stream_provider(None)
    if failure is not None:
        raise failure
