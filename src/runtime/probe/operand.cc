// runtime/probe/operand.cc: a probe: what a program does with og(id, x).
//
//   og("mul:77ab", h) * rstd          nb_multiply of the stand-in: input h, input rstd, h * rstd
//   og("softmax:q7k2", f)(s, dim=1)   tp_call: the callee's inputs, f(s, dim=1)
//   og("lt:e5f6", a) < b              tp_richcompare, with a and b themselves
//
// The stand-in does one operator by the interpreter's own function on the real objects and is gone.
// The program never holds one: `h * rstd` gives what it always gave, or raises the error it always
// raised.
//
// Counterexample: as the right operand of another's operator a stand-in is no probe. It is taken
// out, and the operator goes on with the real object (`binary`).
//
// The cost: an object of the extension, made and freed. Where nothing is recorded 0.1 us in all.
#include "runtime/probe/stand_in.h"

// Behind Python.h.
#include <structmember.h>

#include <cstddef>

namespace opguard {
namespace {

PyTypeObject* g_probe_type = nullptr;

PyObject* probe_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  StandIn* p = stand_in(self);
  Operation operation(p->id, p->mark);
  Ref given = Ref::borrow(args), named = Ref::borrow(kwargs);
  if (!operation.arguments(p->real, given, named)) return operation.finish(nullptr);
  operation.call_inputs(p->real, given.get(), named.get());
  operation.ready();
  return operation.finish(PyObject_Call(p->real, given.get(), named.get()));
}

// The interpreter counts a call of an object without this as two levels of recursion, a function's
// as one.
PyObject* probe_vectorcall(PyObject* self, PyObject* const* args, size_t count, PyObject* names) {
  Ref given, named;
  if (!pack_arguments(args, count, names, given, named)) return nullptr;
  return probe_call(self, given.get(), named.get());
}

// -- arithmetic, items

using Binary = PyObject* (*)(PyObject*, PyObject*);

// `base` is the tensor that an item was taken from, where the item may be a view of it. It is read
// as well, since the operator may change it.
PyObject* apply(StandIn* p, PyObject* other, Binary function) {
  if (is_probe(other)) other = stand_in(other)->real;
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.input("arg0", other);
  operation.input("base", p->more);
  operation.ready();
  return operation.finish(function(p->real, other));
}

template <Binary function>
PyObject* binary(PyObject* left, PyObject* right) {
  if (is_probe(left)) return apply(stand_in(left), right, function);
  return function(left, is_probe(right) ? stand_in(right)->real : right);
}

// x.iadd(y), the augmented assignment of a name.
template <Binary function>
PyObject* augment(PyObject* self, PyObject* other) {
  return apply(stand_in(self), other, function);
}

PyObject* power_of(PyObject* x, PyObject* y) { return PyNumber_Power(x, y, Py_None); }
PyObject* in_place_power_of(PyObject* x, PyObject* y) {
  return PyNumber_InPlacePower(x, y, Py_None);
}

PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) {
  if (modulus != Py_None || !is_probe(left)) Py_RETURN_NOTIMPLEMENTED;
  return apply(stand_in(left), right, power_of);
}

PyObject* in_place_power(PyObject* left, PyObject* right, PyObject*) {
  return apply(stand_in(left), right, in_place_power_of);
}

template <PyObject* (*function)(PyObject*)>
PyObject* unary(PyObject* self) {
  StandIn* p = stand_in(self);
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(function(p->real));
}

PyObject* compare(PyObject* self, PyObject* other, int op) {
  StandIn* p = stand_in(self);
  if (is_probe(other)) other = stand_in(other)->real;
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.input("arg0", other);
  operation.ready();
  return operation.finish(PyObject_RichCompare(p->real, other, op));
}

PyObject* get_item(PyObject* self, PyObject* key) {
  StandIn* p = stand_in(self);
  Operation operation(p->id, p->mark);
  operation.skip_primitive("getitem");
  operation.input("self", p->real);
  operation.input("arg0", key);
  operation.ready();
  return operation.finish(PyObject_GetItem(p->real, key));
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  StandIn* p = stand_in(self);
  return set_item_of(p->id, p->mark, p->real, key, value);
}

// -- attributes, truth, containment, text

