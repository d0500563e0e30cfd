"""The preflight on a device: which kernels each expression launched (docs/design/activities.md).

    key (use of `y = x @ w`, "forward")      number 3
    push(3); aten::mm; pop()                 the device's library notes 3 beside each launch in between
    drain: ("sgemm_...", correlation 3)      that use's kernels: {"sgemm_...": 1}, its kernel_phases: {"forward": 1}

Libraries that know a device (src/device/plugin.h; CUDA's is opguard_inject.so) get a number pushed around each
operator. They hand over what the device did with the number under which it was launched. So nothing waits for the
device between steps. Counterexample: a kernel with no number has no expression, and is counted as `foreign`. No guess
is made by its time. The cost: two calls into each library for each operator, and one key for each (expression,
phase)."""

import threading

from opguard.load import messages
from opguard.trace import cuda
from opguard.trace.activity_plugin import COLLECTIVE, HOST_CLOCK, KERNEL, Plugin, Sink

OWN = 2**64 - 1  # what we launch ourselves, to look at arguments


class Devices:
    """All plugins of this process. A key says whom a launch belongs to: (use or None, phase); the use None: no
    expression; (ACCUMULATED, "backward"): a parameter's gradient."""

    ACCUMULATED = "accumulated"

    def __init__(self, plugins, report):
        self.plugins, self.report = plugins, report
        self.pushes = [plugin.table.activities_push for plugin in plugins]
        self.pops = [plugin.table.activities_pop for plugin in plugins]
        self.stopped = False
        self.reset()

    def reset(self):
        """A forked child begins anew: numbers of the parent's would name uses that the child does not have.

        Both locks are made anew too, since a thread of the parent's may have held one at the fork."""
        self.lock, self.draining = threading.Lock(), threading.Lock()
        self.keys, self.numbers = [], {}
        self.foreign = {}  # phase -> {kernel: count}; "" is of no operator at all
        self.accumulated = {}

    def number(self, key):
        """What is pushed for a key: its place in `keys` from 1, since 0 means "none" to the library.

        Looked up without the lock first: each operator asks, and a key is new only once."""
        found = self.numbers.get(key)
        if found is None:
            with self.lock:
                found = self.numbers.get(key)
                if found is None:
                    self.keys.append(key)
                    found = self.numbers[key] = len(self.keys)
        return found

    def push(self, number):
        for push in self.pushes:
            push(number)

    def pop(self):
        for pop in self.pops:
            pop()

    def below(self, number, call):
        """call(), its launches under the number."""
        self.push(number)
        try:
            return call()
        finally:
            self.pop()

    def drain(self, wait):
        """Into the uses: what has finished; wait: everything there is, after waiting for the device.

        Never with `wait` while a stream is captured: to wait would spoil the capture. One thread drains at a time."""
        with self.draining:
            for plugin in self.plugins:
                plugin.table.activities_flush(Sink(self.taker(plugin)), None, int(wait))

    def taker(self, plugin):
        """The sink of one plugin. An exception must not pass into the library, which is C: it is counted as an error of
        ours."""

        def take(_, pointer):
            try:
                self.take(plugin, pointer.contents)
            except Exception:
                self.report()

        return take

    def take(self, plugin, activity):
        """One activity, to whom it belongs: a use, the gradients of parameters, or `foreign` by phase.

        Only kernels count for the last two; a copy without an expression is not told. Below a use copies, memsets and
        waits are `transfers`. device_ns adds up the spans of both, in ns of whichever clock. A span that runs backward
        counts 0."""
        number = activity.correlation
        if number == OWN:
            return
        kernel = activity.kind in (KERNEL, COLLECTIVE)
        name = (activity.name or b"").decode("utf-8", "replace")
        plugin.kernels += kernel
        plugin.host_clock = plugin.host_clock or bool(activity.flags & HOST_CLOCK)
        use, phase = self.keys[number - 1] if 0 < number <= len(self.keys) else (None, "")
        if use is None or use is self.ACCUMULATED:
            if kernel:
                names = self.accumulated if use is self.ACCUMULATED else self.foreign.setdefault(phase, {})
                names[name] = names.get(name, 0) + 1
            return
        names = use.kernels if kernel else use.transfers
        names[name] = names.get(name, 0) + 1
        if kernel:
            use.kernel_phases[phase] = use.kernel_phases.get(phase, 0) + 1
        use.streams.add("%s:%d/%d" % (plugin.type, activity.device, activity.stream))
        use.device_ns += max(0, activity.end_ns - activity.start_ns)

    def stop(self):
        if not self.stopped:
            self.stopped = True
            for plugin in self.plugins:
                if plugin.table.activities_stop:
                    plugin.table.activities_stop()

    def fork(self):
        """In a forked child. opguard_inject_forked is the library's own part of it; other libraries may have none."""
        self.reset()
        for plugin in self.plugins:
            plugin.kernels = 0
            forked = getattr(plugin.library, "opguard_inject_forked", None)
            if forked is not None:
                forked()

    def leave_to(self, tool):
        """Gives CUPTI up for another tool, named in the trace. Only opguard_inject.so knows how."""
        for plugin in self.plugins:
            leave = getattr(plugin.library, "opguard_inject_yield", None)
            if leave is not None:
                leave(tool.encode())

    def describe(self):
        """Of the plugins whose device was used."""
        found = [plugin.describe() for plugin in self.plugins]
        return [device for device in found if device["source"] or device["kernels"]]


def capturing(torch):
    """Whether to wait for the device now would spoil a graph's capture."""
    cuda = getattr(torch, "cuda", None)
    try:
        return cuda.is_initialized() and cuda.is_current_stream_capturing()
    except Exception:
        return False


def install(torch, options, report):
    """The devices whose activities are collected, None if there are none. report(): an error of ours."""
    if options.activities == "operators":
        return None
    plugins = []
    loaders = [lambda path=path: Plugin(path) for path in options.plugins]
    for load in loaders + [lambda: cuda.plugin(torch, options)]:
        try:
            plugin = load()
            if plugin is not None and plugin.collects:
                plugin.start()
                plugins.append(plugin)
        except Exception as error:
            messages.complain("no activities of a device: %s: %s" % (type(error).__name__, error))
    if not plugins:
        return None
    devices = Devices(plugins, report)
    cuda.follow_profiler(devices)
    return devices
