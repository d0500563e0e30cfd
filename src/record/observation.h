// record/observation.h: what was seen of a program's training, beside its operators: chunks of
// type 10 of a log. The kinds and their fields: docs/formats/observations.md.
//
//   schema        "api" with the fields name, object, type, number, flag, result, place
//   observation   schema 3, step 7, before event 1042, values "zero_grad", 1, "AdamW", ...
//
// A log says its own schemas. So a kind that a reader does not know is stepped over. A field that
// is missing reads as none.
//
// Counterexample: an operator is an event (event.h), with tensors; an observation holds numbers,
// names and digests only.
//
// The cost: about 10 bytes for an entry of 4 values on disk; nothing in memory but where it lies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace opguard {

enum class ObservedKind : uint8_t { none, no, yes, integer, real, text, bits, list };

// One value. A list is followed by its elements, in place: {list, 2}, {integer, 8}, {integer, 64}.
struct ObservedValue {
  ObservedKind kind = ObservedKind::none;
  uint32_t text = 0;  // text: string of the log. list: its elements, each with its own below it
  union {
    int64_t integer = 0;  // integer
    double real;
    uint64_t bits;  // a digest
  };
};

struct ObservationSchema {
  uint32_t kind = 0;             // string: "call"
  std::vector<uint32_t> fields;  // strings
};

// One entry as it is handed to a reader; the values live until the next one is asked for.
struct Observation {
  uint32_t schema = 0;                    // in the order in which the log says them
  uint32_t step = 0;                      // Event::step at that time
  uint64_t event = 0;                     // events of the log that had ended before
  int64_t time_ns = 0;                    // the clock of Event::start_ns
  std::span<const ObservedValue> values;  // all of them, lists in place
  std::span<const uint32_t> starts;       // where value i begins in `values`, for each field

  // The value of a field and, where it is a list, its elements.
  std::span<const ObservedValue> field(size_t i) const {
    if (i >= starts.size()) return {};
    size_t end = i + 1 < starts.size() ? starts[i + 1] : values.size();
    return values.subspan(starts[i], end - starts[i]);
  }
};

}  // namespace opguard
