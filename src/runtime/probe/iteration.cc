// `for batch in og(id, loader)`: the iterator is wrapped, and each item is an operator's result.
//
//   list, tuple, dict     their items exist already: handed over, not made
//   tensor, array         each item reads the whole
//   generator             send() is an event too; what it returns at its end is passed on
//
// Counterexample: an error of what cannot be iterated. The interpreter's text names the operand,
// and sees ours in its place; the text is made anew (name_unpacking).
#include "runtime/host/object.h"
#include "runtime/host/special.h"
#include "runtime/probe/stand_in.h"

namespace opguard {
namespace {

PyTypeObject* g_items_type = nullptr;

// more: what is iterated, if it is a tensor.
struct Items : StandIn {
  bool own_items;  // a list, tuple or dict: its items exist already
};

// "cannot unpack non-iterable int object": what the interpreter says where it finds no __iter__ at
// the operand itself.
void name_unpacking(PyObject* real) {
  bool iterable = type_slot<getiterfunc>(real, Py_tp_iter) != nullptr || PySequence_Check(real);
  if (iterable || !PyErr_ExceptionMatches(PyExc_TypeError)) return;
  std::string opcode;
  {
    SavedError saved;
    opcode = running_opcode();
  }
  if (!opcode.starts_with("UNPACK_") && !opcode.starts_with("LIST_EXTEND")) return;
  const char* text = opcode[0] == 'U' ? "cannot unpack non-iterable %.200s object"
                                      : "Value after * must be an iterable, not %.200s";
  PyErr_Format(PyExc_TypeError, text, type_name(real).c_str());
}

Items* as_items(PyObject* self) { return reinterpret_cast<Items*>(self); }

// tp_iternext and not PyIter_Next: that one swallows a generator's return value.
PyObject* items_next(PyObject* self) {
  Items* it = as_items(self);
  auto next = reinterpret_cast<iternextfunc>(PyType_GetSlot(Py_TYPE(it->real), Py_tp_iternext));
  Operation operation(it->id, it->mark);
  operation.input("self", it->more);
  operation.ready();
  return operation.finish_item(next(it->real), it->own_items);
}

PyObject* items_send(PyObject* self, PyObject* value) {
  Items* it = as_items(self);
  Operation operation(it->id, it->mark);
  operation.ready();
  Ref name(PyUnicode_FromString("send"));
  return operation.finish_item(
      name ? PyObject_CallMethodObjArgs(it->real, name.get(), value, nullptr) : nullptr, false);
}

// Everything else (throw, close, gi_frame, ...) is the iterator's own, and absent where it is
// absent.
PyObject* items_attribute(PyObject* self, PyObject* name) {
  Items* it = as_items(self);
  if (utf8(name) == "send") {
    Ref real(PyObject_GetAttr(it->real, name));
    if (!real) return nullptr;
    return PyObject_GenericGetAttr(self, name);
  }
  return PyObject_GetAttr(it->real, name);
}

PyMethodDef g_items_methods[] = {{"send", items_send, METH_O, nullptr}, {}};
PyType_Slot g_items_slots[] = {
    slot(Py_tp_dealloc, free_stand_in),      slot(Py_tp_traverse, traverse_stand_in),
    slot(Py_tp_members, g_stand_in_members), slot(Py_tp_iter, self_of),
    slot(Py_tp_iternext, items_next),        slot(Py_tp_getattro, attribute_of<items_attribute>),
    slot(Py_tp_methods, g_items_methods),    {0, nullptr}};

}  // namespace

PyObject* iterate_operand(PyObject* self) {
  StandIn* p = stand_in(self);
  Ref iterator(PyObject_GetIter(p->real));
  if (!iterator) name_unpacking(p->real);
  if (!iterator || !recorder().may_record_operators()) return iterator.release();
  const TorchApi* torch = torch_api();
  bool tensor = (torch && torch->is_tensor(p->real)) || is_numpy_array(p->real);
  auto* items =
      new_stand_in<Items>(g_items_type, p->id, iterator.get(), tensor ? p->real : nullptr, p->mark);
  if (items == nullptr) return nullptr;
  items->own_items = PyList_Check(p->real) || PyTuple_Check(p->real) || PyDict_Check(p->real);
  return reinterpret_cast<PyObject*>(items);
}

bool init_iteration(PyObject* module) {
  g_items_type = add_stand_in_type(module, "opguard._rt.Items", sizeof(Items), g_items_slots);
  return g_items_type != nullptr;
}

}  // namespace opguard
