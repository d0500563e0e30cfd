// Writes arguments and results as text, without calling anything of the program's.
//
//   3, None, 1.5, "relu"       3, None, 1.5, 'relu'
//   a named tuple, a tensor    (T, 3): the tensor is a slot, called after the field
//   a dataclass                <Batch>{ids: T, n: 2}
//   numpy.float64(2)           2.0: the number that it holds
//   b"..."                     bytes# and a hash of them
//   a list within itself       [1, <list>]: it is not entered twice
//   a text of 2,000 bytes      its first 80, and a hash of the whole
//
// Counterexample: repr(x). A subclass of int may do anything there, so int's own is called.
//
// What is beyond the bounds (64 levels, 65,536 leaves, `limit` tensors) is not lost quietly:
// tensors there are counted. The vectors belong to the thread and are used again, so an event
// allocates nothing.
#include "runtime/recorder/values.h"

#include <algorithm>
#include <climits>

#include "runtime/host/object.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

constexpr int kMaxDepth = 64;            // of containers in containers: the C stack's sake
constexpr int kKeyDepth = INT_MAX;       // of a dictionary's key: described, never searched
constexpr uint64_t kMaxVisited = 65536;  // leaves of one value; a data set is no argument list
constexpr size_t kMaxString = 80;
constexpr size_t kMaxText = 1024;

uint64_t text_hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3u;
  return h;
}

// Long texts keep their beginning and a digest of the whole, so that a change anywhere shows.
std::string shortened(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  uint64_t hash = text_hash(text);
  size_t cut = limit;
  while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // never inside a character
  char digest[24];
  std::snprintf(digest, sizeof digest, "...#%016llx", static_cast<unsigned long long>(hash));
  return text.substr(0, cut) + digest;
}

// repr() as the type itself defines it, whatever a subclass of the program's made of it.
std::string base_repr(PyTypeObject* type, PyObject* value) {
  auto repr = reinterpret_cast<reprfunc>(PyType_GetSlot(type, Py_tp_repr));
  Ref text(repr ? repr(value) : nullptr);
  if (!text) PyErr_Clear();
  return std::string(utf8(text.get()));
}

// With its quotes, which are not counted.
std::string string_repr(PyObject* value) {
  std::string text = base_repr(&PyUnicode_Type, value);
  return shortened(std::move(text), kMaxString + 2);
}

// The shortest text that is this number: 1.0, 1e-05, nan.
std::string float_repr(double value) {
  char* text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
  std::string s = text ? text : "?";
  PyMem_Free(text);
  return s;
}

// Only of types whose text is no code of the program's.
std::string str_of(PyObject* value) {
  Ref text(PyObject_Str(value));
  if (!text) PyErr_Clear();
  return std::string(utf8(text.get()));
}

bool is_plain_torch(const TorchApi* torch, PyObject* value) {
  if (torch == nullptr) return false;
  for (PyObject* type : torch->plain_types)
    if (reinterpret_cast<PyObject*>(Py_TYPE(value)) == type) return true;
  return false;
}

// Attributes of a dataclass instance, or the dict that a UserDict wraps.
Ref fields_of(PyObject* value) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
  Ref marked = attribute(type, "__dataclass_fields__");
  if (marked) {
    Ref dict(PyObject_GenericGetDict(value, nullptr));
    if (!dict) PyErr_Clear();
    return dict;
  }
  static PyObject* user_dict = nullptr;
  if (user_dict == nullptr) {
    PyObject* collections = PyDict_GetItemString(PyImport_GetModuleDict(), "collections");
    if (collections) user_dict = attribute(collections, "UserDict").release();
  }
  if (has_type(value, user_dict)) {
    Ref dict(PyObject_GenericGetDict(value, nullptr));
    if (!dict) PyErr_Clear();
    PyObject* data = dict ? PyDict_GetItemString(dict.get(), "data") : nullptr;
    if (data && PyDict_Check(data)) return Ref::borrow(data);
  }
  return {};
}

// "(2, 3)" field names of a named tuple; none for a plain one.
Ref names_of(PyObject* tuple) {
  if (PyTuple_CheckExact(tuple)) return {};
  Ref names = attribute(reinterpret_cast<PyObject*>(Py_TYPE(tuple)), "_fields");
  if (names && PyTuple_Check(names.get()) && PyTuple_Size(names.get()) == PyTuple_Size(tuple))
    return names;
  return {};
}

