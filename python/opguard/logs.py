"""Logs as tables for Python: opguard.read_log. The columns and their units: docs/formats/reading.md.

Reading and columns are C++ (src/reading/columns.h); numpy, pandas and pyarrow are loaded by the methods that need them."""

import collections
import json
import os
import warnings

from opguard import _rt
from opguard.logs_need import need
from opguard.observed import Observations

SITES_VERSION = 1  # of sites.json: docs/formats/json.md

Location = collections.namedtuple("Location", "package file path line column end_line end_column text callee function")
Location.__doc__ = """Where a boundary is in the sources that ran: lines from 1, columns from 0; `text` is the expression, where the log's folder tells."""


def read_log(path, shown=None):
    """path: a log, or a folder of them (all ranks) -> Log. shown: the folder under another name, as the URL that it was brought from.

    A log that was cut short or damaged gives all that was read up to there, says so in `damage` and warns. ValueError: not a log, a log
    of another version, a folder without logs. OSError: the path cannot be read."""
    os.stat(path)
    processes, events, records, observations = _rt.read_log(path)
    sites = _sites(os.path.join(path, "sites.json")) if os.path.isdir(path) else {}
    processes = [Process(p, sites) for p in processes]
    for process in processes if shown else ():
        process.path = shown + "/" + os.path.basename(process.path)
    log = Log(processes, Table(events, processes), Table(records, processes), Observations(observations, processes))
    for process in log.processes:
        if process.damage:
            warnings.warn("%s: %s" % (process.path, process.damage), stacklevel=3)
    return log


def _sites(path):
    """{boundary: Location} of the file beside a folder's logs, if there is one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = json.load(file)
        if found["opguard_sites"] != SITES_VERSION:
            raise ValueError("version %s, this opguard reads %d" % (found["opguard_sites"], SITES_VERSION))
        numbers = ("line", "column", "end_line", "end_column")
        return {
            boundary: Location(*(site.get(name, 0 if name in numbers else "") for name in Location._fields))
            for boundary, site in found["sites"].items()
        }
    except FileNotFoundError:
        return {}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("%s: not a table of sites (%s)" % (path, error)) from None


class Process:
    """What the log of one process says of itself.

    path, rank, world, pid; start_ns (wall clock, nanoseconds since 1970); settings {name: value}, texts; locations {boundary: Location};
    closed (False: the process did not end well); lost (records that the runtime could not keep); damage ("" or what the reader had to
    leave out, with the byte position); events, records (how many)."""

    def __init__(self, values, sites):
        self.__dict__.update(values)
        self.locations = {**{b: Location(*at) for b, at in self.locations.items()}, **sites}

    def _text(self):
        lost = ", {:,} lost".format(self.lost) if self.lost else ""
        return "rank {} of {}, pid {}: {:,} events, {:,} records{}{}".format(
            self.rank, self.world, self.pid, self.events, self.records, lost, "" if self.closed else ", not closed")  # fmt: skip

    def __repr__(self):
        return "<opguard.Process %s>" % self._text()


def _of_the_only(name):
    """A property of Log that one process's log has, and several have not in common."""

    def value(self):
        if len(self.processes) != 1:
            raise AttributeError("these are the logs of %d processes: ask .processes[i].%s" % (len(self.processes), name))
        return getattr(self.processes[0], name)

    return property(value, doc="Of a single log; of several ask .processes.")


class Log:
    """One log or a folder of them.

    events, records: Table, the rows of all processes. observations: Observations. processes: list of Process, by (rank, start). Of one log also path, rank, world, pid,
    start_ns, settings. Of all together: locations, closed (all of them), lost (their sum), damage (a line each)."""

    def __init__(self, processes, events, records, observations):
        self.processes, self.events, self.records, self.observations = processes, events, records, observations

    path, rank, world, pid = (_of_the_only(n) for n in ("path", "rank", "world", "pid"))
    start_ns, settings = (_of_the_only(n) for n in ("start_ns", "settings"))

    @property
    def locations(self):
        return {boundary: at for process in self.processes for boundary, at in process.locations.items()}

    @property
    def closed(self):
        return all(process.closed for process in self.processes)

    @property
    def lost(self):
        return sum(process.lost for process in self.processes)

    @property
    def damage(self):
        if len(self.processes) == 1:
            return self.processes[0].damage
        return "\n".join("%s: %s" % (process.path, process.damage) for process in self.processes if process.damage)

    def __repr__(self):
        return "<opguard.Log %s>" % "; ".join(process._text() for process in self.processes)


