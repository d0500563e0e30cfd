// For `x.attr += y` and `x[i] += y` Python reads, changes and writes back. The place hands out a
// probe for what is read, and lets what is written back through to x.
//
//   og.aug(id, m).weight -= step     reads m.weight: a probe around it, whose `-=` is the event;
//                                    m.weight = the result, as the program has it
//   og.aug(id, t)[i] += 1            t[i] may be a copy: then what writes back is an event, too
#include "runtime/probe/stand_in.h"

namespace opguard {
namespace {

PyTypeObject* g_place_type = nullptr;

PyObject* place_attribute(PyObject* self, PyObject* name) {
  StandIn* p = stand_in(self);
  Ref value(PyObject_GetAttr(p->real, name));
  if (!value || p->waits)
    return value.release();  // what is changed was read before the graph broke
  return make_probe(p->id, value.get(), nullptr);
}

int place_set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(stand_in(self)->real, name, value);
}

PyObject* place_item(PyObject* self, PyObject* key) {
  StandIn* p = stand_in(self);
  Ref value(PyObject_GetItem(p->real, key));
  if (!value) return nullptr;
  const TorchApi* torch = torch_api();
  bool tensor = torch != nullptr && torch->is_tensor(p->real);
  return make_probe(p->id, value.get(), tensor ? p->real : nullptr);
}

// The item may be a copy (an index that is a tensor): then this is what changes the container.
int place_set_item(PyObject* self, PyObject* key, PyObject* value) {
  StandIn* p = stand_in(self);
  const TorchApi* torch = torch_api();
  if (value != nullptr && torch != nullptr && torch->is_tensor(p->real))
    return set_item_of(p->id, Mark::none, p->real, key, value);
  return value ? PyObject_SetItem(p->real, key, value) : PyObject_DelItem(p->real, key);
}

PyType_Slot g_place_slots[] = {
    slot(Py_tp_dealloc, free_stand_in),        slot(Py_tp_traverse, traverse_stand_in),
    slot(Py_tp_members, g_stand_in_members),   slot(Py_tp_getattro, attribute_of<place_attribute>),
    slot(Py_tp_setattro, place_set_attribute), slot(Py_mp_subscript, place_item),
    slot(Py_mp_ass_subscript, place_set_item), {0, nullptr}};

}  // namespace

PyObject* make_place(PyObject* id, PyObject* real) {
  return make_stand_in(g_place_type, id, real, Mark::none);
}

bool is_place(PyObject* object) { return Py_TYPE(object) == g_place_type; }

bool init_place(PyObject* module) {
  g_place_type = add_stand_in_type(module, "opguard._rt.Place", sizeof(StandIn), g_place_slots);
  return g_place_type != nullptr;
}

}  // namespace opguard
