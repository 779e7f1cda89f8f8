"""Times torch's DataLoaders: how long the training loop waits for each batch, and what its worker did meanwhile.

What is replaced, in torch.utils.data: `DataLoader.__iter__` (an epoch begins) and `check_worker_number_rationality`
(called at the end of `__init__`: where in the program was it made?), the iterators' `_next_data` (the wait), the worker
loop (task received, batch given on) and `create_fetcher` (samples, collating). Each replacement calls the original with
the same arguments and returns its result; signatures, types and user objects stay as they are.
"""

import atexit
import functools
import inspect
import itertools
import json
import os
import threading
import weakref

from . import clocks, facts, literals, places
from .arithmetic import Arithmetic
from .copies import Copies, built_for_device, has_device
from .device import DeviceClock
from .lane import MADE, Lane
from .quiet import quiet

SENT_LATE_NS = 1000000  # a batch whose pickling and sending took longer gets a record of its own


def install(module, recorder, early=False):
    hook = getattr(module, "_stoker_hook", None)
    if hook is None:
        module._stoker_hook = hook = Hook(module, recorder)
        hook.install(early)
    return hook.recorder


class Hook:
    def __init__(self, module, recorder):
        self._module = module
        self.recorder = recorder
        self._loaders = weakref.WeakKeyDictionary()  # DataLoader -> number
        self._made_at = weakref.WeakKeyDictionary()  # DataLoader -> where
        self._last_made = {}  # where and with which settings -> number, weak reference
        self._numbers = itertools.count()
        self._iterations = itertools.count()
        self._local = threading.local()
        self._copies = Copies(module.torch)
        self._arithmetic = Arithmetic(module.torch, recorder)
        while recorder is not None:
            recorder.hello = facts.process_line
            recorder = recorder.also

    def install(self, early):
        module = self._module
        if early:
            self._arithmetic.watch()
            if has_device(module.torch):
                self._copies.install()
        utils = module._utils
        self._replace_iter(module.DataLoader)
        self._replace_check(module.DataLoader)
        self._replace_next(module._SingleProcessDataLoaderIter)
        self._replace_next(module._MultiProcessingDataLoaderIter)
        self._replace_fetcher(module._DatasetKind)
        self._replace_worker_loop(utils.worker)
        self._replace_pin(utils.pin_memory)
        atexit.register(self.recorder.close)
        self.recorder.write('{"k":"installed","early":%d}' % early)

    def forget(self):
        """Describes loaders again when they are iterated next: for a recorder that was added since."""
        self._loaders.clear()
        self._last_made.clear()
        self._arithmetic.say_again()

    # ---- the training thread

    def _replace_iter(self, cls):
        original = cls.__iter__

        @functools.wraps(original)
        def __iter__(loader):
            started = clocks.wall()
            iterator = original(loader)
            self._begin_epoch(loader, iterator, started)
            return iterator

        cls.__iter__ = __iter__

    def _replace_check(self, cls):
        original = cls.__dict__.get("check_worker_number_rationality")
        if original is not None:
            cls.check_worker_number_rationality = _NotedMethod(original, self._note_place)

    @quiet
    def _note_place(self, loader):
        if loader not in self._made_at:
            self._made_at[loader] = places.caller()

    @quiet
    def _begin_epoch(self, loader, iterator, started):
        ended = clocks.wall()
        if getattr(iterator, "is_of_stoker", False):  # the stoker.Loader inside tells about itself
            return
        number = self._number_of(loader)
        state = getattr(iterator, "_stoker", None)
        if state is None:
            state = iterator._stoker = _Iteration(number, next(self._iterations))
        else:  # persistent workers: the same iterator again
            state.number = next(self._iterations)
            state.batch = 0
        lane = getattr(getattr(iterator, "_dataset_fetcher", None), "_stoker_lane", None)
        if lane is not None:
            lane.batch = 0
        state.lane = lane
        workers = [getattr(worker, "pid", None) or 0 for worker in getattr(iterator, "_workers", ())]
        self.recorder.write(json.dumps(
            {"k": "iter", "i": number, "n": state.number, "t0": started, "t1": ended, "workers": workers,
             "seed": getattr(iterator, "_base_seed", 0), "rank": getattr(iterator, "_rank", 0),
             "world": getattr(iterator, "_world_size", 1), "thread": threading.get_native_id()}))

    def _number_of(self, loader):
        """A loader that is created again for each epoch keeps the number of the one before it, which is gone by then."""
        number = self._loaders.get(loader)
        if number is not None:
            return number
        place = self._made_at.get(loader)
        line = facts.loader_facts(loader, place)
        if os.environ.get("STOKER_LOOK") == "1" and place:
            line["literals"] = literals.of_call(place["file"], place["line"])
        key = (place and place.get("stack"), json.dumps(line))
        number, before = self._last_made.get(key, (None, None))
        if before is None or before() is not None:
            number = next(self._numbers)
            self.recorder.write(json.dumps({"k": "loader", "i": number, **line}))
        self._last_made[key] = number, weakref.ref(loader)
        self._loaders[loader] = number
        return number

    def _replace_next(self, cls):
        original = cls._next_data
        torch = self._module.torch
        # Asked once: a clock that has nothing to look at costs every step a little.
        device = DeviceClock(torch, self.recorder, self._copies) if built_for_device(torch) else None
        get_data = getattr(cls, "_get_data", None)

        @functools.wraps(original)
        def _next_data(iterator):
            state = getattr(iterator, "_stoker", None)
            if state is None or state.inside:
                return original(iterator)
            state.inside = True
            if device is not None:
                device.before(state)
            cpu = clocks.process()
            started = clocks.wall()
            try:
                data = original(iterator)
            except StopIteration:
                self.recorder.write('{"k":"end","n":%d,"t0":%d,"t1":%d}' % (state.number, started, clocks.wall()))
                raise
            finally:
                state.inside = False
            ended = clocks.wall()
            self._note_next(iterator, state, (started, ended, torch.is_grad_enabled(), cpu, clocks.process()))
            if device is not None:
                device.after(state)
            if state.described is False:
                state.described = True
                self._describe(state, data)
            return data

        cls._next_data = _next_data
        if get_data is not None:
            @functools.wraps(get_data)
            def _get_data(iterator):
                data = get_data(iterator)
                state = getattr(iterator, "_stoker", None)
                if state is not None:
                    state.got = data[0]
                return data

            cls._get_data = _get_data

    @quiet
    def _note_next(self, iterator, state, times):
        """`times`: asked, got, whether autograd is on, CPU time of the process at both."""
        lane = state.lane
        made = ""
        if lane is not None and lane.done is not None:  # made by this thread: one line for both
            state.batch = lane.batch
            lane.batch += 1
            done, lane.done = lane.done, None
            made = "," + MADE % done
        elif getattr(iterator, "_in_order", True):
            state.batch = iterator._rcvd_idx - 1
        else:
            state.batch = state.got
        self.recorder.write('{"k":"next","n":%d,"b":%d,"t0":%d,"t1":%d,"g":%d,"p0":%d,"p1":%d%s}' % (
            (state.number, state.batch) + times + (made,)))

    @quiet
    def _describe(self, state, data):
        self.recorder.write(facts.batch_line(state.number, data, self._module.torch))

    # ---- getting samples, in a worker or in the training thread

    def _replace_fetcher(self, kinds):
        original = kinds.create_fetcher

        @functools.wraps(original)
        def create_fetcher(kind, *arguments, **options):
            fetcher = original(kind, *arguments, **options)
            self._attach(fetcher, kind == kinds.Iterable)
            return fetcher

        kinds.create_fetcher = staticmethod(create_fetcher)

    @quiet
    def _attach(self, fetcher, is_iterable):
        lane = getattr(self._local, "lane", None)
        if lane is None:
            lane = Lane(self.recorder)
        lane.attach(fetcher, is_iterable)
        fetcher._stoker_lane = lane

    def _replace_worker_loop(self, worker):
        original = worker._worker_loop
        signature = inspect.signature(original)

        @functools.wraps(original)
        def _worker_loop(*arguments, **options):
            try:
                bound = signature.bind(*arguments, **options)
                self._begin_worker(bound.arguments)
                arguments, options = bound.args, bound.kwargs
            except Exception:
                pass
            try:
                return original(*arguments, **options)
            finally:
                self._end_worker()

        worker._worker_loop = _worker_loop

    def _begin_worker(self, arguments):
        self._local.lane = lane = Lane(self.recorder)
        lane.thread = threading.get_native_id()
        lane.owns_process = is_process = threading.current_thread() is threading.main_thread()
        self.recorder.write('{"k":"worker","id":%d,"seed":%d,"process":%d,"thread":%d,"t":%d}' % (
            arguments["worker_id"], arguments["base_seed"], is_process, threading.get_native_id(), clocks.wall()))
        arguments["index_queue"] = _Tasks(arguments["index_queue"], lane)
        arguments["data_queue"] = _Results(arguments["data_queue"], lane, self.recorder)

    @quiet
    def _end_worker(self):
        lane, self._local.lane = self._local.lane, None
        self.recorder.write('{"k":"bye","thread":%d,"t":%d}' % (threading.get_native_id(), clocks.wall()))
        if lane.owns_process:
            self.recorder.close()

    def _replace_pin(self, pin):
        original = pin.pin_memory

        @functools.wraps(original)
        def pin_memory(data, *arguments, **options):
            if getattr(self._local, "pinning", False):
                return original(data, *arguments, **options)
            self._local.pinning = True
            started = clocks.wall()
            try:
                return original(data, *arguments, **options)
            finally:
                self._local.pinning = False
                self.recorder.write('{"k":"pin","t0":%d,"t1":%d}' % (started, clocks.wall()))

        pin.pin_memory = pin_memory


