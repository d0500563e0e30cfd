// Rows become tuples, and values Python's own, one after the other as they lie in the log.
//
//   stored    list 2, text "lr", real 0.1       the count, then what is below it
//   made      ["lr", 0.1]
//
// A value's end is known only once it is read, so value_object() moves `at` on. Strings are made
// once a log and then shared: a kind or a field's name is in every row.
//
// The cost: an object for each value, with the GIL; rows of other kinds are passed over and nothing
// is made of them.
#include "reading/python_observations.h"

#include <string>
#include <utility>

namespace opguard {
namespace {

using Logs = std::shared_ptr<const std::vector<ProcessLog>>;

PyTypeObject* g_observations_type = nullptr;

struct ObservationsObject {
  PyObject_HEAD Logs* logs;
};

const std::vector<ProcessLog>& logs_of(PyObject* self) {
  return **reinterpret_cast<ObservationsObject*>(self)->logs;
}

void free_observations(PyObject* self) {
  delete reinterpret_cast<ObservationsObject*>(self)->logs;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

// Its strings as Python has them, each made once.
class LogTexts {
 public:
  explicit LogTexts(const ProcessLog& log) : log_(log), made_(log.strings.size()) {}
  Ref text(uint32_t string) {
    if (string >= made_.size()) return Ref(PyUnicode_FromString(""));
    if (!made_[string]) {
      const std::string& text = log_.strings[string];
      made_[string] =
          Ref(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    }
    return made_[string];
  }

 private:
  const ProcessLog& log_;
  std::vector<Ref> made_;
};

// The value at `at`, which then is behind all that is below it.
Ref value_object(const ObservedValue*& at, LogTexts& texts) {
  const ObservedValue& value = *at++;
  switch (value.kind) {
    case ObservedKind::none:
      return Ref::borrow(Py_None);
    case ObservedKind::no:
      return Ref::borrow(Py_False);
    case ObservedKind::yes:
      return Ref::borrow(Py_True);
    case ObservedKind::integer:
      return Ref(PyLong_FromLongLong(value.integer));
    case ObservedKind::real:
      return Ref(PyFloat_FromDouble(value.real));
    case ObservedKind::text:
      return texts.text(value.text);
    case ObservedKind::bits:
      return Ref(PyLong_FromUnsignedLongLong(value.bits));
    case ObservedKind::list:
      break;
  }
  // A log may hold lists within lists to any depth: Python's own limit ends it with an error.
  if (Py_EnterRecursiveCall(" while a list is read") != 0) return {};
  Ref list(PyList_New(0));
  // Of a list `text` is the number of its elements.
  for (uint32_t i = 0; list && i < value.text; ++i) {
    Ref element = value_object(at, texts);
    if (!element || PyList_Append(list.get(), element.get()) < 0) list = Ref();
  }
  Py_LeaveRecursiveCall();
  return list;
}

Ref fields_object(const ObservationSchema& schema, const Observation& row, LogTexts& texts) {
  Ref fields(PyDict_New());
  for (size_t i = 0; fields && i < schema.fields.size(); ++i) {
    const ObservedValue* at = row.field(i).data();
    Ref name = texts.text(schema.fields[i]), value = value_object(at, texts);
    if (!name || !value || PyDict_SetItem(fields.get(), name.get(), value.get()) < 0) return {};
  }
  return fields;
}

// False with an error set.
bool read_rows(const ProcessLog& log, uint32_t process, const std::string_view* kind,
               PyObject* list) {
  LogTexts texts(log);
  // By schema: a kind may have several, where its rows hold other fields.
  std::vector<bool> wanted;
  for (const ObservationSchema& schema : log.observations.schemas())
    wanted.push_back(kind == nullptr || log.text(schema.kind) == *kind);
  ObservationCursor rows(log.observations);
  for (Observation row; rows.next(row);) {
    if (!wanted[row.schema]) continue;
    const ObservationSchema& schema = log.observations.schemas()[row.schema];
    Ref name = texts.text(schema.kind), fields = fields_object(schema, row, texts);
    if (!name || !fields) return false;
    Ref item(Py_BuildValue("(IOIKLO)", process, name.get(), row.step,
                           static_cast<unsigned long long>(row.event),
                           static_cast<long long>(row.time_ns), fields.get()));
    if (!item || PyList_Append(list, item.get()) < 0) return false;
  }
  return true;
}

PyObject* read_observations(PyObject* self, PyObject* kind) {
  try {
    const std::string_view wanted = utf8(kind);
    Ref list(PyList_New(0));
    uint32_t process = 0;
    for (const ProcessLog& log : logs_of(self))
      if (!list || !read_rows(log, process++, kind == Py_None ? nullptr : &wanted, list.get()))
        return nullptr;
    return list.release();
  } catch (const std::exception&) {  // nothing but memory can be short here
    return PyErr_NoMemory();
  }
}

PyObject* kinds_of_observations(PyObject* self, PyObject*) {
  try {
    Ref counts(PyDict_New());
    for (const ProcessLog& log : logs_of(self)) {
      std::vector<uint64_t> rows(log.observations.schemas().size());
      ObservationCursor cursor(log.observations);
      for (Observation row; cursor.next(row);) ++rows[row.schema];
      LogTexts texts(log);
      for (size_t i = 0; i < rows.size(); ++i) {
        Ref kind = texts.text(log.observations.schemas()[i].kind);
        if (!counts || !kind) return nullptr;
        // Logs and schemas of one kind are added up.
        PyObject* before = PyDict_GetItemWithError(counts.get(), kind.get());
        if (PyErr_Occurred()) return nullptr;
        const uint64_t seen = before == nullptr ? 0 : PyLong_AsUnsignedLongLong(before);
        Ref count(PyLong_FromUnsignedLongLong(seen + rows[i]));
        if (!count || PyDict_SetItem(counts.get(), kind.get(), count.get()) < 0) return nullptr;
      }
    }
    return counts.release();
  } catch (const std::exception&) {
    return PyErr_NoMemory();
  }
}

PyMethodDef g_observations_methods[] = {
    {"read", read_observations, METH_O, "read(kind): a tuple a row; None: of every kind"},
    {"kinds", kinds_of_observations, METH_NOARGS, "kinds(): how many rows there are of each"},
    {}};
PyType_Slot g_observations_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_observations)},
                                      {Py_tp_methods, g_observations_methods},
                                      {0, nullptr}};
PyType_Spec g_observations_spec = {"opguard._rt.LogObservations", sizeof(ObservationsObject), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   g_observations_slots};

}  // namespace

Ref observations_object(Logs logs) {
  auto held = std::make_unique<Logs>(std::move(logs));
  ObservationsObject* self = PyObject_New(ObservationsObject, g_observations_type);
  if (self == nullptr) return {};
  self->logs = held.release();
  return Ref(reinterpret_cast<PyObject*>(self));
}

bool init_python_observations() {
  g_observations_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_observations_spec));
  return g_observations_type != nullptr;
}

}  // namespace opguard
