// reading/columns.h: logs as tables: a row an event or a record, a column what is known of it.
//
//   events     process 0, rank 0, event 12, step 3, phase forward, kind op, boundary model.mul:77ab
//   records    ... of the same event: slot_name "self", dtype float32, shape [4, 8], h 9f31...
//
// The one definition of names and types for all that hands a log to other programs: the tables of
// opguard.read_log (reading/python_log.h), `opguard dump --format` and `opguard export`. What the
// columns mean: docs/formats/reading.md.
//
// Counterexample: a row that is kept. A Row refers to what it is visited with, and is gone behind
// visit().
//
// The cost: no table is made; a column is computed as its rows are visited. A dictionary holds each
// different text once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/record.h"

namespace opguard {

enum class TableRows : uint8_t { events, records };

// One row, while it is visited. Of a table of events `slot` is null.
struct Row {
  const ProcessLog& log;
  uint32_t process;  // index of `log` among the logs
  uint64_t event;    // index of `at` in its log
  const Event& at;
  const Slot* slot;
};

enum class ColumnType : uint8_t {
  boolean,
  i32,
  u32,
  u64,
  hash,   // u64, as text 16 hexadecimal digits
  text,   // few different values in many rows
  shape,  // sizes of dimensions, i64 each
};

// Where a text column's values are: entry `key` of one of these lists of a log.
struct TextSource {
  size_t (*size)(const ProcessLog&);
  std::string (*text)(const ProcessLog&, size_t key);
};

struct Column {
  const char* name;
  ColumnType type;
  // A number's value, sign-extended; a text's key in its source; a shape's index in metas. Nothing
  // where it is not known.
  std::optional<uint64_t> (*value)(const Row&);
  const TextSource* source = nullptr;  // text only
};

// In the order in which tables show them.
std::span<const Column> columns_of(TableRows rows);

// The different values of a text column, in order of first appearance; valid UTF-8 (what is not is
// replaced by U+FFFD).
struct Dictionary {
  std::vector<std::string> values;
  std::vector<std::vector<int32_t>> codes;  // [process][key]: index in values, -1 if no row has it
};

// The rows of several logs, one log after the other. May be used by several threads at once.
class LogTable {
 public:
  LogTable(std::shared_ptr<const std::vector<ProcessLog>> logs, TableRows rows);

  std::span<const Column> columns() const { return columns_of(rows_); }
  uint64_t size() const { return starts_.back(); }

  // Made when it is first asked for. `column`: one of columns(), of type text.
  const Dictionary& dictionary(const Column& column) const;

  // visit(row) for rows [begin, end), in order, log by log. A record's event is looked up once, at
  // the first row; from there on both go forward together.
  template <typename F>
  void for_rows(uint64_t begin, uint64_t end, F visit) const {
    for (uint32_t p = 0; p < logs_->size(); ++p) {
      if (end <= starts_[p] || begin >= starts_[p + 1]) continue;
      const uint64_t first = begin > starts_[p] ? begin - starts_[p] : 0;
      const uint64_t last = (end < starts_[p + 1] ? end : starts_[p + 1]) - starts_[p];
      if (rows_ == TableRows::events)
        visit_events((*logs_)[p], p, first, last, visit);
      else
        visit_slots((*logs_)[p], p, first, last, visit);
    }
  }

 private:
  template <typename F>
  static void visit_events(const ProcessLog& log, uint32_t process, uint64_t first, uint64_t last,
                           F& visit) {
    for (uint64_t i = first; i < last; ++i) {
      const Event event = log.events[i];
      visit(Row{log, process, i, event, nullptr});
    }
  }
  template <typename F>
  static void visit_slots(const ProcessLog& log, uint32_t process, uint64_t first, uint64_t last,
                          F& visit) {
    for (uint64_t e = event_of(log, first); first < last; ++e) {
      const Event event = log.events[e];
      const EventSlots slots = log.slots_of(event);
      for (uint64_t s = first - event.first_slot; s < slots.size() && first < last; ++s, ++first)
        visit(Row{log, process, e, event, &slots[s]});
    }
  }
  // The event that slot `slot` of the log belongs to.
  static uint64_t event_of(const ProcessLog& log, uint64_t slot);
  Dictionary make_dictionary(const Column& column) const;

  std::shared_ptr<const std::vector<ProcessLog>> logs_;
  TableRows rows_;
  std::vector<uint64_t> starts_;  // of each log's rows, and their end
  // Over dictionaries_ alone; the logs do not change.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<const Dictionary>> dictionaries_;  // by column
};

}  // namespace opguard
