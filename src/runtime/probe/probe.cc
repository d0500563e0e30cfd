// runtime/probe/probe.cc: the operand's stand-ins. Each applies the program's operator to the real
// operand, from C and so without a Python frame, and passes results and errors on untouched.
#include "runtime/probe/probe.h"

#include <structmember.h>

#include <cstddef>
#include <initializer_list>

#include "runtime/host/object.h"
#include "runtime/host/special.h"
#include "runtime/host/vector_call.h"
#include "runtime/probe/operation.h"

namespace opguard {
namespace {

PyTypeObject* g_probe_type = nullptr;
PyTypeObject* g_items_type = nullptr;
PyTypeObject* g_place_type = nullptr;
PyTypeObject* g_awaiting_type = nullptr;
PyTypeObject* g_async_items_type = nullptr;

// What all of them hold. They live for one operator, on the stack; but a generator, a coroutine or
// a context keeps its stack for long, and its owner may be what the operand holds: so they take
// part in garbage collection. A cycle is broken elsewhere, as none can be made of them alone.
struct StandIn {
  PyObject_HEAD PyObject* id;
  PyObject* real;  // the operand, or what is stepped through
  PyObject* more;  // of the kind's own; or nullptr
  PyObject* exit;  // of a context: its bound __exit__ or __aexit__; or nullptr
  PyObject* weak;  // dynamo's guards want weak references
  Mark mark;
  bool waits;       // behind a graph break
  VectorCall call;  // of a probe
};

// og(id, x); more: what an augmented item or attribute was read from.
struct Probe : StandIn {};

// iter(og(id, x)); more: what is iterated, if it is a tensor.
struct Items : StandIn {
  bool own_items;  // a list, tuple or dict: its items exist already
};

// og.aug(id, x)
struct Place : StandIn {};

// The iterator of an awaitable: each step is the operator's, and what it returns its output.
struct Awaiting : StandIn {};

// aiter(og(id, x))
struct AsyncItems : StandIn {};

bool is_probe(PyObject* object) { return Py_TYPE(object) == g_probe_type; }
Probe* as_probe(PyObject* object) { return reinterpret_cast<Probe*>(object); }

PyObject* probe_vectorcall(PyObject* self, PyObject* const* args, size_t count, PyObject* names);

template <typename T>
T* make(PyTypeObject* type, PyObject* id, PyObject* real, PyObject* more, Mark mark) {
  auto* object = PyObject_GC_New(T, type);
  if (object == nullptr) return nullptr;
  Py_INCREF(id);
  Py_INCREF(real);
  Py_XINCREF(more);
  object->id = id;
  object->real = real;
  object->more = more;
  object->exit = nullptr;
  object->weak = nullptr;
  object->mark = mark;
  object->waits = false;
  object->call = probe_vectorcall;  // looked at in probes only
  PyObject_GC_Track(object);
  return object;
}

template <typename T>
PyObject* make_object(PyTypeObject* type, PyObject* id, PyObject* real, Mark mark) {
  return reinterpret_cast<PyObject*>(make<T>(type, id, real, nullptr, mark));
}

PyObject* make_probe(PyObject* id, PyObject* real, PyObject* base, Mark mark = Mark::none) {
  return reinterpret_cast<PyObject*>(make<Probe>(g_probe_type, id, real, base, mark));
}

void free_stand_in(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* object = reinterpret_cast<StandIn*>(self);
  if (object->weak != nullptr) PyObject_ClearWeakRefs(self);
  for (PyObject* held : {object->id, object->real, object->more, object->exit}) Py_XDECREF(held);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* object = reinterpret_cast<StandIn*>(self);
  Py_VISIT(Py_TYPE(self));
  for (PyObject* held : {object->id, object->real, object->more, object->exit}) Py_VISIT(held);
  return 0;
}

// What torch.compile asks of a stand-in that waits on the stack of a function whose graph broke
// (python/opguard/compiled/trace.py); no name of a program's begins so. None where `name` is
// another's.
Ref own_field(PyObject* self, PyObject* name) {
  auto* object = reinterpret_cast<StandIn*>(self);
  const std::string_view text = utf8(name);
  if (!text.starts_with("_opguard_")) return {};
  if (text == "_opguard_id") return Ref::borrow(object->id);
  if (text == "_opguard_real") return Ref::borrow(object->real);
  if (text == "_opguard_mark") return Ref(PyLong_FromLong(static_cast<long>(object->mark)));
  return {};
}

template <getattrofunc function>
PyObject* attribute_of(PyObject* self, PyObject* name) {
  Ref own = own_field(self, name);
  return own ? own.release() : function(self, name);
}

PyObject* probe_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Probe* p = as_probe(self);
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

using Binary = PyObject* (*)(PyObject*, PyObject*);

PyObject* apply(Probe* p, PyObject* other, Binary function) {
  if (is_probe(other)) other = as_probe(other)->real;
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.input("arg0", other);
  operation.input("base", p->more);
  operation.ready();
  return operation.finish(function(p->real, other));
}

template <Binary function>
PyObject* binary(PyObject* left, PyObject* right) {
  if (is_probe(left)) return apply(as_probe(left), right, function);
  return function(left, is_probe(right) ? as_probe(right)->real : right);
}

// x.iadd(y), the augmented assignment of a name.
template <Binary function>
PyObject* augment(PyObject* self, PyObject* other) {
  return apply(as_probe(self), other, function);
}

PyObject* power_of(PyObject* x, PyObject* y) { return PyNumber_Power(x, y, Py_None); }
PyObject* in_place_power_of(PyObject* x, PyObject* y) {
  return PyNumber_InPlacePower(x, y, Py_None);
}

PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) {
  if (modulus != Py_None || !is_probe(left)) Py_RETURN_NOTIMPLEMENTED;
  return apply(as_probe(left), right, power_of);
}

PyObject* in_place_power(PyObject* left, PyObject* right, PyObject*) {
  return apply(as_probe(left), right, in_place_power_of);
}

template <PyObject* (*function)(PyObject*)>
PyObject* unary(PyObject* self) {
  Probe* p = as_probe(self);
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(function(p->real));
}

PyObject* compare(PyObject* self, PyObject* other, int op) {
  Probe* p = as_probe(self);
  if (is_probe(other)) other = as_probe(other)->real;
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.input("arg0", other);
  operation.ready();
  return operation.finish(PyObject_RichCompare(p->real, other, op));
}

PyObject* get_item(PyObject* self, PyObject* key) {
  Probe* p = as_probe(self);
  Operation operation(p->id, p->mark);
  operation.skip_primitive("getitem");
  operation.input("self", p->real);
  operation.input("arg0", key);
  operation.ready();
  return operation.finish(PyObject_GetItem(p->real, key));
}

int set_item_of(PyObject* id, Mark mark, PyObject* real, PyObject* key, PyObject* value) {
  Operation operation(id, mark);
  operation.input("self", real);
  operation.input("arg0", key);
  operation.input("arg1", value);
  operation.ready();
  return operation.finish(value ? PyObject_SetItem(real, key, value) : PyObject_DelItem(real, key));
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  Probe* p = as_probe(self);
  return set_item_of(p->id, p->mark, p->real, key, value);
}

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

PyObject* iterate(PyObject* self) {
  Probe* p = as_probe(self);
  Ref iterator(PyObject_GetIter(p->real));
  if (!iterator) name_unpacking(p->real);
  if (!iterator || !recorder().on_operators()) return iterator.release();
  const TorchApi* torch = torch_api();
  bool tensor = (torch && torch->is_tensor(p->real)) || is_numpy_array(p->real);
  auto* items =
      make<Items>(g_items_type, p->id, iterator.get(), tensor ? p->real : nullptr, p->mark);
  if (items == nullptr) return nullptr;
  items->own_items = PyList_Check(p->real) || PyTuple_Check(p->real) || PyDict_Check(p->real);
  return reinterpret_cast<PyObject*>(items);
}

Items* as_items(PyObject* self) { return reinterpret_cast<Items*>(self); }

PyObject* items_self(PyObject* self) {
  Py_INCREF(self);
  return self;
}

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

// --- attributes, truth, containment, text

bool is_augment_name(PyObject* name);

PyObject* get_attribute(PyObject* self, PyObject* name) {
  if (is_augment_name(name)) return PyObject_GenericGetAttr(self, name);
  Probe* p = as_probe(self);
  if (p->waits) return PyObject_GetAttr(p->real, name);
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(PyObject_GetAttr(p->real, name));
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  Probe* p = as_probe(self);
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
int answer(PyObject* self, PyObject* item, F function) {
  Probe* p = as_probe(self);
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

int truth(PyObject* self) { return answer(self, nullptr, PyObject_IsTrue); }

int contains(PyObject* self, PyObject* item) {
  return answer(self, item, [&](PyObject* real) { return PySequence_Contains(real, item); });
}

PyObject* format(PyObject* self, PyObject* spec) {
  Probe* p = as_probe(self);
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(PyObject_Format(p->real, spec));
}

// --- contexts

bool knows_missed_exit() {
  static const bool knows = [] {
    PyObject* version = PySys_GetObject("hexversion");
    return version != nullptr && PyLong_AsLong(version) >= 0x030b0000;
  }();
  return knows;
}

// Both methods are looked up before the first is called, as the interpreter does; up to 3.10 what
// is missing is an attribute.
bool look_up_context(Probe* p, const char* enter, const char* exit, const char* protocol,
                     Ref& method) {
  method = special_method(p->real, enter);
  Ref leave = method ? special_method(p->real, exit) : Ref();
  if (PyErr_Occurred()) return false;
  if (!method || !leave) {
    if (!knows_missed_exit())
      PyErr_SetString(PyExc_AttributeError, method ? exit : enter);
    else if (!method)
      PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the %s protocol",
                   type_name(p->real).c_str(), protocol);
    else
      PyErr_Format(PyExc_TypeError,
                   "'%.200s' object does not support the %s protocol (missed %s method)",
                   type_name(p->real).c_str(), protocol, exit);
    return false;
  }
  Py_XDECREF(p->exit);
  p->exit = leave.release();
  return true;
}

PyObject* not_entered() {
  PyErr_SetString(PyExc_RuntimeError, "a context is left that was not entered");
  return nullptr;
}

PyObject* enter_context(PyObject* self, PyObject*) {
  Probe* p = as_probe(self);
  Ref method;
  if (!look_up_context(p, "__enter__", "__exit__", "context manager", method)) return nullptr;
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(PyObject_CallNoArgs(method.get()));
}

PyObject* exit_context(PyObject* self, PyObject* args) {
  Probe* p = as_probe(self);
  if (p->exit == nullptr) return not_entered();
  // What is raised through the block is the program's, and what leaving it does alone is recorded.
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(PyObject_Call(p->exit, args, nullptr));
}

// --- await

Awaiting* as_awaiting(PyObject* self) { return reinterpret_cast<Awaiting*>(self); }

PySendResult await_send(PyObject* self, PyObject* value, PyObject** result) {
  Awaiting* a = as_awaiting(self);
  Operation operation(a->id, a->mark);
  operation.ready();
  PySendResult state = PyIter_Send(a->real, value, result);
  if (state == PYGEN_RETURN)
    operation.finish(*result);
  else if (state == PYGEN_ERROR && !PyErr_ExceptionMatches(PyExc_StopAsyncIteration))
    operation.finish(static_cast<PyObject*>(nullptr));
  else
    operation.cancel();
  return state;
}

// The result as the interpreter hands it on: the value of a StopIteration.
PyObject* passed_on(PySendResult state, PyObject* result) {
  if (state != PYGEN_RETURN) return result;
  Ref value(result);
  if (value.get() == Py_None) {
    PyErr_SetNone(PyExc_StopIteration);
    return nullptr;
  }
  Ref stop(PyObject_CallFunctionObjArgs(PyExc_StopIteration, value.get(), nullptr));
  if (stop) PyErr_SetObject(PyExc_StopIteration, stop.get());
  return nullptr;
}

PyObject* await_next(PyObject* self) {
  PyObject* result = nullptr;
  PySendResult state = await_send(self, Py_None, &result);
  return passed_on(state, result);
}

PyObject* await_send_method(PyObject* self, PyObject* value) {
  PyObject* result = nullptr;
  PySendResult state = await_send(self, value, &result);
  return passed_on(state, result);
}

// throw, close, cr_frame, ... are the coroutine's own.
PyObject* await_attribute(PyObject* self, PyObject* name) {
  PyObject* real = as_awaiting(self)->real;
  if (utf8(name) == "send" || utf8(name) == "__await__") return PyObject_GenericGetAttr(self, name);
  return PyObject_GetAttr(real, name);
}

// What `await real` steps through: an iterator, or an empty Ref where the interpreter is to say
// what is wrong with it.
Ref await_iterator(PyObject* real) {
  auto await = type_slot<unaryfunc>(real, Py_am_await);
  if (await == nullptr) {
    // A generator of types.coroutine is awaited as it is.
    Ref code = attribute(real, "gi_code");
    Ref flags = code ? attribute(code.get(), "co_flags") : Ref();
    PyErr_Clear();
    constexpr long kIterableCoroutine = 0x100;
    bool coroutine = flags && (PyLong_AsLong(flags.get()) & kIterableCoroutine) != 0;
    return coroutine ? Ref::borrow(real) : Ref();
  }
  return Ref(await(real));
}

// An awaitable that goes on as `real`; `real` itself where it is none. Steals nothing.
PyObject* awaited(PyObject* id, PyObject* real, Mark mark) {
  bool awaitable = type_slot<unaryfunc>(real, Py_am_await) != nullptr;
  if (!recorder().on_operators() || !awaitable) {
    Py_INCREF(real);
    return real;
  }
  Ref iterator = await_iterator(real);
  return iterator ? make_object<Awaiting>(g_awaiting_type, id, iterator.get(), mark) : nullptr;
}

PyObject* await_operand(PyObject* self) {
  Probe* p = as_probe(self);
  Ref iterator = await_iterator(p->real);
  if (!iterator) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression",
                   type_name(p->real).c_str());
    return nullptr;
  }
  return make_object<Awaiting>(g_awaiting_type, p->id, iterator.get(), p->mark);
}

