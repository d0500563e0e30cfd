// Python's side of a log: one read_log(), and tables that give their columns as they are asked for.
//
//   processes, events, records, observations = read_log("run/")
//   records.array("h")      (uint64 values, missing or None, None, None), read in place
//   records.array("dtype")  (int32 codes, missing, ["float32", "int64"], None)
//
// Nothing is made into Python objects row by row: a million rows are two arrays. Texts are codes
// into a list of the different ones.
//
// Files are read and arrays are filled without the GIL, so other threads run meanwhile.
// Counterexample: to build lists there. Every object of Python's needs the GIL.
//
// What C++ throws becomes an error of Python's (raise_current); nothing is thrown through CPython.
#include "reading/python_log.h"

#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "reading/arrow.h"
#include "reading/python_observations.h"

namespace opguard {
namespace {

PyTypeObject* g_table_type = nullptr;
PyTypeObject* g_array_type = nullptr;
// Made by read_log alone: one made from Python would have nothing inside.
constexpr unsigned kTypeFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;

// While it lives the program's other threads run.
class WithoutGil {
 public:
  WithoutGil() = default;
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_ = PyEval_SaveThread();
};

// ---- Memory that numpy reads in place.

// Numpy keeps the object alive that has the interface, and so these bytes.
struct Memory {
  std::vector<uint8_t> bytes;
  const char* type;  // numpy's typestr
  uint64_t count;
};

struct ArrayObject {
  PyObject_HEAD Memory* memory;
};

// True: numpy may read, not write.
PyObject* array_interface(PyObject* self, void*) {
  Memory& memory = *reinterpret_cast<ArrayObject*>(self)->memory;
  return Py_BuildValue("{s:(K),s:s,s:(NO),s:i}", "shape",
                       static_cast<unsigned long long>(memory.count), "typestr", memory.type,
                       "data", PyLong_FromVoidPtr(memory.bytes.data()), Py_True, "version", 3);
}

// A type from a spec is counted by its objects, so the last thing is to let go of it.
template <typename Object, auto kMember>
void free_object(PyObject* self) {
  delete (reinterpret_cast<Object*>(self)->*kMember);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

template <typename T>
T* allocate(Memory& memory, const char* type, uint64_t count) {
  memory.bytes.assign(std::max<uint64_t>(count, 1) * sizeof(T), 0);
  memory.type = type;
  memory.count = count;
  return reinterpret_cast<T*>(memory.bytes.data());
}

PyObject* array_object(std::unique_ptr<Memory> memory) {
  ArrayObject* self = PyObject_New(ArrayObject, g_array_type);
  if (self == nullptr) return nullptr;
  self->memory = memory.release();
  return reinterpret_cast<PyObject*>(self);
}

PyGetSetDef g_array_attributes[] = {
    {"__array_interface__", array_interface, nullptr, "numpy's view of it", nullptr}, {}};
PyType_Slot g_array_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(free_object<ArrayObject, &ArrayObject::memory>)},
    {Py_tp_getset, g_array_attributes},
    {0, nullptr}};
PyType_Spec g_array_spec = {"opguard._rt.LogArray", sizeof(ArrayObject), 0, kTypeFlags,
                            g_array_slots};

// ---- Python's values.

Ref text_object(const std::string& text) {
  return Ref(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

// A list of make(0), make(1), ...; none with an error set.
template <typename F>
Ref list_of(size_t count, F make) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; list && i < count; ++i) {
    Ref item = make(i);
    if (!item) return {};
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return list;
}

Ref shape_object(const std::vector<int64_t>& shape) {
  Ref list = list_of(shape.size(), [&](size_t i) { return Ref(PyLong_FromLongLong(shape[i])); });
  return Ref(list ? PyList_AsTuple(list.get()) : nullptr);
}

bool put(PyObject* dict, const std::string& key, Ref value) {
  Ref name = text_object(key);
  return name && value && PyDict_SetItem(dict, name.get(), value.get()) == 0;
}

// (package, file, path, line, column, end_line, end_column, text, callee, function)
Ref location_object(const Location& at) {
  return Ref(Py_BuildValue("(NNNIIIINNN)", text_object(at.package).release(),
                           text_object(at.file).release(), text_object(at.path).release(), at.line,
                           at.column, at.end_line, at.end_column, text_object(at.text).release(),
                           text_object(at.callee).release(), text_object(at.function).release()));
}

Ref process_object(const ProcessLog& log) {
  Ref dict(PyDict_New()), settings(PyDict_New()), locations(PyDict_New());
  bool good = dict && settings && locations;
  for (const auto& [name, value] : log.settings)
    good = good && put(settings.get(), name, text_object(value));
  for (const auto& [boundary, at] : log.locations)
    good = good && put(locations.get(), boundary, location_object(at));
  good = good &&
         put(dict.get(), "path",
             Ref(PyUnicode_DecodeFSDefaultAndSize(log.path.data(),
                                                  static_cast<Py_ssize_t>(log.path.size())))) &&
         put(dict.get(), "rank", Ref(PyLong_FromLong(log.rank))) &&
         put(dict.get(), "world", Ref(PyLong_FromLong(log.world))) &&
         put(dict.get(), "pid", Ref(PyLong_FromLongLong(log.pid))) &&
         put(dict.get(), "start_ns", Ref(PyLong_FromLongLong(log.start_ns))) &&
         put(dict.get(), "settings", std::move(settings)) &&
         put(dict.get(), "locations", std::move(locations)) &&
         put(dict.get(), "closed", Ref(PyBool_FromLong(log.closed))) &&
         put(dict.get(), "lost", Ref(PyLong_FromUnsignedLongLong(log.lost))) &&
         put(dict.get(), "damage", text_object(log.damage)) &&
         put(dict.get(), "events", Ref(PyLong_FromSize_t(log.events.size()))) &&
         put(dict.get(), "records", Ref(PyLong_FromSize_t(log.slots.size())));
  return good ? dict : Ref();
}

// ---- Tables.

struct TableParts {
  std::shared_ptr<const std::vector<ProcessLog>> logs;
  std::shared_ptr<const LogTable> table;
};

struct TableObject {
  PyObject_HEAD TableParts* parts;
};

TableParts& parts_of(PyObject* self) { return *reinterpret_cast<TableObject*>(self)->parts; }

// What C++ throws, as Python's error; always null.
PyObject* raise_current() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

const Column* find_column(const LogTable& table, PyObject* name) {
  const std::string_view wanted = utf8(name);
  for (const Column& column : table.columns())
    if (column.name == wanted && !wanted.empty()) return &column;
  PyErr_SetObject(PyExc_KeyError, name);
  return nullptr;
}

// names: a sequence or None. False with an error set.
bool find_columns(const LogTable& table, PyObject* names, std::vector<const Column*>& found) {
  if (names == Py_None) {
    for (const Column& column : table.columns()) found.push_back(&column);
    return true;
  }
  Ref list(PySequence_List(names));
  for (Py_ssize_t i = 0, n = list ? PyList_Size(list.get()) : 0; i < n; ++i) {
    const Column* column = find_column(table, PyList_GetItem(list.get(), i));
    if (column == nullptr) return false;
    found.push_back(column);
  }
  return static_cast<bool>(list);
}

// A capsule that owns an Arrow structure until a consumer takes it (and sets `release` to null).
template <typename T>
PyObject* capsule(std::unique_ptr<T> made, const char* name) {
  PyObject* object = PyCapsule_New(made.get(), name, [](PyObject* self) {
    T* held = static_cast<T*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    if (held->release) held->release(held);
    delete held;
  });
  if (object == nullptr)
    made->release(made.get());
  else
    made.release();
  return object;
}

PyObject* table_schema(PyObject* self, PyObject* names) {
  try {
    std::vector<const Column*> columns;
    if (!find_columns(*parts_of(self).table, names, columns)) return nullptr;
    auto schema = std::make_unique<ArrowSchema>();
    export_schema(columns, schema.get());
    return capsule(std::move(schema), "arrow_schema");
  } catch (...) {
    return raise_current();
  }
}

PyObject* table_stream(PyObject* self, PyObject* names) {
  try {
    std::vector<const Column*> columns;
    if (!find_columns(*parts_of(self).table, names, columns)) return nullptr;
    auto stream = std::make_unique<ArrowArrayStream>();
    export_stream(parts_of(self).table, std::move(columns), stream.get());
    return capsule(std::move(stream), "arrow_array_stream");
  } catch (...) {
    return raise_current();
  }
}

struct Filled {
  std::unique_ptr<Memory> values = std::make_unique<Memory>();
  std::unique_ptr<Memory> missing = std::make_unique<Memory>();
  bool any_missing = false;
};

// set(row, value) -> what to put; nothing known: `absent`.
template <typename T, typename F>
void fill(const LogTable& table, const Column& column, const char* type, T absent, F set,
          Filled& filled) {
  T* values = allocate<T>(*filled.values, type, table.size());
  uint8_t* missing = allocate<uint8_t>(*filled.missing, "|b1", table.size());
  table.for_rows(0, table.size(), [&](const Row& row) {
    const std::optional<uint64_t> value = column.value(row);
    *values++ = value ? set(row, *value) : absent;
    *missing++ = !value;
    filled.any_missing |= !value;
  });
}

Filled fill_array(const LogTable& table, const Column& column,
                  const std::vector<uint32_t>& first_meta) {
  Filled filled;
  const auto number = [](const Row&, uint64_t value) { return value; };
  switch (column.type) {
    case ColumnType::boolean:
      fill<uint8_t>(table, column, "|b1", 0, number, filled);
      break;
    case ColumnType::i32:
      fill<int32_t>(table, column, "<i4", 0, number, filled);
      break;
    case ColumnType::u32:
      fill<uint32_t>(table, column, "<u4", 0, number, filled);
      break;
    case ColumnType::u64:
    case ColumnType::hash:
      fill<uint64_t>(table, column, "<u8", 0, number, filled);
      break;
    case ColumnType::text: {
      const Dictionary& dictionary = table.dictionary(column);
      fill<int32_t>(
          table, column, "<i4", -1,
          [&](const Row& row, uint64_t key) { return dictionary.codes[row.process][key]; }, filled);
      break;
    }
    case ColumnType::shape:
      fill<int32_t>(
          table, column, "<i4", -1,
          [&](const Row& row, uint64_t meta) {
            return static_cast<int32_t>(first_meta[row.process] + meta);
          },
          filled);
      break;
  }
  return filled;
}

PyObject* table_array(PyObject* self, PyObject* name) {
  try {
    const TableParts& parts = parts_of(self);
    const Column* column = find_column(*parts.table, name);
    if (column == nullptr) return nullptr;
    // Shapes of all logs are one list; each log's begin behind those of the logs before it.
    std::vector<uint32_t> first_meta = {0};
    for (const ProcessLog& log : *parts.logs)
      first_meta.push_back(first_meta.back() + static_cast<uint32_t>(log.metas.size()));
    Filled filled;
    {
      WithoutGil released;
      filled = fill_array(*parts.table, *column, first_meta);
    }

    Ref texts = Ref::borrow(Py_None), shapes = Ref::borrow(Py_None);
    if (column->type == ColumnType::text) {
      const Dictionary& dictionary = parts.table->dictionary(*column);
      texts = list_of(dictionary.values.size(),
                      [&](size_t i) { return text_object(dictionary.values[i]); });
    }
    if (column->type == ColumnType::shape) {
      shapes = Ref(PyList_New(0));
      for (const ProcessLog& log : *parts.logs)
        for (const Meta& meta : log.metas) {
          Ref shape = shape_object(meta.shape);
          if (!shapes || !shape || PyList_Append(shapes.get(), shape.get()) < 0) return nullptr;
        }
    }
    Ref missing = Ref::borrow(Py_None);
    if (filled.any_missing) missing = Ref(array_object(std::move(filled.missing)));
    Ref values(array_object(std::move(filled.values)));
    if (!texts || !shapes || !missing || !values) return nullptr;
    return PyTuple_Pack(4, values.get(), missing.get(), texts.get(), shapes.get());
  } catch (...) {
    return raise_current();
  }
}

PyObject* table_rows(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(parts_of(self).table->size());
}

PyObject* table_columns(PyObject* self, void*) {
  auto columns = parts_of(self).table->columns();
  Ref list =
      list_of(columns.size(), [&](size_t i) { return Ref(PyUnicode_FromString(columns[i].name)); });
  return list ? PyList_AsTuple(list.get()) : nullptr;
}

// Object and LogTable both hold the logs, and so does each stream: who lives longest frees them.
Ref table_object(std::shared_ptr<const std::vector<ProcessLog>> logs, TableRows rows) {
  auto parts = std::make_unique<TableParts>();
  parts->table = std::make_shared<const LogTable>(logs, rows);
  parts->logs = std::move(logs);
  TableObject* self = PyObject_New(TableObject, g_table_type);
  if (self == nullptr) return {};
  self->parts = parts.release();
  return Ref(reinterpret_cast<PyObject*>(self));
}

PyMethodDef g_table_methods[] = {
    {"schema", table_schema, METH_O, "schema(columns): capsule of an ArrowSchema"},
    {"stream", table_stream, METH_O, "stream(columns): capsule of an ArrowArrayStream"},
    {"array", table_array, METH_O, "array(column): (values, missing, texts, shapes)"},
    {}};
PyGetSetDef g_table_attributes[] = {
    {"rows", table_rows, nullptr, "Number of rows", nullptr},
    {"columns", table_columns, nullptr, "Names of the columns, in order", nullptr},
    {}};
PyType_Slot g_table_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(free_object<TableObject, &TableObject::parts>)},
    {Py_tp_methods, g_table_methods},
    {Py_tp_getset, g_table_attributes},
    {0, nullptr}};
