// runtime/entries/graph_event.h: events of operators inside compiled graphs.
//
//   eager       og("mul:77ab", h) * 2                       an event
//   compiled    enter(ring, [h]); h * 2; leave(ring, [y])   the same event, from two calls
//
// The graph calls us before and after each operator, with what it read and left; an event comes out
// that is an eager one's equal. Counterexample: a version counter or an address of a tensor in a
// graph says nothing. Inductor gives memory to another tensor unseen, so values are read each time.
#pragma once

#include <cstdint>

#include "runtime/host/py.h"

namespace opguard {

// Methods of the extension; all of them answer quickly where nothing is recorded.
//
// graph_enter(ring, values, numbers, site): an operator begins; values: its input tensors.
PyObject* graph_enter(PyObject*, PyObject* const* args, Py_ssize_t count);
// graph_leave(ring, values, numbers, site) -> index of its event, -1 if there is none.
PyObject* graph_leave(PyObject*, PyObject* const* args, Py_ssize_t count);
// graph_attach(index, site, outputs, history): hooks on the autograd nodes of real outputs.
PyObject* graph_attach(PyObject*, PyObject* const* args, Py_ssize_t count);
// graph_node(forward, values, site): an autograd node of the forward event `forward` has run.
PyObject* graph_node(PyObject*, PyObject* const* args, Py_ssize_t count);

// Index of the latest event from a compiled graph, -1 before the first.
int64_t latest_graph_event();

}  // namespace opguard
