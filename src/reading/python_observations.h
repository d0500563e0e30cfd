// reading/python_observations.h: a log's observations as Python's objects.
//
//   rows = observations.read("update")    [(process, "update", step, event, time_ns, fields), ...]
//   observations.read(None)               of every kind
//   observations.kinds()                  {"update": 1200, "optimizer": 40}
//
// fields is a dict: what a row holds, by name; a list is a list, bits are an int. Counterexample:
// columns of numbers as the other tables have. A field may hold a text here and a list there.
//
// The cost: some 0.5 us a value, with the GIL.
#pragma once

#include <memory>
#include <vector>

#include "record/record.h"
#include "runtime/host/py.h"

namespace opguard {

Ref observations_object(std::shared_ptr<const std::vector<ProcessLog>> logs);

// Makes the Python type; false with an error set.
bool init_python_observations();

}  // namespace opguard
