"""The ring of the last steps, and who watches over it: docs/guide/longjobs.md.

    nan       the loss or the gradients' norm is not a finite number
    spike     the loss is far above its last ones: is_spike()
    signal    SIGUSR1, or another: signal=USR2; the program's own handler is called as ever
    keep()    the program says so: opguard.keep("reward collapsed")

What is watched is looked at as its step ends. Of a GPU it is copied without waiting and looked at when it has come, mostly
a step later. Then the ring is written to `kept-step<N>`; the other ranks see that folder as their steps end, and write
theirs into it. A second signal before the step has ended writes at once what there is: a step that hangs never ends.

Counterexample: what a watcher finds in a step that the ring has forgotten is still told, and written too late.
The cost: a norm over the gradients and a look at the folder each step, beside the recording itself."""

import collections
import functools
import math
import os
import signal
import sys
import threading

from opguard import _rt
from opguard.load import messages

WATCHERS = ("nan", "spike", "signal")
# A run that goes wrong now and then would fill the disk.
MOST_KEPT = 4

# A loss is a spike above median + MADS * the median absolute deviation of the LOSSES before it, of which there are
# LEAST. Of normally spread losses a MAD is 0.67 standard deviations: a spike is 5.4 above. Below a hundredth of the
# median no deviation counts, or losses that hardly move would spike by themselves.
MADS, LOSSES, LEAST, FLOOR = 8.0, 64, 16, 0.01

# Nobody sends these for what they do by themselves, which is to kill; any other one still does what it did.
_OURS = ("SIGUSR1", "SIGUSR2")

_MOST_TRIES = 500

_rings = []  # of this process: at most one


def is_spike(loss, before):
    """before: the finite losses of earlier steps, the latest LOSSES of them."""
    if len(before) < LEAST:
        return False
    middle = _median(before)
    spread = _median([abs(one - middle) for one in before])
    return loss > middle + MADS * max(spread, FLOOR * abs(middle))


def _median(numbers):
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def parse(text):
    """"nan,signal=USR2" -> {"nan": "", "signal": "USR2"}; ValueError says what is wrong."""
    found = {}
    for word in filter(None, (one.strip() for one in text.split(","))):
        name, _, value = word.partition("=")
        if name not in WATCHERS or (value and name != "signal"):
            raise ValueError("a watcher is nan, spike or signal=NAME, not %r" % word)
        if name == "signal":
            value = (value or "USR1").upper().removeprefix("SIG")
            if not hasattr(signal, "SIG" + value):
                raise ValueError("no signal is called %s" % value)
        found[name] = value
    return found


def install(options):
    ring = Ring(options.log, options.rank, options.ring, parse(options.ring_on))
    _rings[:] = [ring]
    _rt.hold_steps(options.ring, ring.step_ended)
    if "signal" in ring.watchers:
        ring.chain("SIG" + ring.watchers["signal"])


def keep(why):
    for ring in _rings:
        ring.say(why)


def close():
    _rings.clear()


def loss(outputs):
    for ring in _rings:
        ring.meet_loss(outputs)


def gradients(optimizer):
    for ring in _rings:
        ring.meet_gradients(optimizer)


