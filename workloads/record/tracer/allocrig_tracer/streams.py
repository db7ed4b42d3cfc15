"""Stand-ins for streams and events of torch.cuda. Their order of work goes into the trace."""

import os
import sys
import time

import torch
from torch._subclasses.fake_tensor import FakeTensor


TORCH = os.path.dirname(torch.__file__)


class Stream:
    """A stream of a device. Number 0 is the default stream."""

    current = None  # the function that returns the session: install sets it
    made = 0

    def __init__(self, device=None, priority=0, **kwargs):
        session = Stream.current()
        index = session.current_device().index if device is None else device
        index = index if isinstance(index, int) else torch.device(index).index or 0
        Stream.made += 1
        self._set(index, kwargs.get("number", Stream.made), priority)

    def _set(self, index, number, priority=0):
        self.device, self.device_index, self.number, self.priority = torch.device("cuda", index), index, number, priority
        self.device_type, self.cuda_stream, self.stream_id = 1, number, number

    @classmethod
    def numbered(cls, index, number):
        """The stream with this number."""
        stream = object.__new__(cls)
        stream._set(index, number)
        return stream

    def _session(self):
        session = Stream.current()
        return session if session is not None and session.active() else None

    def wait_event(self, event):
        session = self._session()
        if session is not None and event.number is not None:
            session.trace.event("w", session.ledger.ordinal(self.device_index, self.number), event.number)

    def wait_stream(self, stream):
        if (stream.device_index, stream.number) != (self.device_index, self.number):
            self.wait_event(stream.record_event())

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self):
        session = self._session()
        if session is not None:
            session.trace.event("s", session.ledger.ordinal(self.device_index, self.number))

    def query(self):
        return True

    def is_capturing(self):
        return torch.cuda.is_current_stream_capturing()

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.device_index, self.number) == (other.device_index, other.number)

    def __hash__(self):
        return hash((self.device_index, self.number))

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.number:#x}>"

    def __enter__(self):
        session = Stream.current()
        self._before = (session.current_device().index, session.stream_now(self.device_index))
        session.local.device = self.device_index
        session.set_stream(self.device_index, self.number)
        return self

    def __exit__(self, *error):
        session = Stream.current()
        device, number = self._before
        session.set_stream(self.device_index, number)
        session.local.device = device


HOST = "host"  # the stream on which the host waits for events


class Event:
    """An event of a stream. It has a number in the trace once it has been recorded."""

    made = 0

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, **kwargs):
        self.number, self.time = None, 0.0

    def record(self, stream=None):
        session = Stream.current()
        self.time = time.monotonic()
        if session is None or not session.active():
            return
        stream = stream or torch.cuda.current_stream()
        if self.number is None:
            self.number = Event.made
            Event.made += 1
        session.trace.event("e", self.number, session.ledger.ordinal(stream.device_index, stream.number))

    def wait(self, stream=None):
        (stream or torch.cuda.current_stream()).wait_event(self)

    def query(self):
        return True

    def synchronize(self):
        """The host waits for a stream of its own, which has no work but the wait for this event."""
        session = Stream.current()
        if session is not None and session.active() and self.number is not None:
            waits = session.ledger.ordinal(session.current_device().index, HOST)
            session.trace.event("w", waits, self.number)
            session.trace.event("s", waits)

    def elapsed_time(self, other):
        return max((other.time - self.time) * 1000.0, 1e-3)


class UseStream:
    """torch.cuda.stream(s): the stream is current inside."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.inner = Stream.numbered(self.stream.device_index, self.stream.number)
            self.inner.__enter__()

    def __exit__(self, *error):
        if self.stream is not None:
            self.inner.__exit__(*error)


def install(current):
    """Puts the stand-ins into torch.cuda."""
    Stream.current = current
    cuda = torch.cuda

    def current_stream(device=None):
        session = current()
        index = session.current_device().index if device is None else device
        index = index if isinstance(index, int) else torch.device(index).index or 0
        return Stream.numbered(index, session.stream_now(index))

    def default_stream(device=None):
        return Stream.numbered(current_stream(device).device_index, 0)

    def set_stream(stream):
        if stream is not None:
            current().set_stream(stream.device_index, stream.number)

    def synchronize(device=None):
        session = current()
        if session is not None and session.active():
            session.trace.event("s")
            if not sys._getframe(1).f_code.co_filename.startswith(TORCH):
                session.synchronized()

    def record_stream(self, stream):
        session = current()
        if isinstance(self, FakeTensor) and session is not None and session.active():
            session.ledger.use(session.ledger.of(self), stream.device_index, stream.number)

    for module in (cuda, cuda.streams):
        module.Stream = Stream
        module.Event = Event
        module.ExternalStream = lambda ptr, device=None, **kwargs: Stream.numbered(0, ptr)
    torch.Stream, torch.Event = Stream, Event
    cuda.current_stream = current_stream
    cuda.default_stream = default_stream
    cuda.set_stream = set_stream
    cuda.stream = cuda.StreamContext = UseStream
    cuda.synchronize = synchronize
    torch.Tensor.record_stream = record_stream
    torch._C._cuda_getCurrentRawStream = lambda device: current().stream_now(device)
    accelerator = torch.accelerator
    accelerator.synchronize = synchronize
    accelerator.current_stream = current_stream
    accelerator.set_stream = set_stream
    cuda.is_current_stream_capturing = lambda: current().ledger.pool != 0
