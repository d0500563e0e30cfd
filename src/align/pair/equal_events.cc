// Texts and shapes of both logs get common numbers, so that two events are compared without a
// string.
//
//   a's strings   17 "dim=-1"     texts_[0][17] = 4
//   b's strings    5 "dim=-1"     texts_[1][5]  = 4
//
// The cost: one pass over each log's strings and metas, and 4 bytes for each.
#include "align/pair/equal_events.h"

#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "align/pair/slot_pairs.h"

namespace opguard {

EqualEvents::EqualEvents(const ProcessLog& a, const ProcessLog& b) : logs_{&a, &b} {
  std::unordered_map<std::string_view, uint32_t> texts = {{"", 0}};
  using Shape = std::tuple<std::string_view, const std::vector<int64_t>&>;
  // Not the device: the same bytes on cuda:0 and cuda:1 are the same value.
  auto less = [](const Shape& x, const Shape& y) { return x < y; };
  std::map<Shape, uint32_t, decltype(less)> shapes(less);
  for (int side : {0, 1}) {
    for (const std::string& text : logs_[side]->strings)
      texts_[side].push_back(texts.try_emplace(text, uint32_t(texts.size())).first->second);
    for (const Meta& meta : logs_[side]->metas)
      shapes_[side].push_back(
          shapes.try_emplace(Shape{meta.dtype, meta.shape}, uint32_t(shapes.size())).first->second);
  }
}

bool EqualEvents::slots(const Slot& x, const Slot& y, bool by_name) const {
  constexpr uint8_t kNoValue = kUnreadable | kUninitialised;
  if (x.kind != y.kind || x.index != y.index || (x.flags & kNoValue) != (y.flags & kNoValue))
    return false;
  if (x.meta == kNone || y.meta == kNone || shapes_[0][x.meta] != shapes_[1][y.meta]) return false;
  if (by_name && text(0, x.name) != text(1, y.name)) return false;
  return (x.flags & kNoValue) || same_bytes(x, y);
}

bool EqualEvents::values(const Event& a, const Event& b) const {
  if (a.kind != b.kind) return false;
  if (a.slot_count != b.slot_count || text(0, a.scalars) != text(1, b.scalars) ||
      text(0, a.results) != text(1, b.results) || ((a.flags ^ b.flags) & kRaised))
    return false;
  const EventSlots x = logs_[0]->slots_of(a), y = logs_[1]->slots_of(b);
  const bool by_name = slots_by_name(a);
  for (uint32_t k = 0; k < x.size(); ++k)
    if (!slots(x[k], y[k], by_name)) return false;
  return true;
}

bool EqualEvents::same(const Event& a, const Event& b) const {
  return a.phase == b.phase && a.step == b.step && a.occurrence == b.occurrence &&
         a.kind == b.kind && text(0, a.boundary) == text(1, b.boundary) &&
         text(0, a.node) == text(1, b.node) &&
         // Generators seeded unlike differ at every step: no reason to look for other partners.
         (a.kind == EventKind::state || values(a, b));
}

}  // namespace opguard