constexpr size_t kMaxUsed = 8, kMaxKept = 64;  // collectors' memory kept; slots in each

// Exactly of a type whose text is its value: the commonest arguments.
bool is_plain_value(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  return value == Py_None || type == &PyLong_Type || type == &PyBool_Type ||
         type == &PyFloat_Type || type == &PyUnicode_Type;
}

bool is_container(PyObject* value) {
  return PyTuple_Check(value) || PyList_Check(value) || PyDict_Check(value);
}

}  // namespace

// The vectors of one that is gone, with the memory they had: an event allocates nothing.
struct CollectorMemory {
  std::vector<Slot> slots;
  std::vector<Collector::Item> items;
  std::string scalars;
};

// The one that was given back last, or a new one: collectors may be in one another.
static CollectorMemory* memory_of(ThreadState& thread) {
  if (thread.collectors.empty()) return new CollectorMemory;
  CollectorMemory* last = thread.collectors.back();
  thread.collectors.pop_back();
  return last;
}

Collector::Collector(const TorchApi* torch, SlotKind kind, size_t limit, Reading reading)
    : Collector(torch, kind, recorder().thread(), limit, reading) {}

Collector::Collector(const TorchApi* torch, SlotKind kind, ThreadState& thread, size_t limit,
                     Reading reading)
    : torch_(torch),
      thread_(thread),
      memory_(memory_of(thread)),
      kind_(kind),
      reading_(reading),
      slots_(memory_->slots),
      items_(memory_->items),
      scalars_(memory_->scalars),
      limit_(limit) {}

Collector::~Collector() {
  if (thread_.collectors.size() >= kMaxUsed || slots_.capacity() > kMaxKept) {
    delete memory_;
    return;
  }
  slots_.clear();
  items_.clear();
  scalars_.clear();
  thread_.collectors.push_back(memory_);
}

bool is_torch_module(const TorchApi& torch, PyObject* object) {
  if (!torch.is_module(object)) return false;
  Ref forward = attribute(reinterpret_cast<PyObject*>(Py_TYPE(object)), "forward");
  return forward && in_package(utf8_attribute(forward.get(), "__module__"), "torch");
}

void Collector::widen() {
  limit_ = 65535;  // Slot::index has 16 bits
}

void Collector::text(std::string_view name, std::string_view value) {
  if (!scalars_.empty()) scalars_ += ", ";
  scalars_ += name;
  scalars_ += '=';
  scalars_ += value;
}

// The commonest of the small: a plain tensor of few numbers that nobody wants to see.
bool Collector::add_tiny(std::string_view name, PyObject* value, SlotFlags flags) {
  TensorFields fields;
  if (watch_ != nullptr || reading_ != Reading::usual || slots_.size() >= limit_ ||
      !torch_->plain(value) || !torch_->layout.read(value, fields))
    return false;
  Slot& slot = slots_.emplace_back();
  slot.kind = kind_;
  slot.flags = flags;
  slot.index = static_cast<uint16_t>(slots_.size() - 1);
  if (!recorder().tiny_slot(fields, value, name, slot)) {
    slots_.pop_back();
    return false;
  }
  if (kind_ == SlotKind::in)
    items_.push_back({Ref::borrow(value), std::string(name), slot.value, fields.version, false,
                      false, fields.outside_autograd});
  return true;
}

// False: it is neither a tensor nor a numpy array. A tensor is read here, or its reading carried
// over.
bool Collector::add_leaf(std::string_view name, PyObject* value, SlotFlags flags) {
  const bool tensor = torch_ != nullptr && torch_->is_tensor(value);
  if (tensor ? add_tiny(name, value, flags) : !is_numpy_array(value)) return tensor;
  if (slots_.size() >= limit_) {
    ++beyond_;
    return true;
  }
  TensorView& view = thread_.view;
  if (tensor) {
    view_tensor(*torch_, value, view);
  } else {
    view.clear();
    if (!view_numpy(value, view)) return false;
  }
  const bool known = tensor && view.has_value() && torch_->plain(value);
  Reading reading = reading_;
  if (watch_ != nullptr) [[unlikely]] {
    // It may put other bytes there.
    thread_.launches.launch();
    watch_->meet(view, value, kind_, std::string(name));
    thread_.recent.count = 0;
    if (known && reading == Reading::usual) {
      storages().forget(value);
      reading = Reading::forced;
    }
  }
  // Another thread may read a tensor while we do, but not into this thread's view.
  slots_.push_back(recorder().slot(view, kind_, static_cast<uint16_t>(slots_.size()), name, flags,
                                   known ? value : nullptr, reading, &thread_));
  if (kind_ == SlotKind::in)
    items_.push_back({Ref::borrow(value), std::string(name), slots_.back().value, view.version,
                      !tensor, (slots_.back().flags & kPending) != 0});
  return true;
}

