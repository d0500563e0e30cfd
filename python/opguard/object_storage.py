"""A folder in object storage, as pyarrow or fsspec reaches it.

    open_folder("s3://bucket/run_a?region=eu-west-1")   ->  (S3FileSystem, "bucket/run_a")

`s3://`, `gs://`, `hdfs://`, `abfs://` and `file://` are pyarrow's; whatever else has a scheme is fsspec's (`az://`, `oci://`, `memory://`). Who may
read it is said where these libraries look: AWS_PROFILE, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS.
https://arrow.apache.org/docs/python/filesystems.html"""

import os
import urllib.parse

from opguard.logs_need import need

_ARROW = ("gs", "gcs", "hdfs", "viewfs", "abfs", "abfss", "file")
SLOW_S = 60.0  # without a byte
# What a run leaves in its folder: events and their index are read in pieces, or moved away while it runs; what else there is says what they mean.
LOGS = (".log", ".log.incomplete")
INDEXES = (".steps", ".steps.incomplete", ".groups", ".groups.incomplete")
SEGMENTS = (".segment", ".segment.incomplete")


def open_folder(url):
    """-> (pyarrow.fs.FileSystem, the folder's path in it). ImportError: no library for it. ValueError: not a URL of a folder."""
    what = url.split("://", 1)[0]
    fs = need("pyarrow.fs", what + "://")
    if what == "s3":
        filesystem, path = _s3(fs, url)
    elif what in _ARROW:
        filesystem, path = fs.FileSystem.from_uri(url)
    else:
        known, path = need("fsspec.core", what + "://").url_to_fs(url)
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(known))
    return filesystem, path.rstrip("/")


def _s3(fs, url):
    """As from_uri() of pyarrow has it, but that a store may be slow: by default what does not answer within 3 seconds is an error."""
    parts = urllib.parse.urlsplit(url)
    options = dict(urllib.parse.parse_qsl(parts.query))
    if unknown := set(options) - {"region", "scheme", "endpoint_override"}:
        raise ValueError("%s: no option %s; there are region, scheme and endpoint_override" % (shown(url), ", ".join(sorted(unknown))))
    keys, _, bucket = parts.netloc.rpartition("@")
    if keys:
        options["access_key"], _, options["secret_key"] = map(urllib.parse.unquote, keys.partition(":"))
    if not {"region", "endpoint_override"} & set(options):
        options["region"] = fs.resolve_s3_region(bucket)
    filesystem = fs.S3FileSystem(connect_timeout=SLOW_S, request_timeout=SLOW_S, **options)
    return filesystem, bucket + urllib.parse.unquote(parts.path)


def shown(url):
    """It as it may be shown: without a key, and without what follows a `?`."""
    what, rest = url.split("?", 1)[0].split("://", 1)
    place, slash, path = rest.partition("/")
    return "%s://%s%s%s" % (what, place.rpartition("@")[2], slash, path)


def files(filesystem, path):
    """The files of a folder, by name: {name: bytes}; none where it is not there. OSError: it cannot be listed."""
    fs = need("pyarrow.fs", "object storage")
    found = filesystem.get_file_info(fs.FileSelector(path, recursive=False, allow_not_found=True))
    return {info.base_name: info.size for info in sorted(found, key=lambda info: info.base_name) if info.type == fs.FileType.File}


def words_of(error):
    """An error in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def own_stdout():
    """A text file that is our stdout, on which a helper answers line by line. What a library prints from here on goes to stderr."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return replies
