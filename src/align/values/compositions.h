// align/values/compositions.h: what is put together of a run's values, known by its elements.
//
// One run expands a mask over the batch before it computes on it, the next leaves that to
// broadcasting. One keeps gradients in a list, the next in a flat buffer, padded, or in a share of
// it on each rank. No operator of the other run holds such a value, and none is news. Digests tell:
//
//   a list      the sum of its tensors' is the buffer's, in any order, with any padding
//   k times     k times the single one's, where the shapes say that it may be a repetition
//   all ranks   the sum of what one execution has in one slot on every rank is the whole's
//
// A whole permutation or a cast of one value is not among them. That may be the very fault (another
// layout of q, k and v), and the operator that does it is to be found.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

// How often a value of shape `from` is in one of shape `to` that repeats it along dimensions of
// size 1. Dimensions are aligned at the last, missing ones are of size 1. 0: `to` is no such
// repetition.
uint64_t repetitions(const std::vector<int64_t>& from, const std::vector<int64_t>& to);

// The values of one run, as another run asks for what it has put together of them.
class Compositions {
 public:
  Compositions(const Run& held, const Run& asking);

  // The elements of a list of tensors that one event reads or leaves (an optimizer's gradients, a
  // bucket's, `arg0[0]`, `arg0[1]`, ...).
  bool holds_list(const std::string& dtype, uint64_t digest) const;
  // A value that this one repeats, or a repetition of this one.
  bool holds_repeated(const Meta& meta, uint64_t digest) const;
  // The elements of one value, wherever they lie in it.
  bool holds_elements(const std::string& dtype, uint64_t digest) const;

 private:
  using Type = std::pair<std::string, std::vector<int64_t>>;  // dtype, shape without leading ones
  using Digests = std::unordered_set<uint64_t>;
  // A tensor of an event, by the list it is in.
  struct Part {
    uint64_t list;  // 4 * number of the list's name + kind
    uint32_t place;
  };
  bool lists_any(const EventSlots& slots, const std::vector<uint32_t>& lists);
  void add(const ProcessLog& log, const EventSlots& slots, const std::vector<uint32_t>& lists);

  std::map<std::string, Digests> lists_, single_;     // by dtype
  std::map<Type, std::vector<uint64_t>> repeatable_;  // of shapes that may repeat one another
  std::vector<Part> parts_;                           // of the event that is added
  // All of one type, repeated to a shape.
  mutable std::map<std::pair<Type, std::vector<int64_t>>, Digests> repeated_;
};

// The sums over all ranks of what they hold in one slot of one execution.
class RankSums {
 public:
  explicit RankSums(const Run& run) : run_(run) {}

  // none: one rank alone, or one that did not do this, or whose value has no digest.
  std::optional<uint64_t> of(const EventRef& event, const Slot& slot) const;

 private:
  using Executions = std::unordered_map<uint64_t, uint32_t>;  // event, by what it is
  const Executions& executions(int32_t process) const;
  static uint64_t what(const ProcessLog& log, const Event& event);

  const Run& run_;
  mutable std::unordered_map<int32_t, Executions> executions_;  // by process
};

}  // namespace opguard
