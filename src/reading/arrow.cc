// Fills Arrow's C structures by hand: a struct array a batch, a child a column.
//
//   column        layout                           example: "a", missing, "b"
//   text          int32 codes and a dictionary     codes 0, 0, 1; validity 101; texts "ab", 0 1 2
//   shape         offsets and int64 items          [2, 3], missing: offsets 0 2 2; items 2 3
//   u64, hash     the numbers                      0 where a value is missing
//
// Each structure owns what it points to in its private data, and `release` frees it.
// Counterexample: a child may be moved away by the consumer, whose `release` is null then. So a
// parent frees only those that are still there.
//
// The cost: a batch of rows is in memory twice while a stream is read, and never the whole table.
#include "reading/arrow.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

namespace opguard {
namespace {

// ---- Schemas. What a struct's pointers point to lives in its private data.

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

struct SchemaParts {
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary = {};
};

void release_schema(ArrowSchema* schema) {
  // A child that the consumer has moved away is released already.
  for (int64_t i = 0; i < schema->n_children; ++i)
    if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
  if (schema->dictionary && schema->dictionary->release)
    schema->dictionary->release(schema->dictionary);
  delete static_cast<SchemaParts*>(schema->private_data);
  schema->release = nullptr;
}

// children: how many; all zero, to be filled in.
// The structure owns its parts from here on, so what is thrown later frees them by `release`.
SchemaParts& open_schema(ArrowSchema* out, const char* format, const std::string& name,
                         size_t children, bool dictionary = false) {
  auto parts = std::make_unique<SchemaParts>();
  parts->name = name;
  parts->children.resize(children);
  for (ArrowSchema& child : parts->children) parts->pointers.push_back(&child);
  *out = {format,
          parts->name.c_str(),
          nullptr,
          kNullable,
          static_cast<int64_t>(children),
          parts->pointers.data(),
          dictionary ? &parts->dictionary : nullptr,
          release_schema,
          parts.get()};
  return *parts.release();
}

void column_schema(const Column& column, ArrowSchema* out) {
  switch (column.type) {
    case ColumnType::boolean:
      open_schema(out, "b", column.name, 0);
      break;
    case ColumnType::i32:
      open_schema(out, "i", column.name, 0);
      break;
    case ColumnType::u32:
      open_schema(out, "I", column.name, 0);
      break;
    case ColumnType::u64:
    case ColumnType::hash:
      open_schema(out, "L", column.name, 0);
      break;
    case ColumnType::text:
      open_schema(&open_schema(out, "i", column.name, 0, true).dictionary, "u", "", 0);
      break;
    case ColumnType::shape:
      open_schema(&open_schema(out, "+l", column.name, 1).children[0], "l", "item", 0);
      break;
  }
}

// ---- Arrays.

struct ArrayParts {
  std::vector<uint8_t> validity;
  std::vector<uint8_t> bytes;  // the values, or a list's or a text's offsets
  std::string text;            // a text's characters
  const void* buffers[3] = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary = {};
};

void release_array(ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; ++i)
    if (array->children[i]->release) array->children[i]->release(array->children[i]);
  if (array->dictionary && array->dictionary->release)
    array->dictionary->release(array->dictionary);
  delete static_cast<ArrayParts*>(array->private_data);
  array->release = nullptr;
}

// As open_schema(): `length` rows, buffers that its parts hold, children to be filled in.
ArrayParts& open_array(ArrowArray* out, uint64_t length, int64_t buffers, size_t children = 0,
                       bool dictionary = false) {
  auto parts = std::make_unique<ArrayParts>();
  parts->children.resize(children);
  for (ArrowArray& child : parts->children) parts->pointers.push_back(&child);
  *out = {static_cast<int64_t>(length),
          0,
          0,
          buffers,
          static_cast<int64_t>(children),
          parts->buffers,
          parts->pointers.data(),
          dictionary ? &parts->dictionary : nullptr,
          release_array,
          parts.get()};
  return *parts.release();
}

void set_bit(std::vector<uint8_t>& bits, uint64_t i) {
  bits[i / 8] |= static_cast<uint8_t>(1u << (i % 8));
}

// The rows [begin, end) of a column, one value after the other.
class Filler {
 public:
  Filler(const LogTable& table, const Column& column, uint64_t begin, uint64_t end, ArrowArray* out)
      : table_(table), column_(column), begin_(begin), end_(end), out_(out) {}