bool is_augment_name(PyObject* name);

// One that waits behind a graph break is asked by torch.compile: that is no operator.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  if (is_augment_name(name)) return PyObject_GenericGetAttr(self, name);
  StandIn* p = stand_in(self);
  if (p->waits) return PyObject_GetAttr(p->real, name);
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(PyObject_GetAttr(p->real, name));
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  StandIn* p = stand_in(self);
  // `p.data = v` changes p behind its version counter.
  Operation operation(p->id, p->mark == Mark::none ? Mark::writes : p->mark);
  const TorchApi* torch = torch_api();
  if (torch == nullptr || !torch->is_tensor(p->real)) operation.cancel();
  operation.input("self", p->real);
  operation.input("arg0", value);
  operation.ready();
  return operation.finish(PyObject_SetAttr(p->real, name, value));
}

// The answers of these are no objects; what they compute is in the operators below them, and the
// answer itself in the event's results.
template <typename F>
int answer_of_real(PyObject* self, PyObject* item, F function) {
  StandIn* p = stand_in(self);
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.input("arg0", item);
  operation.ready();
  int result = function(p->real);
  Ref shown = Ref::borrow(result > 0 ? Py_True : Py_False);
  if (result < 0) return operation.finish(result);
  operation.finish(shown.get());
  return result;
}

int truth(PyObject* self) { return answer_of_real(self, nullptr, PyObject_IsTrue); }

int contains(PyObject* self, PyObject* item) {
  return answer_of_real(self, item,
                        [&](PyObject* real) { return PySequence_Contains(real, item); });
}

PyObject* format(PyObject* self, PyObject* spec) {
  StandIn* p = stand_in(self);
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(PyObject_Format(p->real, spec));
}

// -- the type

PyMethodDef g_probe_methods[] = {
    {"iadd", augment<PyNumber_InPlaceAdd>, METH_O, nullptr},
    {"isub", augment<PyNumber_InPlaceSubtract>, METH_O, nullptr},
    {"imul", augment<PyNumber_InPlaceMultiply>, METH_O, nullptr},
    {"imatmul", augment<PyNumber_InPlaceMatrixMultiply>, METH_O, nullptr},
    {"itruediv", augment<PyNumber_InPlaceTrueDivide>, METH_O, nullptr},
    {"ifloordiv", augment<PyNumber_InPlaceFloorDivide>, METH_O, nullptr},
    {"imod", augment<PyNumber_InPlaceRemainder>, METH_O, nullptr},
    {"ipow", augment<in_place_power_of>, METH_O, nullptr},
    {"ilshift", augment<PyNumber_InPlaceLshift>, METH_O, nullptr},
    {"irshift", augment<PyNumber_InPlaceRshift>, METH_O, nullptr},
    {"iand", augment<PyNumber_InPlaceAnd>, METH_O, nullptr},
    {"ixor", augment<PyNumber_InPlaceXor>, METH_O, nullptr},
    {"ior", augment<PyNumber_InPlaceOr>, METH_O, nullptr},
    {"__enter__", enter_operand, METH_NOARGS, nullptr},
    {"__exit__", exit_operand, METH_VARARGS, nullptr},
    {"__aenter__", enter_operand_async, METH_NOARGS, nullptr},
    {"__aexit__", exit_operand_async, METH_VARARGS, nullptr},
    {"__format__", format, METH_O, nullptr},
    {}};

// The methods above that a program can only reach by our own rewriting: x.iadd(y).
bool is_augment_name(PyObject* name) {
  std::string_view text = utf8(name);
  if (text.empty() || text[0] != 'i') return false;
  for (const PyMethodDef* m = g_probe_methods; m->ml_name != nullptr && m->ml_name[0] == 'i'; ++m)
    if (text == m->ml_name) return true;
  return false;
}

PyMemberDef g_probe_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StandIn, weak), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(StandIn, call), READONLY, nullptr},
    {}};

