// align/values/value_index.h: everything a run held, by name, and who made it.
//
//   name                                       of
//   flat hash and 6 elements and float32       [[1, 2, 3], [4, 5, 6]], and its reshape to 3 by 2
//   another                                    its transpose: other bytes in logical order
//   another                                    the same numbers in bfloat16
//
// So a value is found again in the other run wherever it went: into another operator, another step,
// another name. Counterexample: zeros and ones have makers without number; that a run holds such a
// value says little, and judge/novelty.h asks where it stands as well.
//
// The cost: made when first asked for, since runs that agree need none of it. A value held takes 8
// bytes and a maker 24. A look-up is a binary search.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "align/pair/collectives.h"
#include "align/values/compositions.h"
#include "align/values/memory.h"
#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

// The name of a value: its bytes in logical order and its dtype, whatever its shape.
struct ValueKey {
  uint64_t lo = 0, hi = 0;
  auto operator<=>(const ValueKey&) const = default;
};

struct ValueKeyHash {
  size_t operator()(const ValueKey& key) const { return key.lo ^ (key.hi * 0x9e3779b97f4a7c15ull); }
};

ValueKey value_key(const ProcessLog& log, const Slot& slot);
ValueKey value_key(uint64_t flat, uint64_t elements, std::string_view dtype);

// False for what names no value: unreadable or uninitialised memory.
bool has_value(const Slot& slot);

// Everything a run held, and who made it.
class ValueIndex {
 public:
  explicit ValueIndex(const Run& run) : run_(run), memory_(run), rank_sums_(run) {}

  const Run& run() const { return run_; }
  bool holds(const ValueKey& key) const;

  // The first event that made the value (returned it or wrote it) before `consumer` (`inclusive`:
  // or by it). It is looked for in the consumer's own process, else in the process that made it
  // first by the clock. `{}` if none did.
  SlotRef producer(const ValueKey& key, const EventRef& consumer, bool inclusive) const;

  // Who left which bytes.
  const Memory& memory() const { return memory_; }

  const Collectives& collectives() const;
  // What is put together of its values, for `asking`, always the same run.
  const Compositions& compositions(const Run& asking) const;
  const RankSums& rank_sums() const { return rank_sums_; }

  Event event(const EventRef& ref) const { return run_.processes[ref.process].events[ref.event]; }
  const ProcessLog& log(const EventRef& ref) const { return run_.processes[ref.process]; }
  Slot slot(const SlotRef& ref) const { return log(ref.event).slots[ref.slot]; }
  std::string_view boundary(const EventRef& ref) const {
    return log(ref).text(event(ref).boundary);
  }

 private:
  // Keys are folded into 64 bits: two of a run's values meet by chance as rarely as two tensors'
  // flat hashes do.
  struct Maker {
    uint64_t key;
    int32_t process;
    uint32_t event, slot;  // `slot`: among the event's
  };
  struct Values {
    std::vector<uint64_t> held;  // sorted
    std::vector<Maker> makers;   // the first of each process; by key, then process
  };
  // Made when first asked for: runs whose model values agree need none of it.
  const Values& values() const;
  SlotRef made_by(const Maker& maker) const;

  const Run& run_;
  Memory memory_;
  mutable std::optional<Values> values_;
  mutable std::optional<Collectives> collectives_;
  mutable std::optional<Compositions> compositions_;
  RankSums rank_sums_;
};

}  // namespace opguard
