#include "align/flat_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace opguard {
namespace {

constexpr uint64_t kBase = 0x9e3779b97f4a7c15ull;

// og1's g of the last dimension.
uint64_t lane_factor() {
  uint64_t z = kBase;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return ((z ^ z >> 31) & ~uint64_t(7)) | 5;
}

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

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

std::vector<ValueKey> flat_groups(const ProcessLog& log, const Event& event) {
  static const uint64_t factor = lane_factor();
  std::vector<ValueKey> names;
  if (event.slot_count < 2) return names;
  std::map<std::tuple<SlotKind, std::string, std::string>, std::vector<Slot>> lists;
  for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
    const Slot slot = log.slots[s];
    if (!has_value(slot) || slot.meta >= log.metas.size()) continue;
    lists[{slot.kind, list_of(log.text(slot.name)), log.metas[slot.meta].dtype}].push_back(slot);
  }
  for (auto& [list, parts] : lists) {
    const std::string& dtype = std::get<2>(list);
    const uint64_t bytes = element_bytes(dtype);
    if (parts.size() < 2 || bytes == 0) continue;
    uint64_t count = 0;
    for (const Slot& part : parts) count += elements(log.metas[part.meta]);
    const uint64_t lane = lane_of(count * bytes);
    if (!std::all_of(parts.begin(), parts.end(), [&](const Slot& part) {
          return lane_of(elements(log.metas[part.meta]) * bytes) == lane;
        }))
      continue;
    for (bool opposite : {false, true}) {
      if (opposite) std::reverse(parts.begin(), parts.end());
      Slot whole;
      uint64_t offset = 0;
      for (const Slot& part : parts) {
        whole.flat += power(factor, offset * bytes / lane) * part.flat;
        offset += elements(log.metas[part.meta]);
      }
      if (whole.flat != 0) names.push_back(value_key(whole.flat, count, dtype));
    }
  }
  return names;
}

}  // namespace opguard
