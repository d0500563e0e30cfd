// runtime/recorder/observations.h: what python/opguard/training observes, into the log
// (record/observation.h).
//
//   N = _rt.observation("update", ("parameter", "value:bits", "norm"))   once, a number for good
//   _rt.observe(N, (3, 0x5f1c90aa, 1.25))                                a row
//
// The number outlives the log: a forked child's log says the schema again. A field "name:bits"
// takes integers, also those in its lists, as 64 bits. Values are None, bool, int, float, str, and
// lists and tuples of them. An integer of more than 63 bits is kept as bits where 64 are enough.
//
// Counterexample: a numpy integer, or a tensor. To ask such a one for its number may run the
// program's code, or wait for a device. It is none, as all that a row cannot hold.
//
// The cost: some 0.3 us for six values. No error reaches the caller but for what is no kind.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// observation(kind, fields) -> int
PyObject* observation_schema(PyObject* module, PyObject* args);
// observe(schema, values): nothing where the step is not recorded.
PyObject* observe(PyObject* module, PyObject* const* args, Py_ssize_t count);
// flush_soon(): what was recorded goes to the operating system soon; nobody waits for it.
PyObject* flush_soon(PyObject* module, PyObject* none);
// tell(settings): a dict of str that the log says of itself from now on.
PyObject* tell_settings(PyObject* module, PyObject* settings);
// hashes(tensors) -> a list: og1's h of each. None: it cannot be read here and now, since it is on
// a device, sparse, fake or in flight. tensors: a list or tuple.
PyObject* hashes_of(PyObject* module, PyObject* tensors);
// measures(tensors) -> (hashes, lengths): with the Euclidean length of each, None of what is no
// floating point or cannot be read. One pass.
PyObject* measures_of(PyObject* module, PyObject* tensors);
// row_hashes(tensors, most) -> a digest of each of the first `most` rows of dimension 0. Of the
// tuple those tensors count that have as many rows as the first that can be read.
PyObject* row_hashes_of(PyObject* module, PyObject* args);

}  // namespace opguard