PyType_Slot g_probe_slots[] = {
    slot(Py_tp_dealloc, free_stand_in),
    slot(Py_tp_traverse, traverse_stand_in),
    slot(Py_tp_members, g_probe_members),
    slot(Py_tp_call, probe_call),
    slot(Py_tp_iter, iterate_operand),
    slot(Py_tp_richcompare, compare),
    slot(Py_mp_subscript, get_item),
    slot(Py_mp_ass_subscript, set_item),
    slot(Py_nb_add, binary<PyNumber_Add>),
    slot(Py_nb_subtract, binary<PyNumber_Subtract>),
    slot(Py_nb_multiply, binary<PyNumber_Multiply>),
    slot(Py_nb_matrix_multiply, binary<PyNumber_MatrixMultiply>),
    slot(Py_nb_true_divide, binary<PyNumber_TrueDivide>),
    slot(Py_nb_floor_divide, binary<PyNumber_FloorDivide>),
    slot(Py_nb_remainder, binary<PyNumber_Remainder>),
    slot(Py_nb_divmod, binary<PyNumber_Divmod>),
    slot(Py_nb_power, power),
    slot(Py_nb_lshift, binary<PyNumber_Lshift>),
    slot(Py_nb_rshift, binary<PyNumber_Rshift>),
    slot(Py_nb_and, binary<PyNumber_And>),
    slot(Py_nb_xor, binary<PyNumber_Xor>),
    slot(Py_nb_or, binary<PyNumber_Or>),
    slot(Py_nb_negative, unary<PyNumber_Negative>),
    slot(Py_nb_positive, unary<PyNumber_Positive>),
    slot(Py_nb_invert, unary<PyNumber_Invert>),
    slot(Py_nb_absolute, unary<PyNumber_Absolute>),
    slot(Py_nb_inplace_add, augment<PyNumber_InPlaceAdd>),
    slot(Py_nb_inplace_subtract, augment<PyNumber_InPlaceSubtract>),
    slot(Py_nb_inplace_multiply, augment<PyNumber_InPlaceMultiply>),
    slot(Py_nb_inplace_matrix_multiply, augment<PyNumber_InPlaceMatrixMultiply>),
    slot(Py_nb_inplace_true_divide, augment<PyNumber_InPlaceTrueDivide>),
    slot(Py_nb_inplace_floor_divide, augment<PyNumber_InPlaceFloorDivide>),
    slot(Py_nb_inplace_remainder, augment<PyNumber_InPlaceRemainder>),
    slot(Py_nb_inplace_power, in_place_power),
    slot(Py_nb_inplace_lshift, augment<PyNumber_InPlaceLshift>),
    slot(Py_nb_inplace_rshift, augment<PyNumber_InPlaceRshift>),
    slot(Py_nb_inplace_and, augment<PyNumber_InPlaceAnd>),
    slot(Py_nb_inplace_xor, augment<PyNumber_InPlaceXor>),
    slot(Py_nb_inplace_or, augment<PyNumber_InPlaceOr>),
    slot(Py_nb_bool, truth),
    slot(Py_sq_contains, contains),
    slot(Py_tp_getattro, attribute_of<get_attribute>),
    slot(Py_tp_setattro, set_attribute),
    slot(Py_tp_repr, unary<PyObject_Repr>),
    slot(Py_tp_str, unary<PyObject_Str>),
    slot(Py_am_await, await_operand),
    slot(Py_am_aiter, iterate_operand_async),
    slot(Py_tp_methods, g_probe_methods),
    {0, nullptr}};

}  // namespace

PyObject* make_probe(PyObject* id, PyObject* real, PyObject* more, Mark mark) {
  StandIn* probe = new_stand_in(g_probe_type, id, real, more, mark);
  if (probe != nullptr) probe->call = probe_vectorcall;
  return reinterpret_cast<PyObject*>(probe);
}

bool is_probe(PyObject* object) { return Py_TYPE(object) == g_probe_type; }

int set_item_of(PyObject* id, Mark mark, PyObject* real, PyObject* key, PyObject* value) {
  Operation operation(id, mark);
  operation.input("self", real);
  operation.input("arg0", key);
  operation.input("arg1", value);
  operation.ready();
  return operation.finish(value ? PyObject_SetItem(real, key, value) : PyObject_DelItem(real, key));
}

bool init_operand(PyObject* module) {
  g_probe_type = add_stand_in_type(module, "opguard._rt.Probe", sizeof(StandIn), g_probe_slots,
                                   kHasVectorCall);
  return g_probe_type != nullptr;
}

}  // namespace opguard
