"""Servers of object storage, as PyPI has them: moto, in a process of its own."""

import contextlib
import os
import socket
import subprocess
import sys
import time

KEYS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}


class Server:
    """port. url("bucket/run"): it, there. filesystem(): pyarrow's."""

    def __init__(self, port):
        self.port = port

    def url(self, path):
        return "s3://%s?endpoint_override=127.0.0.1:%d&scheme=http&region=us-east-1" % (path, self.port)

    def filesystem(self):
        from pyarrow import fs

        return fs.S3FileSystem(
            access_key=KEYS["AWS_ACCESS_KEY_ID"],
            secret_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            endpoint_override="127.0.0.1:%d" % self.port,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
            connect_timeout=120,
            request_timeout=120,
        )

    def put(self, folder, path):
        """The files of a folder, as objects below `path`."""
        filesystem = self.filesystem()
        filesystem.create_dir(path.partition("/")[0])
        for file in sorted(folder.iterdir()):
            with filesystem.open_output_stream("%s/%s" % (path, file.name)) as out:
                out.write(file.read_bytes())


@contextlib.contextmanager
def s3_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **KEYS})
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert server.poll() is None, "the server has ended"
            time.sleep(0.2)
        yield Server(port)
    finally:
        server.kill()
        server.wait()
