"""The logs of a run, moved to object storage while it goes on: the helper of `opguard run --upload s3://bucket/a`.

    serve("run_a/log", "s3://bucket/a")

    -> {"bytes": 0}                            the folder there can be written to, and holds no logs of a run that has ended
    <- finish                                  the program has ended
    -> {"bytes": 1900000000, "files": 41}      all is there, and gone here
    -> {"error": "...", "files": 3}            so many files are still here

A segment goes as soon as it is whole, PARALLEL of them at a time. The rest goes at the end: a log behind its segments and its index, so where a
log is, all of it is. A file here is removed once the size there was looked at; where that fails it is tried again.
Where `opguard run` was killed and the program goes on, so does this, until no process lives that writes a log here.
The cost: PARALLEL times BLOCK_BYTES of memory, and what the library buffers of an object's parts (10 MB each, of pyarrow)."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import sys
import threading
import time

from opguard import object_storage
from opguard.object_storage import own_stdout, words_of

PARALLEL = 4
BLOCK_BYTES = 4 << 20
LOOK_S = 0.5  # between two looks at the folder
TRIES = 4  # of each file at the end; a second, then twice as long each time, between them
MOST_WAIT_S = 30.0
_WRITTEN = ".opguard-upload"  # written once, to see whether it can be
_OBJECTS = ("s3", "gcs", "abfs")  # that have no folders
_PROCESS = re.compile(r"rank-?\d+-\d+-(\d+)\.log\.incomplete$")


class Upload:
    """files, bytes: that are there. error: of the last file that is not, "" if none."""

    def __init__(self, here, url):
        self.here, self.name = here, object_storage.shown(url)
        self.filesystem, self.path = object_storage.open_folder(url)
        self.files = self.bytes = 0
        self.error = ""
        self._lock = threading.Lock()

    def begin(self):
        """ValueError: logs of another run are there. OSError: it cannot be written to."""
        if any(name.endswith(".log") for name in object_storage.files(self.filesystem, self.path)):
            raise ValueError("%s already holds logs; a run of its own needs a folder of its own" % self.name)
        if self.filesystem.type_name not in _OBJECTS:
            self.filesystem.create_dir(self.path, recursive=True)
        try:
            with self.filesystem.open_output_stream(self._there(_WRITTEN)) as out:
                out.write(b"opguard")
        except OSError as error:
            raise OSError("%s cannot be written to: %s" % (self.name, words_of(error))) from error
        with contextlib.suppress(OSError):  # who may not delete leaves it there
            self.filesystem.delete_file(self._there(_WRITTEN))

    def move(self, name):
        """Whether it is there now, and gone here. Else `error` says why."""
        try:
            size = self._copy(name)
            os.unlink(os.path.join(self.here, name))
        except Exception as error:
            self.error = "%s/%s: %s" % (self.name, name, words_of(error))
            return False
        with self._lock:
            self.files, self.bytes = self.files + 1, self.bytes + size
        return True

    def waiting(self, whole_segments=True):
        """The files here, in the order in which they may go."""
        names = [entry.name for entry in os.scandir(self.here) if entry.is_file(follow_symlinks=False)]
        if whole_segments:
            return sorted(name for name in names if name.endswith(".segment"))
        return sorted(names, key=lambda name: (_turn(name), name))

    def is_written(self):
        """Whether a process lives that writes a log here."""
        return any(_is_alive(int(found[1])) for found in map(_PROCESS.match, os.listdir(self.here)) if found)

    def _copy(self, name):
        size = 0
        with open(os.path.join(self.here, name), "rb") as file, self.filesystem.open_output_stream(self._there(name)) as out:
            while block := file.read(BLOCK_BYTES):
                out.write(block)
                size += len(block)
        there = self.filesystem.get_file_info(self._there(name)).size
        if there != size:
            raise OSError("%s bytes are there in place of %d" % (there, size))
        return size

    def _there(self, name):
        return self.path + "/" + name


def serve(here, url, requests=None, replies=None):
    """here: the folder of the logs. requests, replies: text files, stdin and stdout where none are given."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the program; what it has recorded is still to be moved
    requests, replies = requests or sys.stdin, replies or own_stdout()

    def reply(**said):
        with contextlib.suppress(BrokenPipeError):
            replies.write(json.dumps(said) + "\n")
            replies.flush()

    try:
        upload = Upload(here, url)
        upload.begin()
    except Exception as error:
        return reply(error=words_of(error))
    reply(bytes=0)
    over = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        follower = threading.Thread(target=_follow, args=(upload, pool, over))
        follower.start()
        try:
            if not requests.readline():
                while upload.is_written():
                    time.sleep(LOOK_S)
            over.set()
            follower.join()
            _finish(upload, pool)
            left = upload.waiting(whole_segments=False)
        except OSError as error:  # the program has deleted the folder, or moved it
            return reply(error=words_of(error))
        finally:
            over.set()
    if left:
        reply(error=upload.error, files=len(left))
    else:
        reply(bytes=upload.bytes, files=upload.files)


def _follow(upload, pool, over):
    """While the program runs: whole segments. Where one fails it looks less and less often, every MOST_WAIT_S at
    last."""
    wait = LOOK_S
    while not over.wait(wait):
        try:
            done = list(pool.map(upload.move, upload.waiting()))
        except OSError:  # at the end it is told, if it is so still
            continue
        wait = LOOK_S if all(done) else min(2 * wait, MOST_WAIT_S)


def _finish(upload, pool):
    """Segments first, then indexes, then the logs; a log stays while anything before it does."""
    wait = 1.0
    for attempt in range(TRIES):
        if attempt:
            time.sleep(wait)
            wait *= 2
        by_turn = {}
        for name in upload.waiting(whole_segments=False):
            by_turn.setdefault(_turn(name), []).append(name)
        if all(all(list(pool.map(upload.move, names))) for _, names in sorted(by_turn.items())):
            return


def _turn(name):
    """When a file may go: segments 0, indexes 1, anything else 2, logs 3. A reader who sees a log then finds all of
    it."""
    for turn, endings in enumerate((object_storage.SEGMENTS, object_storage.INDEXES)):
        if name.endswith(endings):
            return turn
    return 3 if name.endswith(object_storage.LOGS) else 2


def _is_alive(process):
    """Signal 0 asks only. EPERM says that it lives and is another user's."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
