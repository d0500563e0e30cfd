// align/values/flat_groups.h: the names of flat buffers that hold the tensors of one event one
// after the other: og1 of a whole follows from its parts' (docs/record-format.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "align/values/value_index.h"

namespace opguard {

// What the events of one log list. Texts and shapes are looked at once: most events list nothing,
// and to find that out must cost next to nothing.
class FlatGroups {
 public:
  explicit FlatGroups(const ProcessLog& log);

  // For each list of two tensors or more that the event reads or leaves (an optimizer's gradients,
  // a bucket's, `arg0[0]`, `arg0[1]`, ...): all of them in order, and in the opposite order, in
  // which backward makes gradients. Lists whose lanes differ in width from the whole's have none.
  // Valid until the next call.
  const std::vector<ValueKey>& of(const Event& event);

 private:
  struct Type {
    uint32_t dtype = 0;  // number
    uint64_t elements = 0;
    uint64_t element_bytes = 0;  // 0: not known
  };
  // A tensor of an event, by the list it is in.
  struct Part {
    uint64_t list = 0;  // 4 * number of the list's name + kind
    uint32_t dtype = 0, place = 0;
    auto operator<=>(const Part&) const = default;
    bool same_list(const Part& other) const { return list == other.list && dtype == other.dtype; }
  };
  bool any_list();
  void name(const Slot* slots, size_t from, size_t to);

  const ProcessLog& log_;
  std::vector<uint32_t> lists_;  // by string: number of the name of the list it is of
  uint32_t unnamed_ = 0;
  std::vector<Type> types_;  // by meta
  std::vector<Part> parts_;  // of the event
  std::vector<ValueKey> names_;
};

}  // namespace opguard
