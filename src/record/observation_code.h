// record/observation_code.h: observations (observation.h) as a log holds them, in chunks of type
// 10, and their schemas, in chunks of type 11.
//
//   a schema        "api", then the names of its fields
//   an observation  schema 3, how many values follow, what step, event and time are more than of
//                   the one before it in the chunk, the values
//   a value         one byte: its kind, and 5 bits for a small number; then what these cannot hold
//
// What is none at the end of a row is not written. So a chunk needs no other, but for the texts and
// schemas that it names.
//
// The cost: a chunk is gone through once as a log is opened, and once more by each cursor. Nothing
// of a row stays in memory. Counterexample: a row as objects would take 300 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/event.h"
#include "record/file_map.h"
#include "record/observation.h"

namespace opguard {

// Of a schema. A row of a few bytes is handed out with all of them.
inline constexpr size_t kMostFields = 256;

// What is before the values, as it waits in memory.
struct ObservedHead {
  uint32_t schema = 0, step = 0;
  uint64_t event = 0;
  int64_t time_ns = 0;
  uint32_t values = 0, bytes = 0;  // of it; a list is one value
};

// The code of a value. Of a list: its elements come behind it.
void put_value(std::string& out, const ObservedValue& value);
inline ObservedValue observed_integer(int64_t n) {
  ObservedValue value;
  value.kind = ObservedKind::integer;
  value.integer = n;
  return value;
}
inline ObservedValue observed_bits(uint64_t bits) {
  ObservedValue value;
  value.kind = ObservedKind::bits;
  value.bits = bits;
  return value;
}
inline ObservedValue observed_real(double x) {
  ObservedValue value;
  value.kind = ObservedKind::real;
  value.real = x;
  return value;
}

// Rows of a chunk to come.
class ObservationEncoder {
 public:
  void add(const ObservedHead& head, std::string_view values);
  const std::string& bytes() const { return bytes_; }
  uint32_t rows() const { return rows_; }
  void clear();

 private:
  std::string bytes_;
  uint32_t rows_ = 0;
  ObservedHead before_;
};

// Rows of a chunk, one after the other. Their memory is used again.
class ObservationDecoder {
 public:
  // payload: behind the number of its first row. strings: how many texts the log has.
  void begin(std::string_view payload, uint32_t count, uint64_t strings);
  // False: there is none left, or what is left makes no sense.
  bool next(Observation& row, const std::vector<ObservationSchema>& schemas);
  // "" or why the chunk is to be refused, once next() has said false.
  std::string fault() const;

 private:
  std::string_view rest_;
  uint32_t left_ = 0;
  uint64_t strings_ = 0;
  uint32_t step_ = 0;
  uint64_t event_ = 0;
  int64_t time_ns_ = 0;
  std::vector<ObservedValue> values_;
  std::vector<uint32_t> starts_;
  std::string fault_;
};

// The observations of one log, where they lie.
class ObservationTable {
 public:
  uint64_t size() const { return rows_; }
  bool empty() const { return rows_ == 0; }
  const std::vector<ObservationSchema>& schemas() const { return schemas_; }

  // ---- For the reader.

  // As SketchTable's.
  void set_file(std::shared_ptr<const FileMap> file) { file_ = std::move(file); }
  std::vector<ObservationSchema>& edit_schemas() { return schemas_; }
  // Behind the number of its first row.
  std::string add(std::string_view payload, uint32_t count, uint64_t strings);
  // Events from the own index `first` on are at `at` in the log; in ascending order.
  void add_stretch(uint64_t first, uint64_t at) { stretches_.push_back({first, at}); }
  void finish(uint64_t events) { events_ = events; }

 private:
  friend class ObservationCursor;
  struct Part {
    std::string_view payload;
    uint32_t count = 0;
  };
  struct Stretch {
    uint64_t first = 0, at = 0;
  };
  uint64_t place(uint64_t event) const;

  std::vector<ObservationSchema> schemas_;
  std::vector<Part> parts_;
  std::vector<Stretch> stretches_;
  uint64_t rows_ = 0, strings_ = 0, events_ = 0;
  ObservationDecoder decoder_;
  std::shared_ptr<const FileMap> file_;
  std::vector<std::shared_ptr<const std::string>> held_;
};

// All rows of a table, in their order. A thread has one of its own.
//
//   ObservationCursor rows(log.observations);
//   for (Observation row; rows.next(row);) look(row);
class ObservationCursor {
 public:
  // The table stays where it is.
  explicit ObservationCursor(const ObservationTable& table) : table_(table) {}
  bool next(Observation& row);

 private:
  const ObservationTable& table_;
  size_t part_ = 0;
  ObservationDecoder decoder_;
};

}  // namespace opguard
