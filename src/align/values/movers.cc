#include "align/values/movers.h"

#include <algorithm>
#include <array>
#include <vector>

#include "align/values/digests.h"

namespace opguard {
namespace {

std::string_view last_name(std::string_view callee) {
  size_t dot = callee.rfind('.');
  return dot == std::string_view::npos ? callee : callee.substr(dot + 1);
}

}  // namespace

bool moves_bytes(std::string_view callee) {
  static constexpr std::array kMovers = {"T",
                                         "[]",
                                         "[]=",
                                         "as_strided",
                                         "broadcast_to",
                                         "cat",
                                         "chunk",
                                         "clone",
                                         "concat",
                                         "contiguous",
                                         "copy_",
                                         "detach",
                                         "expand",
                                         "expand_as",
                                         "flatten",
                                         "flip",
                                         "gather",
                                         "index_select",
                                         "movedim",
                                         "narrow",
                                         "pad",
                                         "permute",
                                         "ravel",
                                         "repeat",
                                         "reshape",
                                         "reshape_as",
                                         "roll",
                                         "select",
                                         "split",
                                         "split_with_sizes",
                                         "squeeze",
                                         "stack",
                                         "swapaxes",
                                         "swapdims",
                                         "t",
                                         "take",
                                         "tensor_split",
                                         "tile",
                                         "transpose",
                                         "unbind",
                                         "unflatten",
                                         "unfold",
                                         "unsqueeze",
                                         "view",
                                         "view_as",
                                         "hstack",
                                         "vstack",
                                         "_foreach_copy_",
                                         "_flatten_dense_tensors",
                                         "_unflatten_dense_tensors",
                                         "repeat_interleave"};
  std::string_view name = last_name(callee);
  return std::find(kMovers.begin(), kMovers.end(), name) != kMovers.end();
}

bool rearranges(const ProcessLog& log, const Event& event) {
  const Slot* slots = log.slots.of_event(event.first_slot);
  const std::vector<Slot> all(slots, slots + event.slot_count);
  bool any = false;
  for (const Slot& result : all) {
    if (result.kind == SlotKind::in) continue;
    if (!has_elements(result)) return false;
    std::vector<Slot> read;
    for (const Slot& input : all)
      if (input.kind == SlotKind::in && has_elements(input) &&
          log.metas[input.meta].dtype == log.metas[result.meta].dtype)
        read.push_back(input);
    const bool one = std::any_of(read.begin(), read.end(),
                                 [&](const Slot& input) { return same_elements(result, input); });
    if (!one && !is_sum_of(result, read)) return false;
    any = true;
  }
  return any;
}

bool overwrites(std::string_view callee, std::string_view slot) {
  const std::string_view name = last_name(callee);
  return (name == "copy_" && slot == "self") ||
         (name == "_foreach_copy_" && slot.starts_with("arg0["));
}

}  // namespace opguard
