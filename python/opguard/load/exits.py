"""Last words: run something when this process ends, however it ends short of a signal.

    at_exit(close)      sys.exit(), the end of the script, an exception, os._exit(0) in a forked child: close() runs

Counterexample: SIGKILL, or any signal that nobody handles. A log that is cut off by it is read up to there."""

import atexit
import os
import threading

from opguard.load import messages

_callbacks = []
_lock = threading.Lock()


def at_exit(callback):
    """callback() at interpreter exit or before os._exit, once. Torch's launchers, multiprocessing's forked
    children and many test programs end by os._exit, where atexit says nothing."""
    with _lock:
        if not _callbacks:
            atexit.register(run)
            _wrap_os_exit()
        _callbacks.append(callback)


def run():
    """Now, and not again."""
    # Last registered, first run, as atexit.
    while _callbacks:
        callback = _callbacks.pop()
        try:
            callback()
        except Exception as error:
            messages.complain("at exit: %s: %s" % (type(error).__name__, error))


def _wrap_os_exit():
    leave = os._exit
    if getattr(leave, "_opguard", False):
        return

    def _exit(status):
        run()
        leave(status)

    _exit._opguard = True
    _exit.__doc__ = leave.__doc__
    os._exit = _exit