  void booleans() {
    ArrayParts& parts = open(2);
    parts.bytes.assign((count() + 7) / 8, 0);
    each([&](uint64_t i, const Row&, uint64_t value) {
      if (value != 0) set_bit(parts.bytes, i);
    });
    close(parts);
  }

  template <typename T>
  void numbers() {
    ArrayParts& parts = open(2);
    T* to = values<T>(parts, count());
    each([&](uint64_t i, const Row&, uint64_t value) { to[i] = static_cast<T>(value); });
    close(parts);
  }

  // The dictionary is whole in each batch, also where few of its texts are in it.
  void codes() {
    const Dictionary& dictionary = table_.dictionary(column_);
    ArrayParts& parts = open(2, 0, true);
    int32_t* to = values<int32_t>(parts, count());
    each([&](uint64_t i, const Row& row, uint64_t key) {
      to[i] = dictionary.codes[row.process][key];
    });
    close(parts);
    texts(dictionary.values, &parts.dictionary);
  }

  // A missing shape is an empty list without validity, so the offsets go on over it.
  void shapes() {
    ArrayParts& parts = open(2, 1);
    int32_t* offsets = values<int32_t>(parts, count() + 1);
    std::vector<int64_t> sizes;
    uint64_t next = 0;  // offsets before it are set
    each([&](uint64_t i, const Row& row, uint64_t meta) {
      for (; next <= i; ++next) offsets[next] = offset(sizes.size());
      const std::vector<int64_t>& shape = row.log.metas[meta].shape;
      sizes.insert(sizes.end(), shape.begin(), shape.end());
    });
    for (; next <= count(); ++next) offsets[next] = offset(sizes.size());
    close(parts);
    ArrayParts& items = open_array(&parts.children[0], sizes.size(), 2);
    std::copy(sizes.begin(), sizes.end(), values<int64_t>(items, sizes.size()));
    items.buffers[1] = items.bytes.data();
  }

 private:
  uint64_t count() const { return end_ - begin_; }