class _NotedMethod:
    """A method of loaders that is noted when it is looked up, and then called without a frame of ours in between: torch's
    warnings count frames to find the line that they name."""

    def __init__(self, original, note):
        self._original = original
        self._note = note

    def __get__(self, loader, owner=None):
        if loader is not None:
            self._note(loader)
        return self._original.__get__(loader, owner)


class _Iteration:
    """What the hook remembers of an iterator."""

    def __init__(self, loader, number):
        self.loader = loader
        self.number = number
        self.batch = 0
        self.got = 0
        self.inside = False
        self.described = False
        self.lane = None
        self.events = None


class _Tasks:
    """The queue of tasks as a worker sees it."""

    def __init__(self, queue, lane):
        self._queue = queue
        self._lane = lane

    def get(self, *arguments, **options):
        task = self._queue.get(*arguments, **options)
        if isinstance(task, tuple):
            self._lane.received = clocks.wall()
            self._lane.batch = task[0]
        return task

    def __getattr__(self, name):
        return getattr(self._queue, name)


class _Results:
    """The queue of batches as a worker sees it. Pickling and sending is done by a thread of the queue, in order."""

    def __init__(self, queue, lane, recorder):
        self._queue = queue
        self._lane = lane
        self.recorder = recorder
        self._on_the_way = []
        send = getattr(queue, "_send_bytes", None)
        if send is not None and getattr(queue, "_thread", None) is None:
            def timed_send(data, *arguments):
                started = clocks.wall()
                result = send(data, *arguments)
                self._sent(started, len(data))
                return result

            queue._send_bytes = timed_send

    def put(self, item, *arguments, **options):
        now = clocks.wall()
        self._on_the_way.append((self._lane.batch if self._lane.done is not None else -1, now))
        self._lane.write_batch(now)
        result = self._queue.put(item, *arguments, **options)
        if self._lane.feeder is None:
            self._lane.feeder = getattr(self._queue, "_thread", None)
        return result

    @quiet
    def _sent(self, started, size):
        batch, put = self._on_the_way.pop(0)
        now = clocks.wall()
        if batch >= 0 and (now - put > SENT_LATE_NS or batch % 64 == 0):
            self.recorder.write('{"k":"sent","b":%d,"d":%d,"p":%d,"t":%d,"bytes":%d,"thread":%d}' % (
                batch, put, started, now, size, self._lane.thread))

    def __getattr__(self, name):
        return getattr(self._queue, name)
