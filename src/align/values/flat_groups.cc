#include "align/values/flat_groups.h"

#include <algorithm>
#include <unordered_map>

#include "record/og1_base.h"

namespace opguard {
namespace {

uint64_t lane_of(uint64_t row_bytes) {
  for (uint64_t lane : {8, 4, 2})
    if (row_bytes % lane == 0) return lane;
  return 1;
}

// "bfloat16" -> 2; 0 where the name does not say.
uint64_t element_bytes(const std::string& dtype) {
  size_t digits = dtype.find_last_not_of("0123456789") + 1;
  if (digits == dtype.size() || dtype.size() - digits > 3) return 0;
  return std::stoul(dtype.substr(digits)) / 8;
}

uint64_t elements(const Meta& meta) {
  uint64_t count = 1;
  for (int64_t n : meta.shape) count *= uint64_t(n);
  return count;
}

// "grad:layers.0.weight" -> "grad:", "arg0[3]" -> "arg0[", "grad12" -> "grad".
std::string list_of(const std::string& name) {
  if (size_t end = name.find_first_of(":["); end != name.npos) return name.substr(0, end + 1);
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

}  // namespace

FlatGroups::FlatGroups(const ProcessLog& log) : log_(log) {
  std::unordered_map<std::string, uint32_t> lists, dtypes;
  auto number = [](std::unordered_map<std::string, uint32_t>& numbers, const std::string& text) {
    return numbers.try_emplace(text, uint32_t(numbers.size())).first->second;
  };
  unnamed_ = number(lists, "");
  for (const std::string& text : log.strings) lists_.push_back(number(lists, list_of(text)));
  for (const Meta& meta : log.metas)
    types_.push_back({number(dtypes, meta.dtype), elements(meta), element_bytes(meta.dtype)});
}

const std::vector<ValueKey>& FlatGroups::of(const Event& event) {
  names_.clear();
  if (event.slot_count < 2) return names_;
  parts_.clear();
  const Slot* slots = log_.slots.of_event(event.first_slot);
  for (uint32_t s = 0; s < event.slot_count; ++s) {
    const Slot& slot = slots[s];
    if (!has_value(slot) || slot.meta >= types_.size()) continue;
    const uint32_t list = slot.name < lists_.size() ? lists_[slot.name] : unnamed_;
    parts_.push_back({4 * uint64_t{list} + uint64_t(slot.kind), types_[slot.meta].dtype, s});
  }
  if (!any_list()) return names_;
  std::sort(parts_.begin(), parts_.end());
  for (size_t from = 0, to = 0; from < parts_.size(); from = to) {
    while (to < parts_.size() && parts_[to].same_list(parts_[from])) ++to;
    if (to - from > 1) name(slots, from, to);
  }
  return names_;
}

// False: each tensor of the event is alone of its list.
bool FlatGroups::any_list() {
  constexpr size_t kFew = 16;  // not worth sorting
  if (parts_.size() > kFew) return true;
  for (size_t i = 1; i < parts_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (parts_[i].same_list(parts_[j])) return true;
  return false;
}

void FlatGroups::name(const Slot* slots, size_t from, size_t to) {
  static const uint64_t factor = base_of(0);
  auto type = [&](size_t part) -> const Type& { return types_[slots[parts_[part].place].meta]; };
  const uint64_t bytes = type(from).element_bytes;
  if (bytes == 0) return;
  uint64_t count = 0;
  for (size_t part = from; part < to; ++part) count += type(part).elements;
  const uint64_t lane = lane_of(count * bytes);
  for (size_t part = from; part < to; ++part)
    if (lane_of(type(part).elements * bytes) != lane) return;
  for (bool opposite : {false, true}) {
    uint64_t flat = 0, offset = 0;
    for (size_t k = 0; k < to - from; ++k) {
      const size_t part = opposite ? to - 1 - k : from + k;
      flat += power(factor, offset * bytes / lane) * slots[parts_[part].place].flat;
      offset += type(part).elements;
    }
    const std::string& dtype = log_.metas[slots[parts_[from].place].meta].dtype;
    if (flat != 0) names_.push_back(value_key(flat, count, dtype));
  }
}

}  // namespace opguard