PyObject* enter_async(PyObject* self, PyObject*) {
  Probe* p = as_probe(self);
  Ref method;
  if (!look_up_context(p, "__aenter__", "__aexit__", "asynchronous context manager", method))
    return nullptr;
  Ref result(PyObject_CallNoArgs(method.get()));
  return result ? awaited(p->id, result.get(), p->mark) : nullptr;
}

PyObject* exit_async(PyObject* self, PyObject* args) {
  Probe* p = as_probe(self);
  if (p->exit == nullptr) return not_entered();
  Ref result(PyObject_Call(p->exit, args, nullptr));
  return result ? awaited(p->id, result.get(), p->mark) : nullptr;
}

PyObject* iterate_async(PyObject* self) {
  Probe* p = as_probe(self);
  auto begin = type_slot<unaryfunc>(p->real, Py_am_aiter);
  if (begin == nullptr) {
    PyErr_Format(PyExc_TypeError,
                 "'async for' requires an object with __aiter__ method, got %.100s",
                 type_name(p->real).c_str());
    return nullptr;
  }
  Ref iterator(begin(p->real));
  // One without __anext__ is the interpreter's to complain about.
  if (!iterator || !recorder().on_operators() ||
      type_slot<unaryfunc>(iterator.get(), Py_am_anext) == nullptr)
    return iterator.release();
  return make_object<AsyncItems>(g_async_items_type, p->id, iterator.get(), p->mark);
}