PyType_Spec g_table_spec = {"opguard._rt.LogTable", sizeof(TableObject), 0, kTypeFlags,
                            g_table_slots};

// False: `error` says why.
bool read_logs(const std::string& path, std::vector<ProcessLog>& logs, std::string& error) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored))
    return read_log(path, logs.emplace_back(), error);
  Run run;
  if (!read_run(path, run, error)) return false;
  logs = std::move(run.processes);
  return true;
}

}  // namespace

PyObject* python_read_log(PyObject*, PyObject* name) {
  // By the file system's encoding: a path need not be UTF-8.
  PyObject* encoded = nullptr;
  if (!PyUnicode_FSConverter(name, &encoded)) return nullptr;
  Ref owner(encoded);
  const std::string path = PyBytes_AsString(encoded);
  try {
    auto logs = std::make_shared<std::vector<ProcessLog>>();
    std::string error;
    bool good = false;
    {
      WithoutGil released;
      good = read_logs(path, *logs, error);
    }
    if (!good) {
      PyErr_SetObject(PyExc_ValueError, text_object(error).get());
      return nullptr;
    }
    Ref processes = list_of(logs->size(), [&](size_t i) { return process_object((*logs)[i]); });
    Ref events = table_object(logs, TableRows::events);
    Ref records = table_object(logs, TableRows::records);
    Ref observations = observations_object(logs);
    if (!processes || !events || !records || !observations) return nullptr;
    return PyTuple_Pack(4, processes.get(), events.get(), records.get(), observations.get());
  } catch (...) {
    return raise_current();
  }
}

bool init_python_log() {
  g_array_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_array_spec));
  g_table_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_table_spec));
  return g_array_type != nullptr && g_table_type != nullptr && init_python_observations();
}

}  // namespace opguard
