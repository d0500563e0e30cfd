// align/pair/difference.h: what is not the same in two events of one boundary, for the report.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "align/pair/slot_pairs.h"
#include "record/record.h"

namespace opguard {

// Differing slots in the order inputs, outputs, written inputs; `equal` counts the others.
struct SlotDifferences {
  SlotDifferences(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb);

  PairedSlots slots;
  uint32_t equal_inputs = 0, equal_outputs = 0;
};

// The canonical text of arguments, "dim=-1, arg2=[1, 2]", at its outermost commas.
std::vector<std::string> split_scalars(const std::string& text);

// The items of both sides' scalars and which of them have no equal on the other side. Where all
// items would be long, runs of equal ones become "...".
struct ScalarItem {
  std::string text;
  bool differs = false;
  bool operator==(const ScalarItem&) const = default;
};
std::pair<std::vector<ScalarItem>, std::vector<ScalarItem>> scalar_differences(
    const std::string& a, const std::string& b);

// "float32[4, 8]", with the device where it is not the cpu.
std::string shape_text(const ProcessLog& log, const Slot& slot);
// "0123456789abcdef:0123456789abcdef" or "unreadable".
std::string fingerprint_text(const Slot& slot);

}  // namespace opguard
