"""A run's rows as a folder of Parquet files, by run, rank and step: `opguard export --dataset`.

    runs/run=a/rank=0/step=37/part-0.parquet

The three are in the folders' names, as Hive has them, and not in the files. DuckDB, Polars, pyarrow and Spark read them as columns, and open no
file that a condition on them leaves out. Runs are added to a dataset one by one.
Counterexample: a table of one Parquet file (Table.to_parquet) is read whole for one step of one rank.
The cost: a log of a folder is in memory at a time, and a file a step."""

import collections
import json
import os
import shutil
import urllib.parse

from opguard.logs import read_log
from opguard.logs_need import need

_FOLDERS = ("run", "rank", "step")  # columns that are folders
_LOGS = (".log", ".log.incomplete")
ABOUT = "_opguard.json"  # readers of datasets leave out what begins so


def run_name(path):
    """What a run is called where nothing is said: its folder, or the one above a folder `log`."""
    path = os.path.abspath(path)
    if os.path.isfile(path) or os.path.basename(path) in ("log", "logs"):
        path = os.path.dirname(path)
    return os.path.basename(path) or "run"


def write(path, out, rows="records", run=None, shown=None):
    """path: a log, or a folder of logs. out: the dataset, made where it is missing. rows: "records" or "events". run: its name there. shown: as
    logs.read_log() has it.

    -> (rows written, files, logs). ValueError: the dataset has a run of this name; what read_log refuses. OSError: it cannot be read or
    written. The run's folder is there only once it is whole."""
    pyarrow, parquet = need("pyarrow", "--dataset"), need("pyarrow.parquet", "--dataset")
    name = "run=" + urllib.parse.quote(run or run_name(path), safe=" ")
    folder, unfinished = os.path.join(out, name), os.path.join(out, ".%s.incomplete" % name)
    if os.path.exists(folder):
        raise ValueError("%s: the dataset has this run already; --run gives another name" % folder)
    shutil.rmtree(unfinished, ignore_errors=True)  # of an export that was killed
    os.makedirs(unfinished)
    try:
        written, files, about = 0, 0, []
        for number, log_path in enumerate(log_files(path)):
            log = read_log(log_path, shown)
            about.append({key: value for key, value in vars(log.processes[0]).items() if key != "locations"})
            reader = pyarrow.RecordBatchReader.from_stream(getattr(log, rows))
            at = os.path.join(unfinished, "rank=%d" % log.rank)
            more, more_files = write_steps(pyarrow, parquet, reader, at, number)
            written, files = written + more, files + more_files
        with open(os.path.join(unfinished, ABOUT), "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1)
        os.rename(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return written, files, len(about)


def log_files(path):
    """The logs of a folder, by rank and start, or the one log."""
    if not os.path.isdir(path):
        return [path]
    found = sorted((name for name in os.listdir(path) if name.endswith(_LOGS)), key=_rank_and_start)
    if not found:
        raise ValueError("%s: holds no log" % path)
    return [os.path.join(path, name) for name in found]


def _rank_and_start(name):
    """rank3-1790000000000000000-4711.log -> (3, 1790000000000000000, 4711); what is named otherwise comes last."""
    numbers = name.partition(".")[0].removeprefix("rank").split("-")
    return (tuple(map(int, numbers)) if len(numbers) == 3 and all(n.isdigit() for n in numbers) else (float("inf"),), name)


def write_steps(pyarrow, parquet, reader, folder, number):
    """Rows of a RecordBatchReader, in the order of a log, as `folder/step=N/part-<number>.parquet` -> (rows, files).

    Where a step comes again behind another one, as an operator does that began in it, it gets a file more."""
    compute = need("pyarrow.compute", "--dataset")
    writer, step_now, rows, files = None, None, 0, collections.Counter()
    try:
        for batch in reader:
            runs = compute.run_end_encode(batch.column("step"))
            begin = 0
            for end, step in zip(runs.run_ends.to_pylist(), runs.values.to_pylist()):
                part = _without_folders(pyarrow, batch.slice(begin, end - begin), number)
                begin = end
                if step != step_now:
                    if writer is not None:
                        writer.close()
                    again = "-%d" % files[step] if files[step] else ""
                    os.makedirs(os.path.join(folder, "step=%d" % step), exist_ok=True)
                    file = os.path.join(folder, "step=%d" % step, "part-%d%s.parquet" % (number, again))
                    writer, step_now = parquet.ParquetWriter(file, part.schema, compression="zstd"), step
                    files[step] += 1
                writer.write_table(part)
                rows += part.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows, files.total()


def _without_folders(pyarrow, batch, number):
    """A table of the columns that are no folders. Texts are texts, so that files of all ranks have one schema; `process` counts the logs."""
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns):
        if name in _FOLDERS:
            continue
        if name == "process":
            column = pyarrow.array([number] * len(column), column.type)
        elif pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        columns[name] = column
    return pyarrow.table(columns)
