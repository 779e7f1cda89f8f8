"""What a loader does, as its docstrings and docs/reference/loader.md say it, in the plainest way: no threads, no prefetching, no memory.

Which sample stands at which position, and what a bad one leads to, is learnt from a straight run: one worker, one rank, one sample a
batch. Everything else is worked out here.
"""

import numpy

import stoker


class StraightRun:
    """The samples of each epoch, in order, as one worker hands them out one by one."""

    def __init__(self, source, what):
        self._source, self._what, self._known = source, what, {}

    def epoch(self, epoch, on_error):
        key = (epoch, on_error)
        if key not in self._known:
            self._known[key] = self._run(*key)
        return self._known[key]

    def _run(self, epoch, on_error):
        samples, seen = [], 0
        with stoker.Loader(self._source, **self._what, batch_size=1, num_workers=1, rank=0, world_size=1, on_error=on_error) as loader:
            loader.set_epoch(epoch)
            for batch in loader:
                errors = loader.errors
                lengths = batch.lengths
                samples.append(dict(
                    id=int(batch.ids[0]), index=int(batch.indices[0]), valid=bool(batch.valid[0]), label=numpy.array(batch.labels)[0],
                    name=batch.names[0], length=None if lengths is None else int(lengths[0]), data=numpy.array(batch.data)[0],
                    error=errors[-1] if len(errors) > seen else None))
                seen = len(errors)
        return samples


class Model:
    def __init__(self, size, straight, *, batch_size, rank, world_size, last_batch, on_error, max_errors):
        self.size, self.straight = size, straight
        self.batch_size, self.rank, self.world_size, self.last_batch = batch_size, rank, world_size, last_batch
        self.on_error, self.max_errors = on_error, max_errors
        self.planned = (0, 0)   # where the next epoch to begin begins: epoch and position
        self.stands = (0, 0)    # where a state resumes; None: after the last batch
        self.live = 0           # number of the iterator that may be used
        self.begun = False      # it has handed out a batch, or has ended
        self.done = set()       # numbers of those that have ended
        self.entered = None     # the place from which batches are made now
        self.asked = False      # for one, since then
        self.under_way = 0      # its epoch
        self.first = 0          # its position
        self.step = 0           # batches handed out since
        self.epoch_errors = 0
        self.failure = ""       # the batch that is next ends the run
        self.errors = []
        self.batches = self.samples = 0

    # ---- where it stands

    def steps_from(self, position):
        steps, left = divmod(self.size - position, self.batch_size * self.world_size)
        return steps + (1 if left and self.last_batch != "drop" else 0)

    @property
    def epoch_steps(self):
        return self.steps_from(0)

    def is_at_end(self):
        return self.step == self.steps_from(self.first)

    @property
    def state(self):
        if self.stands is not None:
            return self.stands
        if self.is_at_end():
            return self.planned
        return self.under_way, self.first + self.step * self.batch_size * self.world_size

    @property
    def epoch(self):
        return self.state[0]

    # ---- what can be done

    def iter(self):
        self.stands = self.state
        self.live += 1
        self.begun = False
        if self.asked:
            self.entered = None  # a first batch that failed is made again
        self.enter()
        return self.live

    def enter(self):
        if self.entered == self.planned:
            return
        self.entered = self.under_way, self.first = self.planned
        self.asked = False
        self.step = self.epoch_errors = 0
        self.failure = ""

    def begin(self):
        self.stands = None
        if not self.begun:
            self.begun = True
            self.planned = (self.planned[0] + 1, 0)

    def is_inside_an_epoch(self):
        """Some of its batches were handed out, some were not, and no other epoch has begun since."""
        return not self.is_at_end() if self.stands is None else self.stands != self.planned

    def set_epoch(self, epoch):
        inside = self.is_inside_an_epoch()
        if inside or self.planned[0] != epoch:
            self.planned = (epoch, 0)
        if not inside:
            self.stands = self.planned

    def load_state(self, epoch, position):
        self.planned = self.stands = (epoch, position)
        self.entered = None
        self.live += 1

    def next(self, number):
        """A batch, and how the error begins that comes instead."""
        if number in self.done:
            return None, "the end"
        if number != self.live:
            return None, "cannot go on with this iterator"
        if not self.begun:
            self.enter()  # set_epoch may have chosen another one since iter()
        self.asked = True
        if self.is_at_end():
            self.done.add(number)
            self.begin()
            return None, "the end"
        if self.failure:
            return None, self.failure
        rows, errors = [], []
        samples = self.straight.epoch(self.under_way, "replace" if self.on_error == "replace" else "zero")
        for position in self.positions():
            sample = samples[position % self.size]
            if sample["error"] is not None:
                error = sample["error"]
                action = error.action if self.on_error == "replace" else self.on_error
                errors.append(dict(name=error.name, index=error.index, id=error.id, epoch=self.under_way, position=position, stage=error.stage,
                                   cause=error.cause, action=action, message=error.message))
                if self.on_error == "skip":
                    continue
            rows.append({**sample, "valid": sample["valid"] and position < self.size})
        self.errors += errors
        if errors and self.on_error == "raise":
            self.failure = errors[0]["message"]
        elif errors and self.max_errors is not None and self.epoch_errors + len(errors) > self.allowed_errors():
            self.failure = f"{self.epoch_errors + len(errors)} bad samples in epoch {self.under_way}"
        if self.failure:
            return None, self.failure
        batch = dict(epoch=self.under_way, step=self.step, **columns(rows))
        self.begin()
        self.epoch_errors += len(errors)
        self.step += 1
        self.batches += 1
        self.samples += len(rows)
        return batch, ""

    # ---- how

    def positions(self):
        """This rank's part of the next step, as global positions; from ``size`` on they are padding."""
        begin = self.first + self.step * self.batch_size * self.world_size
        left = self.size - begin
        if left < self.batch_size * self.world_size and self.last_batch == "keep":
            each, more = divmod(left, self.world_size)  # shared out evenly, the first ranks getting one more
            begin += self.rank * each + min(self.rank, more)
            return range(begin, begin + each + (self.rank < more))
        begin += self.rank * self.batch_size
        return range(begin, begin + self.batch_size)

    def allowed_errors(self):
        return self.max_errors if self.max_errors >= 1 else max(1, int(self.max_errors * self.size))


def columns(rows):
    """One entry per row; arrays that differ in length are padded with zeros to the longest. An empty batch has no data to compare."""
    batch = {f"{word}{plural}": [row[word] for row in rows] for word, plural in (("id", "s"), ("name", "s"))}
    batch["ids"] = numpy.array(batch["ids"], numpy.int64)
    batch["indices"] = numpy.array([row["index"] for row in rows], numpy.int64)
    batch["valid"] = numpy.array([row["valid"] for row in rows], bool)
    if not rows:
        return batch
    batch["labels"] = numpy.array([row["label"] for row in rows])
    if rows[0]["length"] is not None:
        batch["lengths"] = numpy.array([row["length"] for row in rows], numpy.int64)
    arrays = [row["data"] for row in rows]
    longest = max(array.shape[-1] for array in arrays)
    batch["data"] = numpy.stack([numpy.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, longest - array.shape[-1])]) for array in arrays])
    return batch
