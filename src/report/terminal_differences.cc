// What differs in a pair, side by side, the differing half in red.
//
//   what differs
//     out0  a  float32[4, 8]  9c1f...:4e02...
//           b  float32[4, 8]  11d0...:83aa...
//     arguments  a  dim=-1, eps=1e-05
//                           ^~~~~~~~~
//                b  dim=-1, eps=1e-06
//                           ^~~~~~~~~
//     equal: 2 tensor inputs
//
// Two digests say more than "unlike". With the same m and another h the rows are the same in
// another order. Where the flat one differs alone, a log is not what was written.
//
// Counterexample: a pair that cannot be compared, since the operator is another one. There is no
// slot to hold against a slot, so each side shows what it left.
#include "report/terminal_differences.h"

#include <algorithm>

#include "align/pair/difference.h"
#include "report/excerpt.h"
#include "report/terminal_event.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr size_t kSlotsOfEvent = 6;  // differing slots of one event

// The outputs of an event that has no counterpart to be compared with. False: it has none.
// `slot` stands for both sides, so nothing is red: there is nothing it differs from.
bool print_results(TerminalLines& out, const char* side, const EventView& event) {
  if (!event) return false;
  const ProcessLog& log = *event.log;
  size_t count = 0;
  for (const Slot& slot : log.slots_of(*event.event)) {
    if (count == kSlotsOfEvent) break;
    if (slot.kind == SlotKind::in) continue;
    const std::string name = shown(log.text(slot.name));
    print_slot(out, name, name.size(), side, log, slot, slot, false);
    ++count;
  }
  const std::string& scalars = log.text(event.event->scalars);
  if (!scalars.empty()) out.line("    arguments  " + std::string(side) + "  " + shorten(scalars));
  return count > 0 || !scalars.empty();
}

// Both sides' items, the differing ones underlined.
//   arguments  a  dim=-1, eps=1e-05
//                         ^~~~~~~~~
// Marks are as wide as the text is shown, not as many as its bytes.
void print_scalars(TerminalLines& out, const std::string& title, const std::string& a,
                   const std::string& b) {
  if (a == b) return;
  const auto [items_a, items_b] = scalar_differences(a, b);
  for (const auto& [side, items] :
       {std::pair(out.sides[0], &items_a), std::pair(out.sides[1], &items_b)}) {
    std::string text, marks;
    for (const ScalarItem& item : *items) {
      if (!text.empty()) text += ", ", marks += "  ";
      const std::string item_text = shown(item.text);
      const auto chars = shown_chars(item.text);
      const uint32_t width = width_of(chars, 0, chars.size());
      text += out.paint(item.differs ? "31" : "", item_text);
      marks += item.differs ? underline(width) : std::string(width, ' ');
    }
    const bool first = side == out.sides[0];
    const std::string indent = "    " + (first ? title : std::string(title.size(), ' ')) + "  ";
    out.line(indent + side + "  " + (items->empty() ? "none" : text));
    marks.erase(marks.find_last_not_of(' ') + 1);
    if (!marks.empty())
      out.line(std::string(indent.size() + 2 + std::string(side).size(), ' ') +
               out.paint("1;32", marks));
  }
}

void print_raised(TerminalLines& out, const EventView& a, const EventView& b) {
  const bool in_a = a.event->flags & kRaised, in_b = b.event->flags & kRaised;
  if (in_a != in_b)
    out.line("    it raised an exception in " + std::string(out.sides[in_a ? 0 : 1]) + " only");
}

}  // namespace

void print_slot(TerminalLines& out, const std::string& name, size_t width, const char* side,
                const ProcessLog& log, const std::optional<Slot>& slot,
                const std::optional<Slot>& other, bool shapes_differ) {
  std::string text = "    " + name + std::string(width - name.size() + 2, ' ') + side + "  ";
  if (!slot) {
    out.line(text + "absent");
    return;
  }
  // A tensor that the other side lacks is red as a whole value, its shape is not.
  const bool values_differ = !other || slot->value != other->value;
  text += out.paint(shapes_differ ? "31" : "", shown(shape_text(log, *slot))) + "  ";
  text += out.paint(values_differ ? "31" : "", fingerprint_text(*slot));
  out.line(text);
}

void print_differences(TerminalLines& out, const PivotView& both) {
  out.line("");
  if (!both.comparable) {
    out.line("  " + out.paint("1", "what it left"));
    const bool in_a = print_results(out, out.sides[0], both.a);
    if (!print_results(out, out.sides[1], both.b) && !in_a) out.line("    no tensor");
    return;
  }
  const EventView &a = both.a, &b = both.b;
  const SlotDifferences slots(*a.log, *a.event, *b.log, *b.event);
  out.line("  " + out.paint("1", "what differs"));
  size_t width = 0;
  const size_t count = std::min(slots.slots.size(), kSlotsOfEvent);
  auto name = [&](const SlotPair& slot) {
    return slot.b ? shown(b.log->text(slot.b->name)) : shown(a.log->text(slot.a->name));
  };
  for (size_t i = 0; i < count; ++i) width = std::max(width, name(slots.slots[i]).size());
  for (size_t i = 0; i < count; ++i) {
    const SlotPair slot = slots.slots[i];
    const bool shapes_differ =
        slot.a && slot.b && shape_text(*a.log, *slot.a) != shape_text(*b.log, *slot.b);
    print_slot(out, name(slot), width, out.sides[0], *a.log, slot.a, slot.b, shapes_differ);
    print_slot(out, "", width, out.sides[1], *b.log, slot.b, slot.a, shapes_differ);
    // og1 adds the rows' own hashes in M: docs/formats/record-format.md.
    if (slot.a && slot.b && !shapes_differ && slot.a->value.m == slot.b->value.m &&
        slot.a->value.h != slot.b->value.h)
      out.line("    " + std::string(width + 4 + std::string(out.sides[0]).size(), ' ') +
               "the same rows in another order");
    if (slot.a && slot.b && !shapes_differ && slot.a->value == slot.b->value &&
        slot.a->flat != slot.b->flat)
      out.line("    " + std::string(width + 4 + std::string(out.sides[0]).size(), ' ') +
               "the digest as one row differs alone: a log is not what was written");
  }
  if (slots.slots.size() > count)
    out.line("    and " + counted(slots.slots.size() - count, "more slot"));
  print_scalars(out, "arguments", a.log->text(a.event->scalars), b.log->text(b.event->scalars));
  print_scalars(out, "results", a.log->text(a.event->results), b.log->text(b.event->results));
  print_raised(out, a, b);
  if (slots.equal_inputs > 0)
    out.line("    equal: " + counted(slots.equal_inputs, "tensor input") +
             (slots.equal_outputs > 0 ? ", " + counted(slots.equal_outputs, "output") : ""));
}

}  // namespace opguard
