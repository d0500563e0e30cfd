// A row is coded as it is given, without a Python object made on the way, into a buffer that is
// used again.
//
//   observe(3, (5, 0x5f1c90aa, 1.25, None))     integer, bits, real; none at the end are left out
//
// A schema has a number for the process, and another in each log. The second is looked up when a
// row comes: where the log is another one (generation), its fields are said there first.
//
// Hashes and lengths of tensors are read here too, for watchers in Python. They are no records, and
// make no event.
//
// Counterexample: a list within itself. Beyond eight levels all is none.
#include "runtime/recorder/observations.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "record/limits.h"
#include "record/observation_code.h"
#include "runtime/entries/collective.h"
#include "runtime/fingerprint/length.h"
#include "runtime/fingerprint/mask.h"
#include "runtime/recorder/python_fingerprint.h"
#include "runtime/recorder/recorder.h"

namespace opguard {
namespace {

constexpr std::string_view kBitsMark = ":bits";
// A list within itself ends somewhere. What is deeper is none.
constexpr int kMostDepth = 8;
// Of a row's digest, for each tensor that comes behind.
constexpr uint64_t kRowFactor = 0x9e3779b97f4a7c15;

struct Schema {
  std::string kind;
  std::vector<std::string> fields;
  std::vector<bool> bits;   // by field
  uint64_t generation = 0;  // of the log in which it has the number
  uint32_t number = 0;
};

// Never destroyed, as the recorder.
std::vector<Schema>& schemas() {
  static auto* all = new std::vector<Schema>;
  return *all;
}

std::string& code_buffer() {
  static auto* code = new std::string;
  return *code;
}

void put_kind(std::string& out, ObservedKind kind, uint32_t number = 0) {
  ObservedValue value;
  value.kind = kind;
  value.text = number;
  put_value(out, value);
}

// Up to 63 bits and a sign as it is; up to 64 bits without one as bits; larger ones are none.
void put_integer(std::string& out, PyObject* object, bool bits) {
  if (bits) return put_value(out, observed_bits(PyLong_AsUnsignedLongLongMask(object)));
  int overflow = 0;
  const long long n = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) return put_value(out, observed_integer(n));
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : ~0ull;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    return put_kind(out, ObservedKind::none);
  }
  put_value(out, observed_bits(large));
}

void put_text_value(std::string& out, PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) {  // half a surrogate pair
    PyErr_Clear();
    return put_kind(out, ObservedKind::none);
  }
  const std::string_view whole(text, static_cast<size_t>(size));
  put_kind(out, ObservedKind::text,
           whole.size() <= kLongText ? recorder().string(whole)
                                     : recorder().string(kept_text(std::string(whole))));
}

// Runs no code of the program.
void put_object(std::string& out, PyObject* object, bool bits, int depth) {
  if (object == Py_None) return put_kind(out, ObservedKind::none);
  if (object == Py_True) return put_kind(out, ObservedKind::yes);
  if (object == Py_False) return put_kind(out, ObservedKind::no);
  const PyTypeObject* type = Py_TYPE(object);
  if (type == &PyUnicode_Type || PyUnicode_Check(object)) return put_text_value(out, object);
  if (type == &PyLong_Type || PyLong_Check(object)) return put_integer(out, object, bits);
  if (type == &PyFloat_Type || PyFloat_Check(object))
    return put_value(out, observed_real(PyFloat_AsDouble(object)));
  const bool list = PyList_Check(object);
  if (depth >= kMostDepth || (!list && !PyTuple_Check(object)))
    return put_kind(out, ObservedKind::none);
  const Py_ssize_t count = list ? PyList_Size(object) : PyTuple_Size(object);
  put_kind(out, ObservedKind::list, static_cast<uint32_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    put_object(out, list ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i), bits, depth + 1);
}

// Its number in the log that is written now.
uint32_t number_of(Schema& schema) {
  Recorder& log = recorder();
  if (schema.generation == log.generation()) return schema.number;
  ObservationSchema said;
  said.kind = log.string(schema.kind);
  for (const std::string& field : schema.fields) said.fields.push_back(log.string(field));
  schema.number = log.schema(said);
  schema.generation = log.generation();
  return schema.number;
}

Ref no_object() { return Ref::borrow(Py_None); }
Ref hash_object(uint64_t h) { return Ref(PyLong_FromUnsignedLongLong(h)); }

// What is read of a tensor: `length` is none where it has none, or is not wanted.
struct Looked {
  Ref h, length;
};

