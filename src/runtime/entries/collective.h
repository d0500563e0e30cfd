// runtime/entries/collective.h: a collective between its launch and its landing, when its outputs
// hold what it left.
//
//   work = dist.all_reduce(g, async_op=True)     launch: g is read, its memory is in flight
//   h = model(x)                                 g must not be read: the other ranks write it
//   work.wait()                                  landing: g is read again, an event of its own
//
// python/opguard/ranks/collectives.py sees the calls; nothing here waits for one. Counterexample:
// an operator that reads g in between is recorded, with g unreadable or as it was when it was given
// away.
//
// The cost: two readings of each output. While nothing is in flight, one empty list is looked at.
#pragma once

#include <string>
#include <vector>

#include "runtime/recorder/values.h"

namespace opguard {

// One launched collective; lives in a Python object (opguard._rt.Flight) that the launching side
// and the operator site, if there is one, hold.
struct Flight {
  struct Output {
    Ref object;
    std::string name;
    SlotFlags flags = 0;
    uint32_t version = 0;  // of the tensor at launch
  };

  std::string boundary;
  Event event;              // with the coordinates of the launch
  std::vector<Slot> slots;  // what it was given
  std::vector<Output> outputs;
  std::vector<Ref> overwritten;  // outputs whose value before it nobody reads
  uint64_t generation = 0;       // of the log the strings are in
  bool at_site = false;          // an operator site's event carries group and sequence
  uint32_t launch = kNone;       // that event, once it is in the log
  bool landed = false;

  bool overwrites(PyObject* object) const;
};

// Of an object that Running::flight holds.
Flight& flight_of(const Ref& object);

// The site's operator returned with the collective still in flight. `index` is its event, `inputs`
// what it read. Outputs take the names of the arguments they are. Under OwnWork.
void launched(Flight& flight, uint32_t index, const std::vector<Slot>& inputs,
              const std::vector<Collector::Item>& arguments);

// Whether some collective in flight writes the tensor. Then it must not be read: `slot` gets the
// value it had when it was given away, where that is known, and is unreadable otherwise.
bool read_in_flight(const TensorView& view, Slot& slot);
bool anything_in_flight();

// Calls of torch.distributed are seen by us, so that an operator is a collective only if one ran.
bool watching_collectives();

// opguard._rt's functions of python/opguard/ranks/collectives.py.
// launch(boundary, group, sequence, inputs, outputs, scalars, structure) -> Flight or None.
PyObject* collective_launch(PyObject* module, PyObject* args);
PyObject* collectives_watched(PyObject* module, PyObject* none);

// Makes the Python type; false with an error set.
bool init_collective();

}  // namespace opguard