// Not into a container that this one lies in (`x.append(x)`), nor into a key.
bool Collector::may_enter(PyObject* value, int depth) {
  if (std::find(inside_.begin(), inside_.end(), value) != inside_.end()) return false;
  if (depth <= kMaxDepth) return true;
  // One at least may be in there.
  if (depth != kKeyDepth && (!is_container(value) || PyObject_Size(value) > 0)) ++beyond_;
  return false;
}

bool Collector::too_deep(PyObject* value, int depth) {
  if (depth == kKeyDepth || torch_ == nullptr || !torch_->is_tensor(value)) return false;
  ++beyond_;
  return true;
}

// {ids: T, n: 2}: a text as key is written without quotes, any other as a value is. No tensor in a
// key is read.
void Collector::describe_dict(std::string& out, const std::string& name, PyObject* dict,
                              SlotFlags flags, int depth) {
  PyObject *key, *value;
  bool first = true;
  out += '{';
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
    if (!first) out += ", ";
    first = false;
    Ref held_key = Ref::borrow(key), held = Ref::borrow(value);
    std::string label(utf8(key));
    if (!PyUnicode_Check(key)) describe(label, name, key, flags, kKeyDepth);
    out += label + ": ";
    describe(out, name + "." + label, value, flags, depth + 1);
  }
  out += '}';
}