PyObject* async_items_self(PyObject* self) {
  Py_INCREF(self);
  return self;
}

PyObject* async_items_next(PyObject* self) {
  auto* it = reinterpret_cast<AsyncItems*>(self);
  auto next = type_slot<unaryfunc>(it->real, Py_am_anext);
  Ref item(next(it->real));
  return item ? awaited(it->id, item.get(), it->mark) : nullptr;
}

PyObject* async_items_attribute(PyObject* self, PyObject* name) {
  return PyObject_GetAttr(reinterpret_cast<AsyncItems*>(self)->real, name);
}

Place* as_place(PyObject* self) { return reinterpret_cast<Place*>(self); }

PyObject* place_attribute(PyObject* self, PyObject* name) {
  Place* p = as_place(self);
  Ref value(PyObject_GetAttr(p->real, name));
  if (!value || p->waits)
    return value.release();  // what is changed was read before the graph broke
  return make_probe(p->id, value.get(), nullptr);
}

int place_set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(as_place(self)->real, name, value);
}

PyObject* place_item(PyObject* self, PyObject* key) {
  Place* p = as_place(self);
  Ref value(PyObject_GetItem(p->real, key));
  if (!value) return nullptr;
  const TorchApi* torch = torch_api();
  bool tensor = torch != nullptr && torch->is_tensor(p->real);
  return make_probe(p->id, value.get(), tensor ? p->real : nullptr);
}

