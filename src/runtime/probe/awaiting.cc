// runtime/probe/awaiting.cc: await og(id, x), async for ... in og(id, x).
//
//   await og("w", work)         the interpreter steps through our iterator, and that through work's
//     send, send                each is an Operation; work has not ended: it is cancelled
//     send -> returned 3        this one is the event, with the result 3
//   async for b in og("d", d)   each item that is awaited is an event
//
// So an event is the last step of an awaitable, not all the time it was waited for. Counterexample:
// an Operation that is open while the coroutine is parked. Other coroutines of the thread run
// meanwhile, and would be recorded as inside of it.
//
// Whatever else is asked of the coroutine (throw, close, cr_frame) is answered by its own.
#include "runtime/host/special.h"
#include "runtime/probe/stand_in.h"

namespace opguard {
namespace {

PyTypeObject* g_awaiting_type = nullptr;     // the iterator of an awaitable
PyTypeObject* g_async_items_type = nullptr;  // aiter(og(id, x))

// The end of an asynchronous iteration is no event, as that of a plain one is none.
PySendResult await_send(PyObject* self, PyObject* value, PyObject** result) {
  StandIn* a = stand_in(self);
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
  PyObject* real = stand_in(self)->real;
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

PyObject* async_items_next(PyObject* self) {
  StandIn* it = stand_in(self);
  auto next = type_slot<unaryfunc>(it->real, Py_am_anext);
  Ref item(next(it->real));
  return item ? awaited(it->id, item.get(), it->mark) : nullptr;
}

PyObject* async_items_attribute(PyObject* self, PyObject* name) {
  return PyObject_GetAttr(stand_in(self)->real, name);
}

PyMethodDef g_awaiting_methods[] = {{"send", await_send_method, METH_O, nullptr}, {}};
PyType_Slot g_awaiting_slots[] = {slot(Py_tp_dealloc, free_stand_in),
                                  slot(Py_tp_traverse, traverse_stand_in),
                                  slot(Py_tp_members, g_stand_in_members),
                                  slot(Py_am_await, self_of),
                                  slot(Py_am_send, await_send),
                                  slot(Py_tp_iter, self_of),
                                  slot(Py_tp_iternext, await_next),
                                  slot(Py_tp_getattro, attribute_of<await_attribute>),
                                  slot(Py_tp_methods, g_awaiting_methods),
                                  {0, nullptr}};

PyType_Slot g_async_items_slots[] = {slot(Py_tp_dealloc, free_stand_in),
                                     slot(Py_tp_traverse, traverse_stand_in),
                                     slot(Py_tp_members, g_stand_in_members),
                                     slot(Py_am_aiter, self_of),
                                     slot(Py_am_anext, async_items_next),
                                     slot(Py_tp_getattro, attribute_of<async_items_attribute>),
                                     {0, nullptr}};

}  // namespace

PyObject* awaited(PyObject* id, PyObject* real, Mark mark) {
  bool awaitable = type_slot<unaryfunc>(real, Py_am_await) != nullptr;
  if (!recorder().on_operators() || !awaitable) {
    Py_INCREF(real);
    return real;
  }
  Ref iterator = await_iterator(real);
  return iterator ? make_stand_in(g_awaiting_type, id, iterator.get(), mark) : nullptr;
}

PyObject* await_operand(PyObject* self) {
  StandIn* p = stand_in(self);
  Ref iterator = await_iterator(p->real);
  if (!iterator) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression",
                   type_name(p->real).c_str());
    return nullptr;
  }
  return make_stand_in(g_awaiting_type, p->id, iterator.get(), p->mark);
}

PyObject* iterate_operand_async(PyObject* self) {
  StandIn* p = stand_in(self);
  auto begin = type_slot<unaryfunc>(p->real, Py_am_aiter);
  if (begin == nullptr) {
    PyErr_Format(PyExc_TypeError,
                 "'async for' requires an object with __aiter__ method, got %.100s",
                 type_name(p->real).c_str());
    return nullptr;
  }
  Ref iterator(begin(p->real));
  // One without __anext__ is the interpreter's to complain about.
  if (!iterator || !recorder().may_record_operators() ||
      type_slot<unaryfunc>(iterator.get(), Py_am_anext) == nullptr)
    return iterator.release();
  return make_stand_in(g_async_items_type, p->id, iterator.get(), p->mark);
}

bool init_awaiting(PyObject* module) {
  g_awaiting_type =
      add_stand_in_type(module, "opguard._rt.Awaiting", sizeof(StandIn), g_awaiting_slots);
  g_async_items_type =
      add_stand_in_type(module, "opguard._rt.AsyncItems", sizeof(StandIn), g_async_items_slots);
  return g_awaiting_type != nullptr && g_async_items_type != nullptr;
}

}  // namespace opguard
