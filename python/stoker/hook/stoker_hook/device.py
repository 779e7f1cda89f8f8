"""When the device waited for a batch: two events per batch on the consumer's stream, read when they have completed.

An event recorded before the training loop asks for a batch completes when the device has done everything queued until
then; one recorded after it has got the batch completes at once. The time between the two, on the device's own clock, is
for how long the device had nothing to do; from the second to the next first is its work, copies of the batch included
(copies.py). Nothing is ever waited for.
"""

from collections import deque

from .quiet import quiet


class DeviceClock:
    def __init__(self, torch, recorder, copies):
        self._torch = torch
        self._recorder = recorder
        self._copies = copies
        self._pairs = deque()
        self._spare = []
        self._last = None  # the event after the batch before
        self._before = None
        self._copied = None  # between the two
        self.off = False

    @quiet
    def before(self, state):
        if self.off:
            return
        self._before = None
        self._copied = self._copies.take()
        cuda = self._torch.cuda
        if not cuda.is_initialized() or cuda.is_current_stream_capturing():
            return
        self._before = self._record(cuda)

    @quiet
    def after(self, state):
        if self.off or self._before is None:
            return
        try:
            event = self._record(self._torch.cuda)
            self._pairs.append((state.number, state.batch, self._last, self._before, event, self._copied))
            self._last = event
            self._copies.begin()
            self._read()
        except Exception:
            self.off = True

    def _record(self, cuda):
        event = self._spare.pop() if self._spare else cuda.Event(enable_timing=True)
        event.record()
        return event

    def _read(self):
        while self._pairs and self._pairs[0][4].query():
            number, batch, last, before, after, copied = self._pairs.popleft()
            waited = before.elapsed_time(after)
            worked = last.elapsed_time(before) if last is not None else 0.0
            line = '{"k":"device","n":%d,"b":%d,"wait":%d,"work":%d' % (number, batch, waited * 1e6, worked * 1e6)
            if copied is not None:
                line += ',"h2d":%d,"copies":%d' % (1e6 * sum(start.elapsed_time(end) for start, end in copied), len(copied))
                self._copies.give_back(copied)
            self._recorder.write(line + "}")
            self._spare.append(before)
            if last is not None:
                self._spare.append(last)