  // Offsets are 32 bits in these layouts. The wider ones are other types, which consumers would
  // have to be told.
  static int32_t offset(size_t n) {
    if (n > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      throw std::length_error("more than 2 GiB of text or shapes in a column");
    return static_cast<int32_t>(n);
  }

  // Never empty: some consumers take a null pointer for a fault.
  template <typename T>
  static T* values(ArrayParts& parts, uint64_t n) {
    parts.bytes.assign(std::max<uint64_t>(n, 1) * sizeof(T), 0);
    return reinterpret_cast<T*>(parts.bytes.data());
  }

  static void texts(const std::vector<std::string>& texts, ArrowArray* out) {
    ArrayParts& parts = open_array(out, texts.size(), 3);
    int32_t* offsets = values<int32_t>(parts, texts.size() + 1);
    for (size_t i = 0; i < texts.size(); ++i) {
      parts.text += texts[i];
      offsets[i + 1] = offset(parts.text.size());
    }
    parts.buffers[1] = parts.bytes.data();
    parts.buffers[2] = parts.text.data();
  }

  // Validity begins as all missing; each() sets what is there.
  ArrayParts& open(int64_t buffers, size_t children = 0, bool dictionary = false) {
    ArrayParts& parts = open_array(out_, count(), buffers, children, dictionary);
    parts.validity.assign((count() + 7) / 8, 0);
    return parts;
  }

  // set(row from 0, row, value) for each row whose value is known.
  template <typename F>
  void each(F set) {
    uint64_t i = 0;
    ArrayParts& parts = *static_cast<ArrayParts*>(out_->private_data);
    table_.for_rows(begin_, end_, [&](const Row& row) {
      if (std::optional<uint64_t> value = column_.value(row)) {
        set_bit(parts.validity, i);
        set(i, row, *value);
      } else {
        ++out_->null_count;
      }
      ++i;
    });
  }

  // Pointers are taken last: filling moves the vectors. Without a missing value there is no
  // validity buffer, which says the same.
  void close(ArrayParts& parts) {
    if (out_->null_count == 0) parts.validity.clear();
    parts.buffers[0] = parts.validity.empty() ? nullptr : parts.validity.data();
    parts.buffers[1] = parts.bytes.data();
  }

  const LogTable& table_;
  const Column& column_;
  const uint64_t begin_, end_;
  ArrowArray* out_;
};

void fill_column(const LogTable& table, const Column& column, uint64_t begin, uint64_t end,
                 ArrowArray* out) {
  Filler filler(table, column, begin, end, out);
  switch (column.type) {
    case ColumnType::boolean:
      return filler.booleans();
    case ColumnType::i32:
      return filler.numbers<int32_t>();
    case ColumnType::u32:
      return filler.numbers<uint32_t>();
    case ColumnType::u64:
    case ColumnType::hash:
      return filler.numbers<uint64_t>();
    case ColumnType::text:
      return filler.codes();
    case ColumnType::shape:
      return filler.shapes();
  }
}

// ---- The stream.

// `next`: the first row of the batch to come.
struct Stream {
  std::shared_ptr<const LogTable> table;
  std::vector<const Column*> columns;
  uint64_t next = 0;
  std::string error;
};

// Nothing may be thrown into the consumer. On failure what was begun in *out is released.
template <typename Out, typename F>
int guarded(ArrowArrayStream* stream, Out* out, F f) {
  Stream& s = *static_cast<Stream*>(stream->private_data);
  *out = {};
  try {
    f(s);
    return 0;
  } catch (const std::bad_alloc&) {
    s.error = "out of memory";
  } catch (const std::exception& e) {
    s.error = e.what();
  }
  if (out->release) out->release(out);
  return s.error == "out of memory" ? ENOMEM : EINVAL;
}

int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return guarded(stream, out, [&](Stream& s) { export_schema(s.columns, out); });
}

int stream_next(ArrowArrayStream* stream, ArrowArray* out) {
  return guarded(stream, out, [&](Stream& s) {
    if (s.next == s.table->size()) return;  // *out is released: the end
    const uint64_t end = std::min(s.next + kBatchRows, s.table->size());
    ArrayParts& parts = open_array(out, end - s.next, 1, s.columns.size());
    for (size_t i = 0; i < s.columns.size(); ++i)
      fill_column(*s.table, *s.columns[i], s.next, end, &parts.children[i]);
    s.next = end;
  });
}

const char* stream_error(ArrowArrayStream* stream) {
  const Stream& s = *static_cast<Stream*>(stream->private_data);
  return s.error.empty() ? nullptr : s.error.c_str();
}

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->release = nullptr;
}

}  // namespace

void export_schema(const std::vector<const Column*>& columns, ArrowSchema* out) {
  *out = {};
  try {
    SchemaParts& parts = open_schema(out, "+s", "", columns.size());
    // A batch's struct is never missing itself, unlike its columns.
    out->flags = 0;
    for (size_t i = 0; i < columns.size(); ++i) column_schema(*columns[i], &parts.children[i]);
  } catch (...) {
    if (out->release) out->release(out);
    throw;
  }
}

void export_stream(std::shared_ptr<const LogTable> table, std::vector<const Column*> columns,
                   ArrowArrayStream* out) {
  auto stream = std::make_unique<Stream>();
  stream->table = std::move(table);
  stream->columns = std::move(columns);
  *out = {stream_schema, stream_next, stream_error, release_stream, stream.release()};
}

}  // namespace opguard