class Table:
    """Rows of a log; every column is made when it is asked for.

    Libraries that know Arrow's PyCapsule interface take it as it is, without a copy: pyarrow.table(t), polars.DataFrame(t),
    duckdb.sql("select ... from t"). `columns` of the methods: names, in the order wanted; None for all."""

    def __init__(self, table, processes):
        self._table, self._processes = table, processes

    @property
    def columns(self):
        """Names, in order."""
        return self._table.columns

    def __len__(self):
        return self._table.rows

    def __repr__(self):
        return "<opguard.Table of {:,} rows: {}>".format(len(self), ", ".join(self.columns))

    def __arrow_c_schema__(self):
        return self._table.schema(None)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.stream(None)

    def __getitem__(self, column):
        """One column as to_numpy gives it."""
        return self.to_numpy([column])[column]

    def to_numpy(self, columns=None):
        """{name: array}, one value a row. Numbers and booleans share the log's memory and are read-only. A column in which values are missing is
        a numpy.ma.MaskedArray. Texts are arrays of str, None where missing; shapes of tuples of int."""
        numpy = need("numpy", "to_numpy")
        return {name: self._numpy(numpy, name) for name in self._wanted(columns)}

    def _wanted(self, columns):
        return self.columns if columns is None else list(columns)

    def _numpy(self, numpy, name):
        values, missing, texts, shapes = self._table.array(name)
        values = numpy.asarray(values)
        if texts is None and shapes is None:
            return values if missing is None else numpy.ma.MaskedArray(values, numpy.asarray(missing))
        return _objects(numpy, shapes if texts is None else texts)[values]

    def to_pandas(self, columns=None):
        """pandas.DataFrame. Texts are categories; integers of which some are missing have pandas' nullable type (UInt64). So no bit of a
        fingerprint is rounded away. pyarrow is not needed."""
        numpy, pandas = need("numpy", "to_pandas"), need("pandas", "to_pandas")
        return pandas.DataFrame({name: self._pandas(numpy, pandas, name) for name in self._wanted(columns)}, copy=False)

    def _pandas(self, numpy, pandas, name):
        values, missing, texts, shapes = self._table.array(name)
        values = numpy.asarray(values)
        if texts is not None:
            return pandas.Categorical.from_codes(values, pandas.Index(texts, dtype=object))
        if shapes is not None:
            return _objects(numpy, shapes)[values]
        return values if missing is None else pandas.arrays.IntegerArray(values, numpy.asarray(missing))

    def to_arrow(self, columns=None):
        """pyarrow.Table. Texts are dictionary columns, shapes lists of int64, missing values null."""
        pyarrow = need("pyarrow", "to_arrow")
        return pyarrow.table(_Selected(self._table, columns))

    def to_parquet(self, path, columns=None):
        """Writes a Parquet file, in batches; the file is there only once it is whole. pyarrow does it. What the processes' logs say of themselves is
        its metadata `opguard`: JSON, a list of objects."""
        pyarrow, parquet = need("pyarrow", "to_parquet"), need("pyarrow.parquet", "to_parquet")
        reader = pyarrow.RecordBatchReader.from_stream(_Selected(self._table, columns))
        about = [{name: value for name, value in vars(process).items() if name != "locations"} for process in self._processes]
        schema = reader.schema.with_metadata({"opguard": json.dumps(about)})
        unfinished = os.fspath(path) + ".incomplete"
        try:
            with parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer:
                for batch in reader:
                    writer.write_batch(batch)
            os.replace(unfinished, path)
        finally:
            if os.path.exists(unfinished):
                os.unlink(unfinished)


class _Selected:
    """Some columns of a table, for those who take Arrow's capsules."""

    def __init__(self, table, columns):
        self._table, self._columns = table, columns

    def __arrow_c_schema__(self):
        return self._table.schema(self._columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.stream(self._columns)


def _objects(numpy, values):
    """An array of these objects and, last, None: what index -1 means."""
    array = numpy.empty(len(values) + 1, dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array