// The text of one value, and slots for the tensors in it, called after the way that leads there:
// "arg1[3].mask".
void Collector::describe(std::string& out, const std::string& name, PyObject* value,
                         SlotFlags flags, int depth) {
  if (++visited_ > kMaxVisited) {
    if (torch_ != nullptr && depth <= kMaxDepth && torch_->is_tensor(value)) ++beyond_;
    out += "...";
    return;
  }
  PyTypeObject* type = Py_TYPE(value);
  const bool entered = is_container(value) && may_enter(value, depth);
  if (value == Py_None || value == Py_True || value == Py_False) {
    out += value == Py_None ? "None" : value == Py_True ? "True" : "False";
  } else if (PyLong_Check(value)) {
    out += base_repr(&PyLong_Type, value);
  } else if (PyUnicode_Check(value)) {
    out += string_repr(value);
  } else if (type == &PyFloat_Type) {
    out += float_repr(PyFloat_AsDouble(value));
  } else if (is_numpy_scalar(value)) {  // before float: numpy.float64 is one
    Ref item(PyObject_CallMethod(value, "item", nullptr));
    if (!item || is_numpy_scalar(item.get())) {
      PyErr_Clear();
      out += "<" + type_name(value) + ">";
    } else {
      describe(out, name, item.get(), flags, depth);
    }
  } else if (PyFloat_Check(value)) {
    out += float_repr(PyFloat_AsDouble(value));
  } else if (PyComplex_Check(value)) {
    out += base_repr(&PyComplex_Type, value);
  } else if (value == Py_Ellipsis) {
    out += "...";
  } else if (depth <= kMaxDepth ? add_leaf(name, value, flags) : too_deep(value, depth)) {
    out += "T";
  } else if (entered && !PyDict_Check(value)) {
    Inside inside(*this, value);
    bool tuple = PyTuple_Check(value);
    Ref names = tuple ? names_of(value) : Ref();
    Py_ssize_t n = tuple ? PyTuple_Size(value) : PyList_Size(value);
    out += tuple ? '(' : '[';
    for (Py_ssize_t i = 0; i < n; ++i) {
      // A list may be changed by another thread between two of our steps.
      Ref item = Ref::borrow(tuple ? PyTuple_GetItem(value, i) : PyList_GetItem(value, i));
      if (!item) {
        PyErr_Clear();
        break;
      }
      if (i > 0) out += ", ";
      std::string label = "[" + std::to_string(i) + "]";
      if (names) label = "." + std::string(utf8(PyTuple_GetItem(names.get(), i)));
      describe(out, name + label, item.get(), flags, depth + 1);
    }
    if (tuple && n == 1) out += ',';
    out += tuple ? ')' : ']';
  } else if (entered) {
    Inside inside(*this, value);
    describe_dict(out, name, value, flags, depth);
  } else if (type == &PySlice_Type) {
    Ref start = attribute(value, "start"), stop = attribute(value, "stop"),
        step = attribute(value, "step");
    if (start.get() != Py_None) describe(out, name + ".start", start.get(), flags, depth + 1);
    out += ':';
    if (stop.get() != Py_None) describe(out, name + ".stop", stop.get(), flags, depth + 1);
    if (step.get() != Py_None) {
      out += ':';
      describe(out, name + ".step", step.get(), flags, depth + 1);
    }
  } else if (is_plain_torch(torch_, value) || type == &PyRange_Type) {
    out += str_of(value);
  } else if (torch_ != nullptr && has_type(value, torch_->generator_type)) {
    Ref seed(PyObject_CallMethod(value, "initial_seed", nullptr));
    if (!seed) PyErr_Clear();
    out += "Generator(seed=" + (seed ? base_repr(&PyLong_Type, seed.get()) : "?") + ")";
  } else if (PyBytes_Check(value)) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(value, &data, &size) == 0)
      out += "bytes#" + std::to_string(text_hash({data, static_cast<size_t>(size)}));
  } else if (PyType_Check(value)) {
    out += "<class " + utf8_attribute(value, "__name__") + ">";
  } else if (reinterpret_cast<PyObject*>(type) == types().function ||
             reinterpret_cast<PyObject*>(type) == types().builtin) {
    out += "<function " + utf8_attribute(value, "__name__") + ">";
  } else {
    Ref fields = is_container(value) ? Ref() : fields_of(value);
    out += "<" + type_name(value) + ">";
    if (fields && PyDict_Check(fields.get()) && !(torch_ && torch_->is_module(value)) &&
        may_enter(value, depth)) {
      Inside inside(*this, value);
      describe_dict(out, name, fields.get(), flags, depth);
    }
  }
}

void Collector::add(std::string_view name, PyObject* value, SlotFlags flags) {
  if (!is_plain_value(value) && add_leaf(name, value, flags)) return;
  std::string label(name), out;
  describe(out, label, value, flags, 0);
  text(name, shortened(std::move(out), kMaxText));
}

void Collector::add_tensors(std::string_view name, PyObject* value, SlotFlags flags) {
  size_t before = slots_.size();
  if (value == Py_None || add_leaf(name, value, flags)) return;
  std::string label(name), out;
  describe(out, label, value, flags, 0);
  if (slots_.size() > before) text(name, shortened(std::move(out), kMaxText));
}

// By its own tables, module by module: "param:layers.0.weight".
void Collector::walk_module(PyObject* module, const std::string& prefix, SlotFlags flags,
                            int depth) {
  for (const char* table : {"_parameters", "_buffers"}) {
    Ref dict = attribute(module, table);
    if (!dict || !PyDict_Check(dict.get())) continue;
    // Running statistics are written by kernels that count no versions.
    const Reading before = reading_;
    if (table[1] == 'b' && reading_ == Reading::usual) reading_ = Reading::forced;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict.get(), &at, &key, &value);)
      if (value != Py_None)
        add_leaf("param:" + prefix + std::string(utf8(key)), value, flags | kParameter);
    reading_ = before;
  }
  Ref children = attribute(module, "_modules");
  if (!children || !PyDict_Check(children.get()) || depth >= kMaxModuleDepth) return;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(children.get(), &at, &key, &value);)
    if (value != Py_None)
      walk_module(value, prefix + std::string(utf8(key)) + ".", flags, depth + 1);
}

void Collector::add_module(PyObject* module, SlotFlags flags) { walk_module(module, "", flags, 0); }

}  // namespace opguard