// The item may be a copy (an index that is a tensor): then this is what changes the container.
int place_set_item(PyObject* self, PyObject* key, PyObject* value) {
  Place* p = as_place(self);
  const TorchApi* torch = torch_api();
  if (value != nullptr && torch != nullptr && torch->is_tensor(p->real))
    return set_item_of(p->id, Mark::none, p->real, key, value);
  return value ? PyObject_SetItem(p->real, key, value) : PyObject_DelItem(p->real, key);
}

bool are_two(Py_ssize_t count) {
  if (count == 2) return true;
  PyErr_SetString(PyExc_TypeError, "a probe takes a boundary id and an operand");
  return false;
}

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
    {"__enter__", enter_context, METH_NOARGS, nullptr},
    {"__exit__", exit_context, METH_VARARGS, nullptr},
    {"__aenter__", enter_async, METH_NOARGS, nullptr},
    {"__aexit__", exit_async, METH_VARARGS, nullptr},
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

PyMemberDef g_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StandIn, weak), READONLY, nullptr}, {}};
PyMemberDef g_probe_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StandIn, weak), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(StandIn, call), READONLY, nullptr},
    {}};

template <typename F>
PyType_Slot slot(int id, F function) {
  return {id, reinterpret_cast<void*>(function)};
}

PyType_Slot g_probe_slots[] = {
    slot(Py_tp_dealloc, free_stand_in),
    slot(Py_tp_traverse, traverse),
    slot(Py_tp_members, g_probe_members),
    slot(Py_tp_call, probe_call),
    slot(Py_tp_iter, iterate),
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
    slot(Py_am_aiter, iterate_async),
    slot(Py_tp_methods, g_probe_methods),
    {0, nullptr}};