// Of a type that torch itself has float32 norms of, as a float32: half the bytes in the log.
Ref length_of(const Measure& measure, FloatType type) {
  if (!measure.length) return no_object();
  const double exact = *measure.length;
  const auto narrow = static_cast<float>(exact);
  const bool fits = type != FloatType::float64 && (std::isfinite(narrow) || !std::isfinite(exact));
  return Ref(PyFloat_FromDouble(fits ? narrow : exact));
}

// A tensor that a collective writes has the hash it had when it was given away, where that is
// known, and no length.
Looked look_at(const TorchApi& torch, PyObject* tensor, TensorView& view, bool lengths) {
  view_tensor(torch, tensor, view);
  if (PyErr_Occurred()) PyErr_Clear();
  if (!view.readable) return {no_object(), no_object()};
  Slot slot;
  if (anything_in_flight() && read_in_flight(view, slot))
    return {slot.flags & (kUnreadable | kPending) ? no_object() : hash_object(slot.value.h),
            no_object()};
  const unsigned threads = threads_for(view);
  const FloatType type = lengths ? float_type(view.meta.dtype) : FloatType::none;
  Measure found;
  {
    WhileReading reading(view);
    found = measure(view.elements, type, threads);
  }
  return {hash_object(found.h), length_of(found, type)};
}

// Calls take(i, Looked) for each of a list or tuple. False: an error is set.
template <typename Take>
bool look_at_all(PyObject* tensors, bool lengths, Take take) {
  // A copy: what a subclass does as it is looked at may change the list.
  Ref all(PyList_Check(tensors) ? PyList_AsTuple(tensors) : Ref::borrow(tensors).release());
  if (!all) return false;
  OwnWork work;
  TensorView& view = recorder().thread().view;
  for (Py_ssize_t i = 0; i < PyTuple_Size(all.get()); ++i) {
    PyObject* object = PyTuple_GetItem(all.get(), i);
    Looked found{no_object(), no_object()};
    if (work.torch() != nullptr && work.torch()->is_tensor(object))
      found = look_at(*work.torch(), object, view, lengths);
    if (!found.h || !found.length) {
      PyErr_Clear();
      found = {no_object(), no_object()};
    }
    take(i, std::move(found));
  }
  return true;
}

// As long as a list or tuple; none, and an error is set, for anything else.
Ref list_for(PyObject* tensors) {
  if (PyList_Check(tensors)) return Ref(PyList_New(PyList_Size(tensors)));
  if (PyTuple_Check(tensors)) return Ref(PyList_New(PyTuple_Size(tensors)));
  PyErr_SetString(PyExc_TypeError, "a list or a tuple of tensors is wanted");
  return Ref(nullptr);
}

}  // namespace

// ---- The recorder's part.

// False: nothing is recorded now. The first row may be what opens the log.
bool Recorder::may_observe() {
  if (!on()) return false;
  if (!opened_) {
    OwnWork work;
    begin_log();
  }
  return true;
}

uint32_t Recorder::schema(const ObservationSchema& schema) { return writer_->schema(schema); }

void Recorder::observe(uint32_t schema, uint32_t values, std::string_view code) {
  const ObservedHead head{schema,   step_,
                          events(), static_cast<int64_t>(clock()),
                          values,   static_cast<uint32_t>(code.size())};
  if (ring_.on())
    ring_.observe(head, code);
  else
    writer_->observe(head, code);
}

// Whoever follows the log sees it soon.
void Recorder::tell(const std::map<std::string, std::string>& settings) {
  if (!alive() || !opened_ || ring_.on()) return;
  writer_->set(settings);
  writer_->flush_soon();
}

void Recorder::flush_soon() {
  if (alive() && opened_ && !ring_.on()) writer_->flush_soon();
}

// ---- Python's functions.

PyObject* observation_schema(PyObject*, PyObject* args) {
  static auto* numbers = new std::map<std::pair<std::string, std::vector<std::string>>, long>;
  const char* kind = nullptr;
  PyObject* names = nullptr;
  if (!PyArg_ParseTuple(args, "sO!", &kind, &PyTuple_Type, &names)) return nullptr;
  const Py_ssize_t count = PyTuple_Size(names);
  if (static_cast<size_t>(count) > kMostFields)
    return PyErr_Format(PyExc_ValueError, "%.80s has more than %d fields", kind,
                        static_cast<int>(kMostFields));
  std::pair<std::string, std::vector<std::string>> key{kind, {}};
  Schema schema{kind, {}, {}, 0, 0};
  for (Py_ssize_t i = 0; i < count; ++i) {
    std::string name(utf8(PyTuple_GetItem(names, i)));
    key.second.push_back(name);
    schema.bits.push_back(name.ends_with(kBitsMark));
    if (schema.bits.back()) name.resize(name.size() - kBitsMark.size());
    schema.fields.push_back(std::move(name));
  }
  const auto [known, fresh] = numbers->try_emplace(key, static_cast<long>(schemas().size()));
  if (fresh) schemas().push_back(std::move(schema));
  return PyLong_FromLong(known->second);
}

