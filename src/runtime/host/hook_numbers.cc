// Two ways, by what torch has:
//
//   node.register_hook(h)       torch's C++ calls _register_hook(hooks, h)
//     h is ours, announced      hooks[2^40 + n] = h; no handle is made
//     any other                 torch's own function, with the same arguments
//   no such function            the row's next number is exchanged for ours meanwhile
#include "runtime/host/hook_numbers.h"

#include <cstdint>
#include <utility>

namespace opguard {
namespace {

constexpr int64_t kFirst = int64_t{1} << 40;

Ref next_number() {
  static int64_t next = kFirst;
  return Ref(PyLong_FromLongLong(next++));
}

// What torch has under that name, which lives as long as the process; null before it is imported.
PyObject* of_torch(const char* module, const char* name) {
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* found = PyDict_GetItemString(modules, module);
  return found != nullptr ? attribute(found, name).release() : nullptr;
}

PyObject* handle_class() {
  static PyObject* known = nullptr;
  if (known == nullptr) known = of_torch("torch.utils.hooks", "RemovableHandle");
  return known;
}

// The registration of ours that torch is at.
struct Announced {
  PyObject* hook = nullptr;
  OwnHook at;
};
Announced g_announced;

Ref new_hooks() {
  static PyObject* type = nullptr;  // a plain dict takes no weak reference
  if (type == nullptr) {
    Ref module(PyImport_ImportModule("collections"));
    type = module ? attribute(module.get(), "OrderedDict").release() : nullptr;
  }
  return Ref(type != nullptr ? PyObject_CallNoArgs(type) : nullptr);
}

// (hooks or None, hook) -> (hooks, handle): as torch's own, which is `self`.
PyObject* register_hook(PyObject* self, PyObject* args) {
  if (g_announced.hook == nullptr || PyTuple_Size(args) != 2 ||
      PyTuple_GetItem(args, 1) != g_announced.hook)
    return PyObject_Call(self, args, nullptr);
  PyObject* given = PyTuple_GetItem(args, 0);
  Ref hooks = given == Py_None ? new_hooks() : Ref::borrow(given);
  Ref id = hooks ? next_number() : Ref();
  if (!id || PyObject_SetItem(hooks.get(), id.get(), g_announced.hook) != 0) return nullptr;
  g_announced.at = {hooks, id};
  return PyTuple_Pack(2, hooks.get(), Py_None);
}

PyMethodDef g_register_hook = {"_register_hook", register_hook, METH_VARARGS,
                               "torch's own; hooks of opguard's take none of its numbers"};

// Puts ours in place of torch's. A built-in function in a class is no method, as a static one.
bool stands_in() {
  static int known = -1;
  if (known >= 0) return known == 1;
  PyObject* owner = of_torch("torch.autograd.function", "_HookMixin");
  if (owner == nullptr) return false;  // torch may yet come
  Ref original = attribute(owner, "_register_hook");
  Ref ours(original ? PyCFunction_New(&g_register_hook, original.get()) : nullptr);
  known = ours && PyObject_SetAttrString(owner, "_register_hook", ours.get()) == 0;
  PyErr_Clear();
  return known == 1;
}

// Where a handle says that the hook is: its dict and its number there.
OwnHook of_handle(PyObject* handle) {
  Ref weak = attribute(handle, "hooks_dict_ref");
  OwnHook at{Ref(weak ? PyObject_CallNoArgs(weak.get()) : nullptr), attribute(handle, "id")};
  PyErr_Clear();
  return at.hooks && at.id ? std::move(at) : OwnHook();
}

// The program's next number is put back, as if nobody had registered anything.
OwnHook by_handle(PyObject* node, const char* method, PyObject* hook) {
  PyObject* handles = handle_class();
  Ref programs = handles != nullptr ? attribute(handles, "next_id") : Ref();
  Ref own = programs ? next_number() : Ref();
  PyObject* next_id = name_object("next_id");
  if (own && PyObject_SetAttr(handles, next_id, own.get()) != 0) PyErr_Clear();
  Ref handle = call_method(node, method, hook);
  PyErr_Clear();
  if (programs && PyObject_SetAttr(handles, next_id, programs.get()) != 0) PyErr_Clear();
  return handle ? of_handle(handle.get()) : OwnHook();
}

}  // namespace

OwnHook register_own_hook(PyObject* node, const char* method, PyObject* hook) {
  if (!stands_in()) return by_handle(node, method, hook);
  const Announced outer = std::exchange(g_announced, Announced{hook, {}});
  Ref handle = call_method(node, method, hook);
  PyErr_Clear();
  Announced mine = std::exchange(g_announced, outer);
  if (!handle) return {};
  return mine.at.hooks ? std::move(mine.at) : of_handle(handle.get());
}

}  // namespace opguard
