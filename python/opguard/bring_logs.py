"""What of the logs in object storage is read, written into files here: the helper of `opguard align s3://bucket/a s3://bucket/b`.

    serve({"/tmp/x/0/s3/bucket/a": "s3://bucket/a"})

    -> {"bytes": 1900000000}                                     all there is; the files are here, with their sizes and no content
    <- [["/tmp/x/0/s3/bucket/a/rank0-...steps", 0, 4096], ...]   a line: file, first byte, bytes
    -> {"bytes": 4096}                                           they are in the files now
    -> {"error": "s3://bucket/a/rank0-...steps: ..."}            in place of it

All pieces of a line are fetched at once, PARALLEL at a time; a large one in parts of PART_BYTES. What else a folder holds than logs is brought as
it is opened, where it is small: sites.json, provenance.json.
The cost: a file here takes as much of the disk as was brought of it."""

import concurrent.futures
import json
import os
import sys
import threading

from opguard import object_storage
from opguard.object_storage import own_stdout, words_of

PARALLEL = 16
PART_BYTES = 8 << 20
SMALL_BYTES = 64 << 20
_LARGE = object_storage.LOGS + object_storage.INDEXES + object_storage.SEGMENTS
_SMALL = (".json", ".txt")


class Folder:
    """A folder there, and its files here."""

    def __init__(self, here, url):
        self.here, self.name = here, object_storage.shown(url)
        self.filesystem, self.path = object_storage.open_folder(url)
        self.sizes = {name: size for name, size in object_storage.files(self.filesystem, self.path).items() if _is_of_logs(name, size)}
        if not any(name.endswith(object_storage.LOGS) for name in self.sizes):
            raise ValueError("%s: holds no log" % self.name)
        self._opened, self._lock = {}, threading.Lock()

    def begin(self):
        """Makes the files. -> the pieces to bring at once."""
        for name, size in self.sizes.items():
            with open(os.path.join(self.here, name), "xb") as file:
                file.truncate(size)
        return [(self, name, 0, size) for name, size in self.sizes.items() if not name.endswith(_LARGE)]

    def bring(self, name, at, count):
        """ValueError: the object has become shorter. One that was written over is told by the checksums of what is read."""
        data = self._open(name).read_at(count, at)
        if len(data) != count:
            raise ValueError("%d bytes in place of %d from byte %d on; it has changed meanwhile" % (len(data), count, at))
        with open(os.path.join(self.here, name), "r+b", buffering=0) as file:
            done = 0
            while done < count:
                done += os.pwrite(file.fileno(), memoryview(data)[done:], at + done)
        return count

    def _open(self, name):
        with self._lock:
            opened = self._opened.get(name)
        if opened is None:  # perhaps by several at once: to wait for each other would take longer
            opened = self.filesystem.open_input_file(self.path + "/" + name)
            with self._lock:
                opened = self._opened.setdefault(name, opened)
        return opened


def serve(folders, requests=None, replies=None):
    """folders: {folder here: URL}. requests, replies: text files, stdin and stdout where none are given."""
    requests, replies = requests or sys.stdin, replies or own_stdout()

    def reply(**said):
        replies.write(json.dumps(said) + "\n")
        replies.flush()

    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        try:
            opened = list(pool.map(lambda both: Folder(*both), folders.items()))
            _bring_all(pool, [piece for folder in opened for piece in folder.begin()])
        except Exception as error:
            return reply(error=words_of(error))
        reply(bytes=sum(size for folder in opened for size in folder.sizes.values()))
        by_place = {folder.here: folder for folder in opened}
        for line in requests:
            try:
                pieces = [(by_place[os.path.dirname(path)], os.path.basename(path), at, count) for path, at, count in json.loads(line)]
                brought = _bring_all(pool, pieces)
            except Exception as error:
                reply(error=words_of(error))
            else:
                reply(bytes=brought)


def _is_of_logs(name, size):
    """Logs and indexes of any size, small files of texts: a checkpoint that lies beside them is left where it is."""
    return name.endswith(_LARGE) or (name.endswith(_SMALL) and size <= SMALL_BYTES)


def _bring_all(pool, pieces):
    """All parts at once, in parts of PART_BYTES so that one large piece is fetched by several. -> bytes brought."""
    parts = [
        (folder, name, first, min(PART_BYTES, at + count - first))
        for folder, name, at, count in pieces
        for first in range(at, at + count, PART_BYTES)
    ]

    def bring(part):
        folder, name, at, count = part
        try:
            return folder.bring(name, at, count)
        except Exception as error:
            raise ValueError("%s/%s: %s" % (folder.name, name, words_of(error))) from error

    return sum(pool.map(bring, parts))
