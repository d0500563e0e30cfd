#include "align/values/movers.h"

#include <algorithm>
#include <vector>

#include "align/values/digests.h"

namespace opguard {
namespace {

uint64_t element_count(const Meta& meta) {
  uint64_t count = 1;
  for (const int64_t n : meta.shape) count *= uint64_t(n);
  return count;
}

bool lies_in(const Slot& part, const Slot& whole) {
  return part.storage != 0 && part.storage == whole.storage && part.address >= whole.address &&
         part.address + part.size_bytes <= whole.address + whole.size_bytes;
}

class Execution {
 public:
  Execution(const ProcessLog& log, const Event& event) : log_(log) {
    const EventSlots slots = log.slots.of_event(event);
    for (const Slot& slot : slots) (slot.kind == SlotKind::in ? read_ : left_).push_back(slot);
  }

  bool moves() const {
    bool any = false;
    std::vector<Slot> rest;  // that no input explains by itself
    for (const Slot& result : left_) {
      if (result.has_digest && result.digest == 0) continue;  // zeros tell nothing
      any = true;
      if (!is_of_inputs(result)) rest.push_back(result);
    }
    return any && (rest.empty() || is_split(rest));
  }

 private:
  std::vector<Slot> like(const Slot& result) const {
    std::vector<Slot> inputs;
    for (const Slot& input : read_)
      if (has_elements(input) && log_.metas[input.meta].dtype == log_.metas[result.meta].dtype)
        inputs.push_back(input);
    return inputs;
  }

  bool is_of_inputs(const Slot& result) const {
    const std::vector<Slot> inputs = like(result);
    const uint64_t count = element_count(log_.metas[result.meta]);
    for (const Slot& input : inputs) {
      if (same_elements(result, input) || (is_view(result) && lies_in(result, input))) return true;
      const uint64_t whole = element_count(log_.metas[input.meta]);
      if (whole > 0 && count > whole && count % whole == 0 &&
          is_repeat_of(result, input, count / whole))
        return true;
    }
    return !inputs.empty() && is_sum_of(result, inputs);
  }

  // Handed out of an input's memory, which the operator did not write.
  bool is_view(const Slot& result) const {
    return result.kind == SlotKind::out &&
           std::none_of(left_.begin(), left_.end(), [&](const Slot& slot) {
             return slot.kind == SlotKind::written && slot.storage == result.storage;
           });
  }

  bool is_split(const std::vector<Slot>& results) const {
    const std::vector<Slot> inputs = like(results[0]);
    return is_sum_of_any(inputs, results);
  }

  static bool is_sum_of_any(const std::vector<Slot>& wholes, const std::vector<Slot>& parts) {
    if (wholes.size() > 1) {
      uint64_t whole = 0, sum = 0;
      for (const Slot& slot : wholes) whole += slot.digest;
      for (const Slot& slot : parts) sum += slot.digest;
      const bool known = std::all_of(parts.begin(), parts.end(), has_elements);
      if (known && whole == sum) return true;
    }
    return std::any_of(wholes.begin(), wholes.end(),
                       [&](const Slot& whole) { return is_sum_of(whole, parts); });
  }

  const ProcessLog& log_;
  std::vector<Slot> read_, left_;
};

}  // namespace

bool rearranges(const ProcessLog& log, const Event& event) { return Execution(log, event).moves(); }

bool overwrites(std::string_view callee, std::string_view slot) {
  const std::string_view name = callee.substr(callee.rfind('.') + 1);
  return (name == "copy_" && slot == "self") ||
         (name == "_foreach_copy_" && slot.starts_with("arg0["));
}

}  // namespace opguard