PyObject* observe(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const long which = count == 2 ? PyLong_AsLong(args[0]) : -1;
  if (which < 0 || static_cast<size_t>(which) >= schemas().size() || !PyTuple_Check(args[1])) {
    recorder().fault("an observation is not of a schema and a tuple");
    Py_RETURN_NONE;
  }
  if (!recorder().may_observe()) Py_RETURN_NONE;
  Schema& schema = schemas()[static_cast<size_t>(which)];
  const uint32_t number = number_of(schema);
  std::string& code = code_buffer();
  code.clear();
  const auto given = static_cast<size_t>(PyTuple_Size(args[1]));
  size_t end = 0;  // of the code, with all but what is none at the end
  uint32_t values = 0;
  for (size_t i = 0; i < std::min(given, schema.bits.size()); ++i) {
    PyObject* object = PyTuple_GetItem(args[1], static_cast<Py_ssize_t>(i));
    put_object(code, object, schema.bits[i], 0);
    if (object == Py_None) continue;
    end = code.size();
    values = static_cast<uint32_t>(i + 1);
  }
  code.resize(end);
  recorder().observe(number, values, code);
  Py_RETURN_NONE;
}

PyObject* flush_soon(PyObject*, PyObject*) {
  recorder().flush_soon();
  Py_RETURN_NONE;
}

PyObject* tell_settings(PyObject*, PyObject* settings) {
  std::map<std::string, std::string> told;
  PyObject *key, *value;
  if (PyDict_Check(settings))
    for (Py_ssize_t at = 0; PyDict_Next(settings, &at, &key, &value);)
      told[std::string(utf8(key))] = utf8(value);
  recorder().tell(told);
  Py_RETURN_NONE;
}

PyObject* hashes_of(PyObject*, PyObject* tensors) {
  Ref found = list_for(tensors);
  if (!found) return nullptr;
  if (!look_at_all(tensors, false, [&](Py_ssize_t i, Looked of) {
        PyList_SetItem(found.get(), i, of.h.release());
      }))
    return nullptr;
  return found.release();
}

PyObject* measures_of(PyObject*, PyObject* tensors) {
  Ref hashes = list_for(tensors), lengths = list_for(tensors);
  if (!hashes || !lengths) return nullptr;
  if (!look_at_all(tensors, true, [&](Py_ssize_t i, Looked of) {
        PyList_SetItem(hashes.get(), i, of.h.release());
        PyList_SetItem(lengths.get(), i, of.length.release());
      }))
    return nullptr;
  return Py_BuildValue("(OO)", hashes.get(), lengths.get());
}

// A row's digest takes in one tensor after the other, so their order counts.
PyObject* row_hashes_of(PyObject*, PyObject* args) {
  PyObject* tensors = nullptr;
  Py_ssize_t most = 0;
  if (!PyArg_ParseTuple(args, "O!n", &PyTuple_Type, &tensors, &most)) return nullptr;
  std::vector<uint64_t> rows;
  OwnWork work;
  TensorView& view = recorder().thread().view;
  for (Py_ssize_t t = 0; work.torch() != nullptr && t < PyTuple_Size(tensors); ++t) {
    PyObject* object = PyTuple_GetItem(tensors, t);
    if (!work.torch()->is_tensor(object)) continue;
    view_tensor(*work.torch(), object, view);
    if (PyErr_Occurred()) PyErr_Clear();
    Slot slot;
    if (!view.readable || view.elements.shape.empty()) continue;
    if (anything_in_flight() && read_in_flight(view, slot)) continue;
    const Elements& all = view.elements;
    const auto count = static_cast<size_t>(std::min<int64_t>(all.shape[0], most));
    if (rows.empty()) rows.resize(count);
    if (rows.size() != count) continue;
    Elements row{all.data,
                 all.size,
                 {all.shape.begin() + 1, all.shape.end()},
                 {all.strides.begin() + 1, all.strides.end()}};
    const WhileReading reading(view);
    for (uint64_t& total : rows) {
      total = total * kRowFactor + fingerprint(row).h + 1;
      row.data = static_cast<const char*>(row.data) + all.strides[0];
    }
  }
  Ref found(PyList_New(static_cast<Py_ssize_t>(rows.size())));
  for (size_t i = 0; found && i < rows.size(); ++i)
    PyList_SetItem(found.get(), static_cast<Py_ssize_t>(i), PyLong_FromUnsignedLongLong(rows[i]));
  return found.release();
}

}  // namespace opguard
