"""Times what one thread does to make batches: getting the samples, then collating them.

Samples are timed one by one only while that is cheap beside what they take, and one batch in 64 otherwise. Reading the
run-queue delay costs about 10 us; for batches that take less than 2 ms it is done for one in 64, and its share is kept.
A thread that did not wait once while it got its samples had no core in the time that it did not compute: that is all delay.
The same holds while it collates.
"""

from . import clocks
from .quiet import quiet

ONE_IN = 64
CHEAP_SAMPLE_NS = 200000
CHEAP_BATCH_NS = 2000000
SLOW_SAMPLE_NS = 1000000
SLOW_TIMES = 10
SLOW_KEPT = 50
HELPERS_MATTER = 0.2  # CPU time of other threads, of the time that the samples took
MADE = '"s":%d,"c":%d,"e":%d,"samples":%d,"cpu":%d,"delay":%d,"helpers":%d,"spinners":%d,"collate_delay":%d'  # what Lane.done holds


class Lane:
    """One per worker, or per iterator that loads in the training thread. Belongs to that thread."""

    def __init__(self, recorder):
        self._recorder = recorder
        self.thread = 0             # of a worker
        self.batch = 0              # index of the batch in work
        self.received = 0           # when its task came
        self.done = None            # figures of the batch that was just made
        self.feeder = None          # the thread that pickles finished batches, in a worker process
        self.owns_process = False   # nothing else of the job runs in it, so its CPU time is the work of this lane
        self._made = 0
        self._mean_sample = 0.0
        self._mean_batch = 0.0
        self._delay_share = 0.0     # of the time without CPU, while it got the samples of the last batch that was read
        self._collate_share = 0.0   # the same while it collated them
        self._slow_left = SLOW_KEPT
        self._with_delay = False
        self._collating = None
        self._count = 0
        self._spinning = None       # the part of nameless native threads in the CPU time of all other threads so far
        self._spinning_seen = 0     # batches made when that was looked up

    def attach(self, fetcher, is_iterable):
        """Times the samples and the collating of torch's fetcher object."""
        collate, fetch = fetcher.collate_fn, fetcher.fetch

        def timed_collate(data):
            self._begin_collate(data)
            return collate(data)

        if is_iterable:
            plain, timed = fetcher.dataset_iter, _TimedIterator(fetcher.dataset_iter, self)
        else:
            plain, timed = fetcher.dataset, _TimedDataset(fetcher.dataset, self)
        place = "dataset_iter" if is_iterable else "dataset"

        def timed_fetch(index):
            each = self._mean_sample >= CHEAP_SAMPLE_NS or self._made % ONE_IN == 0
            setattr(fetcher, place, timed if each else plain)
            self._begin(index, each)
            data = fetch(index)
            self._end(fetcher.auto_collation)
            return data

        fetcher.collate_fn = timed_collate
        fetcher.fetch = timed_fetch

    @quiet
    def sample(self, key, started, cpu_started):
        took = clocks.wall() - started
        if took > SLOW_SAMPLE_NS and self._made > 0 and took > SLOW_TIMES * self._mean_sample and self._slow_left > 0:
            self._slow_left -= 1
            self._recorder.write('{"k":"slow","b":%d,"sample":"%s","ns":%d,"cpu":%d,"mean":%d}' % (
                self.batch, _plain(key), took, clocks.cpu() - cpu_started, self._mean_sample))

    @quiet
    def _begin(self, index, each):
        self._each = each
        self._asked = len(index) if isinstance(index, (list, tuple)) else 1
        self._collating = None
        self.done = None
        self._with_delay = self._mean_batch >= CHEAP_BATCH_NS or self._made % ONE_IN == 0
        self._helpers = self._helper_cpu()
        self._switches = clocks.switches()
        # Close to the wall clock: a core that is lost in between counts as delay of the samples.
        self._delay = clocks.delay() if self._with_delay else 0
        self._cpu = clocks.cpu()
        self._started = clocks.wall()

    def _reading(self, before=None):
        """Now: wall clock, CPU time, switches, delay. The wall clock first: what reading the others takes belongs to what
        follows. The delay is 0 if it is not read for this batch, or not needed since the reading `before`."""
        wall, cpu, switches = clocks.wall(), clocks.cpu(), clocks.switches()
        is_needed = before is None or switches is None or switches != before[2]
        return wall, cpu, switches, clocks.delay() if self._with_delay and is_needed else 0

    @quiet
    def _begin_collate(self, data):
        self._collating = self._reading(), self._helper_cpu()
        self._count = len(data) if isinstance(data, (list, tuple)) else 1

    def _helper_cpu(self):
        """CPU time so far: of programs that the data set ran to their end, and of other threads of a worker process."""
        programs = clocks.children()
        if not self.owns_process:
            return programs, 0
        return programs, clocks.process() - clocks.cpu() - (clocks.of_thread(self.feeder) if self.feeder else 0)

    def _spinning_part(self, threads):
        """The part of `threads`, the CPU time of all other threads so far, that nameless native threads have used.
        OpenMP and BLAS threads spin while they have nothing to do, so their CPU time is not the samples' work."""
        if self._spinning is None or self._made - self._spinning_seen >= ONE_IN:
            self._spinning = min(1.0, clocks.nameless_threads() / max(1, threads))
            self._spinning_seen = self._made
        return self._spinning

    @quiet
    def _end(self, auto_collation):
        ended = self._reading(self._collating and self._collating[0])
        samples_done, helpers = self._collating or (ended, self._helpers)
        count = self._count if auto_collation else self._asked
        begun = (self._started, self._cpu, self._switches, self._delay)
        took = max(1, samples_done[0] - self._started)
        delay, self._delay_share = self._delay_between(begun, samples_done, self._delay_share)
        collate_delay, self._collate_share = self._delay_between(samples_done, ended, self._collate_share)
        if self._each:
            self._mean_sample = took / max(1, count)
        self._mean_batch = ended[0] - self._started
        programs, threads = (max(0, now - before) for now, before in zip(helpers, self._helpers))
        spinners = int(threads * self._spinning_part(helpers[1])) if threads > HELPERS_MATTER * took else 0
        self._made += 1
        self.done = (self._started, samples_done[0], ended[0], count, samples_done[1] - self._cpu, delay, programs + threads - spinners,
                     spinners, collate_delay)

    def _delay_between(self, before, after, share):
        """How long this thread was ready without a core between two readings, and its part of the time without CPU, which
        is `share` for a batch whose delay was not read."""
        without_cpu = max(0, after[0] - before[0] - (after[1] - before[1]))
        if after[2] is not None and after[2] == before[2]:
            return without_cpu, share
        if not self._with_delay:
            return int(share * without_cpu), share
        # The clocks are read one after another. A thread that loses its core between two of them has a delay that is longer
        # than the time it belongs to.
        delay = min(max(0, after[3] - before[3]), without_cpu)
        return delay, delay / max(1, without_cpu)

    @quiet
    def write_batch(self, delivered):
        """The record of the batch that a worker just made; `delivered`: when it was given on."""
        if self.done is None:
            return
        done, self.done = self.done, None
        self._recorder.write(('{"k":"batch","w":%d,"b":%d,"r":%d,"d":%d,' + MADE + "}") % (
            (self.thread, self.batch, self.received, delivered) + done))


class _TimedDataset:
    """Stands for the data set inside torch's fetcher, and nowhere else."""

    def __init__(self, dataset, lane):
        self._dataset = dataset
        self._lane = lane

    def __getitem__(self, key):
        cpu = clocks.cpu()
        started = clocks.wall()
        sample = self._dataset[key]
        self._lane.sample(key, started, cpu)
        return sample

    def __getattr__(self, name):
        return getattr(self._dataset, name)


class _TimedIterator:
    def __init__(self, iterator, lane):
        self._iterator = iterator
        self._lane = lane

    def __iter__(self):
        return self

    def __next__(self):
        cpu = clocks.cpu()
        started = clocks.wall()
        sample = next(self._iterator)
        self._lane.sample("", started, cpu)
        return sample


def _plain(key):
    text = str(key)
    return "".join(c for c in text if " " <= c < "\x7f" and c not in '"\\')[:60]