PyMethodDef g_items_methods[] = {{"send", items_send, METH_O, nullptr}, {}};
PyType_Slot g_items_slots[] = {
    slot(Py_tp_dealloc, free_stand_in),   slot(Py_tp_traverse, traverse),
    slot(Py_tp_members, g_members),       slot(Py_tp_iter, items_self),
    slot(Py_tp_iternext, items_next),     slot(Py_tp_getattro, attribute_of<items_attribute>),
    slot(Py_tp_methods, g_items_methods), {0, nullptr}};

PyMethodDef g_awaiting_methods[] = {{"send", await_send_method, METH_O, nullptr}, {}};
PyType_Slot g_awaiting_slots[] = {slot(Py_tp_dealloc, free_stand_in),
                                  slot(Py_tp_traverse, traverse),
                                  slot(Py_tp_members, g_members),
                                  slot(Py_am_await, items_self),
                                  slot(Py_am_send, await_send),
                                  slot(Py_tp_iter, items_self),
                                  slot(Py_tp_iternext, await_next),
                                  slot(Py_tp_getattro, attribute_of<await_attribute>),
                                  slot(Py_tp_methods, g_awaiting_methods),
                                  {0, nullptr}};

PyType_Slot g_async_items_slots[] = {slot(Py_tp_dealloc, free_stand_in),
                                     slot(Py_tp_traverse, traverse),
                                     slot(Py_tp_members, g_members),
                                     slot(Py_am_aiter, async_items_self),
                                     slot(Py_am_anext, async_items_next),
                                     slot(Py_tp_getattro, attribute_of<async_items_attribute>),
                                     {0, nullptr}};

PyType_Slot g_place_slots[] = {slot(Py_tp_dealloc, free_stand_in),
                               slot(Py_tp_traverse, traverse),
                               slot(Py_tp_members, g_members),
                               slot(Py_tp_getattro, attribute_of<place_attribute>),
                               slot(Py_tp_setattro, place_set_attribute),
                               slot(Py_mp_subscript, place_item),
                               slot(Py_mp_ass_subscript, place_set_item),
                               {0, nullptr}};

PyTypeObject* make_type(const char* name, int size, PyType_Slot* slots, unsigned long flags = 0) {
  flags |= Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  PyType_Spec spec = {name, size, 0, static_cast<unsigned>(flags), slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace

PyObject* probe(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr) : nullptr;
}

PyObject* name(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr) : nullptr;
}

PyObject* probe_writes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr, Mark::writes) : nullptr;
}

PyObject* probe_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr, Mark::step) : nullptr;
}

PyObject* probe_micro_batch(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr, Mark::micro_batch) : nullptr;
}

PyObject* aug(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!are_two(count)) return nullptr;
  PyObject *id = args[0], *real = args[1];
  if (recorder().on_operators()) return make_object<Place>(g_place_type, id, real, Mark::none);
  Py_INCREF(real);
  return real;
}

PyObject* waiting(PyObject*, PyObject* object) {
  if (Py_TYPE(object) == g_probe_type || Py_TYPE(object) == g_place_type)
    reinterpret_cast<StandIn*>(object)->waits = true;
  Py_INCREF(object);
  return object;
}

bool init_probe(PyObject* module) {
  g_probe_type = make_type("opguard._rt.Probe", sizeof(Probe), g_probe_slots, kHasVectorCall);
  g_items_type = make_type("opguard._rt.Items", sizeof(Items), g_items_slots);
  g_place_type = make_type("opguard._rt.Place", sizeof(Place), g_place_slots);
  g_awaiting_type = make_type("opguard._rt.Awaiting", sizeof(Awaiting), g_awaiting_slots);
  g_async_items_type = make_type("opguard._rt.AsyncItems", sizeof(AsyncItems), g_async_items_slots);
  for (PyTypeObject* type :
       {g_probe_type, g_items_type, g_place_type, g_awaiting_type, g_async_items_type})
    if (type == nullptr || PyModule_AddType(module, type) != 0) return false;
  return true;
}

}  // namespace opguard