class Ring:
    """log: the folder of logs. steps: how many the ring holds. watchers: what parse() gave."""

    def __init__(self, log, rank, steps, watchers):
        self.log, self.rank, self.steps, self.watchers = os.path.abspath(log), rank, steps, watchers
        self.latest = {}  # by watcher, the last step at which it found something, and whether that was a beginning
        self.why = ""
        self.kept = 0
        self.seen = set(_folders(self.log))
        self.before = collections.deque(maxlen=LOSSES)
        self.losses = []  # of this step: a step has a loss a micro-batch
        self.waiting = collections.deque()  # (what, step, number or tensor of the host, event of the device or None)
        self.told = False

    def say(self, why):
        """The first reason of a step counts."""
        self.why = self.why or why

    def meet_loss(self, outputs):
        root = outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs
        if ("nan" in self.watchers or "spike" in self.watchers) and _is_number(root):
            self._await("loss", root)

    def meet_gradients(self, optimizer):
        """The sum of the norms of all gradients of a device: one number to copy. It is not finite where one of them is
        not. Sparse gradients and those of subclasses are left out."""
        if "nan" not in self.watchers:
            return
        torch = sys.modules["torch"]
        found = [p.grad for group in optimizer.param_groups for p in group["params"] if type(p.grad) is torch.Tensor and p.grad.layout == torch.strided]
        if not found:
            return
        with torch.no_grad():
            for device in {gradient.device for gradient in found}:
                norms = torch._foreach_norm([g for g in found if g.device == device])
                self._await("gradients' norm", torch.stack([norm.double() for norm in norms]).sum())

    def _await(self, what, tensor):
        """On the processor the number is known at once. Of a device it is copied to pinned memory without waiting; the
        event tells when it is there."""
        tensor, step = tensor.detach(), _rt.step()
        if tensor.device.type == "cpu":
            self.waiting.append((what, step, float(tensor), None))
            return
        torch = sys.modules["torch"]
        device = getattr(torch, tensor.device.type)
        host = torch.empty((), dtype=tensor.dtype, pin_memory=True)
        host.copy_(tensor.reshape(()), non_blocking=True)
        event = device.Event()
        event.record()
        self.waiting.append((what, step, host, event))

    def _look(self, ending):
        """ending: the run ends, and what is still on its way is waited for. Else the first that has not come ends the
        look."""
        while self.waiting:
            what, step, number, event = self.waiting[0]
            if event is not None:
                if not ending and not event.query():
                    return
                event.synchronize()
            self.waiting.popleft()
            self._judge(what, step, float(number))

    def _judge(self, what, step, number):
        """A number that has come. Losses that are not finite are no part of what a spike is measured by."""
        if not math.isfinite(number):
            if "nan" in self.watchers and self._begins("nan", step):
                self.say("nan: the %s is %s at step %d" % (what, number, step))
        elif what == "loss":
            if "spike" in self.watchers and is_spike(number, self.before) and self._begins("spike", step):
                self.say("spike: the loss is %.6g at step %d, %.6g in the middle of the last %d" % (number, step, _median(self.before), len(self.before)))
            self.before.append(number)

    def _begins(self, watcher, step):
        """What goes on from step to step is kept once: the ring already holds how it began."""
        latest, began = self.latest.get(watcher, (None, True))
        if latest != step:
            began = latest is None or step - latest > self.steps
            self.latest[watcher] = step, began
        return began

    def step_ended(self, step, ending):
        """For the recorder: None, or the folder to write to and why."""
        self._look(ending)
        folder = ""
        for name in _folders(self.log):
            if name not in self.seen:  # another rank's
                folder, self.why = name, self.why or _said(os.path.join(self.log, name))
                self.seen.add(name)
        if not self.why:
            return None
        why, self.why = self.why, ""
        if self.kept >= MOST_KEPT:
            if not self.told:
                messages.complain("the last steps were kept %d times; what watchers say from now on is left" % self.kept)
            self.told = True
            return None
        self.kept += 1
        return self._make(folder or "kept-step%d" % step, why), why

    def _make(self, name, why):
        """The folder, with this rank's reason in it before its steps: the other ranks see the folder and read why."""
        folder = os.path.join(self.log, name)
        self.seen.add(name)
        os.makedirs(folder, exist_ok=True)
        said = os.path.join(folder, "why%d" % self.rank)
        with open(said, "w", encoding="utf-8") as file:
            file.write("rank %d: %s" % (self.rank, why))
        messages.complain("%s: the last steps are kept in %s" % (why, folder))
        return folder

    def chain(self, name):
        """Our handler stands in front of the program's, be that set before or after: signal.signal() and getsignal() know
        theirs alone."""
        number, setting, getting = getattr(signal, name), signal.signal, signal.getsignal
        theirs, again = [getting(number)], [0]

        def handler(received, frame):
            ends = theirs[0] == signal.SIG_DFL and name not in _OURS
            if ends and _rt.at_work() and again[0] < _MOST_TRIES:
                # It may be writing the ring: what ends the program waits for it.
                if not again[0]:
                    self.say("signal: " + name)
                again[0] += 1
                threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
                return
            if self.why or not again[0]:  # else the step has ended meanwhile, and the ring is written
                self._signalled("signal: " + name, ends)
            if callable(theirs[0]):
                theirs[0](received, frame)
            elif ends:  # what the signal does by itself
                setting(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)

        @functools.wraps(setting)
        def set_theirs(signalnum, handler):
            if signalnum != number or not (callable(handler) or handler in (signal.SIG_DFL, signal.SIG_IGN)):
                return setting(signalnum, handler)
            before, theirs[0] = theirs[0], handler
            return before

        @functools.wraps(getting)
        def get_theirs(signalnum):
            return theirs[0] if signalnum == number else getting(signalnum)

        try:
            setting(number, handler)
        except ValueError:
            messages.complain("%s is not watched: not in the main thread" % name)
        else:
            signal.signal, signal.getsignal = set_theirs, get_theirs

    def _signalled(self, why, ends):
        """The signal has come: the ring is written as the step ends. Where a reason stood already, or the signal ends
        the program, it is written now, in the middle of the step."""
        again = bool(self.why) or ends
        self.say(why)
        if again and self.kept < MOST_KEPT:
            name, why = "kept-step%d" % _rt.step(), "%s, in the middle of step %d" % (why, _rt.step())
            if _rt.write_ring(os.path.join(self.log, name), why):
                self.kept += 1
                self._make(name, why)
                self.why = ""


def _is_number(tensor):
    """A loss is one floating point number. Of several roots, as a GAN may have, none is looked at."""
    torch = sys.modules["torch"]
    return type(tensor) is torch.Tensor and tensor.numel() == 1 and tensor.is_floating_point()


def _folders(log):
    """kept-step<N> of all ranks: the log's folder is shared."""
    try:
        return [name for name in os.listdir(log) if name.startswith("kept-step")]
    except OSError:
        return []


def _said(folder):
    for name in sorted(os.listdir(folder)):
        if name.startswith("why"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return file.read()
    return "another rank keeps its steps"
