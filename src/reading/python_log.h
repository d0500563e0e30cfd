// reading/python_log.h: reading logs from Python; python/opguard/logs.py is what users see.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// read_log(path) -> (processes, events, records, observations). The path is of a log, or of a
// folder of them. Processes are a dict each, by (rank, start). Events and records are each a
// LogTable, whose rows are those of all processes. Observations are those of python_observations.h.
// ValueError with the reader's sentence where there is nothing to read.
//
// LogTable, with `columns` a sequence of names or None for all:
//   .rows, .columns            number of rows; names in order
//   .schema(columns)           capsule "arrow_schema"
//   .stream(columns)           capsule "arrow_array_stream"; may be asked for again and again
//   .array(column)             (values, missing, texts, shapes): values and missing are objects
//                              with __array_interface__, which numpy takes without a copy.
//                              missing: one boolean a row, or None if nothing is missing.
//                              texts: list of str that values index (-1 where missing), or None.
//                              shapes: list of tuples that values index, or None.
PyObject* python_read_log(PyObject* module, PyObject* path);

// False with an error set.
bool init_python_log();

}  // namespace opguard
