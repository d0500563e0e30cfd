// Pairs are taken in the order of side a, so that a value is known to be hidden before it is read.
//
//   pair 12   t = clock()     all that differs is named by a rule     hidden; held: 17.2 and 18.9
//   pair 13   lr = base * t   every differing input is held           hidden, following; held: lr
//   pair 14   w + noise * lr  an input that is not held differs       stays unequal
//
// What the runs are judged by is never explained by held values that it reads. Losses, optimizer
// steps and numbers handed to Python stay unequal, unless a rule names something of them.
#include "align/rules/hidden.h"

#include <algorithm>
#include <map>
#include <optional>

#include "align/pair/difference.h"
#include "align/pair/slot_pairs.h"
#include "align/values/model_values.h"

namespace opguard {
namespace {

using Kind = RecordPart::Kind;

// As compare_events sees it.
bool slots_differ(const ProcessLog& a, const Event& event, const ProcessLog& b,
                  const SlotPair& pair) {
  auto comparable = [](const std::optional<Slot>& slot) {
    return slot && !(slot->kind == SlotKind::out && (slot->flags & kUninitialised)) ? &*slot
                                                                                    : nullptr;
  };
  const Slot *x = comparable(pair.a), *y = comparable(pair.b);
  constexpr uint8_t kNoValue = kUnreadable | kUninitialised;
  if ((!x && !y) || (x && (x->flags & kNoValue)) || (y && (y->flags & kNoValue))) return false;
  if (!x || !y) return event.kind != EventKind::state;
  return !same_shape(a, *x, b, *y) || !same_bytes(*x, *y);
}

// Names of the items of a canonical text that the other text lacks.
std::vector<std::string> differing_items(const std::string& mine, const std::string& other) {
  std::vector<std::string> names;
  auto items = split_scalars(mine), rest = split_scalars(other);
  for (const std::string& item : items) {
    auto at = std::find(rest.begin(), rest.end(), item);
    if (at == rest.end())
      names.push_back(item.substr(0, item.find('=')));
    else
      rest.erase(at);
  }
  return names;
}

bool is_sink(const ProcessLog& log, const Event& event, const Slot& slot) {
  if (event.kind == EventKind::loss) return slot.kind == SlotKind::in && (slot.flags & kModelValue);
  if (event.kind == EventKind::optimizer)
    return slot.kind == SlotKind::out && (slot.flags & kModelValue);
  return reports_number(log, event);
}

}  // namespace

struct HiddenRecords::Hits {
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> records;  // by rule: records, model values
  std::vector<SlotPair> slots;

  void add(const std::vector<uint32_t>& rules, bool sink) {
    for (uint32_t rule : rules) ++records[rule].first, records[rule].second += sink;
  }
};

HiddenRecords::HiddenRecords(const std::vector<Rule>& rules, const Run& a, const Run& b)
    : rules_(&rules), runs_{&a, &b}, uses_(rules.size()) {
  if (rules.empty()) return;
  for (int side : {0, 1})
    for (const ProcessLog& log : runs_[side]->processes) matchers_[side].emplace_back(rules, log);
}

const Rule* HiddenRecords::rule_of(int side, const EventRef& ref, uint64_t slot) const {
  static const Rule kLeftOut{};
  if (!left_out_.empty() && ref.process >= 0 && event(side, ref).kind == EventKind::state &&
      left_out_.contains(value_key(log(side, ref), log(side, ref).slots[slot])))
    return &kLeftOut;
  if (empty() || ref.process < 0) return nullptr;
  const std::vector<uint32_t> found =
      matchers_[side][ref.process].rules_of(event(side, ref), log(side, ref).slots[slot]);
  return found.empty() ? nullptr : &(*rules_)[found.front()];
}

Residue HiddenRecords::residue(const EventRef& a, const EventRef& b) const {
  return empty() ? Residue::own : residue(a, b, nullptr);
}

// What is left of a pair's differences: slots, then arguments and results by item, then exceptions.
// `hits` counts what rules took; nullptr: nobody asks.
Residue HiddenRecords::residue(const EventRef& ra, const EventRef& rb, Hits* hits) const {
  const ProcessLog &a = log(0, ra), &b = log(1, rb);
  const Event x = event(0, ra), y = event(1, rb);
  const RuleMatcher &in_a = matchers_[0][ra.process], &in_b = matchers_[1][rb.process];
  if (!in_a.any(x) && !in_b.any(y)) return Residue::own;
  // Inputs and arguments on their own are differences; results may only follow from hidden ones.
  bool hidden_input = false, own_input = false, own_result = false;
  auto note = [&](bool input, const std::vector<uint32_t>& rules, bool sink) {
    if (rules.empty())
      (input ? own_input : own_result) = true;
    else
      hidden_input |= input;
    if (hits) hits->add(rules, sink);
  };
  for (const SlotPair& pair : pair_slots(a, x, b, y)) {
    if (!slots_differ(a, x, b, pair)) continue;
    std::vector<uint32_t> rules;
    if (pair.a) rules = in_a.rules_of(x, *pair.a);
    if (pair.b && rules.empty()) rules = in_b.rules_of(y, *pair.b);
    const Slot& any = pair.either();
    note(any.kind == SlotKind::in, rules, pair.a ? is_sink(a, x, any) : is_sink(b, y, any));
    if (hits && !rules.empty()) hits->slots.push_back(pair);
  }
  for (Kind kind : {Kind::scalar, Kind::result}) {
    const bool scalar = kind == Kind::scalar;
    const std::string &mine = a.text(scalar ? x.scalars : x.results),
                      &other = b.text(scalar ? y.scalars : y.results);
    if (mine == other) continue;
    const auto names_a = differing_items(mine, other), names_b = differing_items(other, mine);
    for (const std::string& name : names_a) note(scalar, in_a.rules_of(x, {kind, name}), false);
    for (const std::string& name : names_b)
      if (std::find(names_a.begin(), names_a.end(), name) == names_a.end())
        note(scalar, in_b.rules_of(y, {kind, name}), false);
    // The same items in another order.
    if (names_a.empty() && names_b.empty()) note(scalar, in_a.whole(x), false);
  }
  if ((x.flags ^ y.flags) & kRaised) note(false, in_a.whole(x), false);
  if (own_input) return Residue::own;
  if (own_result) return hidden_input ? Residue::follows : Residue::own;
  return Residue::nothing;
}

const Rule* HiddenRecords::hides_origin(int side, const Origin& origin,
                                        const EventRef& partner) const {
  if (empty()) return nullptr;
  const Rule* rule = rule_of(side, origin.event, origin.slot);
  if (partner.process < 0) {
    // Alone in its run: every value it left is the rules' business, or it is none.
    if (rule == nullptr) return nullptr;
    const EventSlots slots = log(side, origin.event).slots_of(event(side, origin.event));
    for (const Slot& slot : slots)
      if (slot.kind != SlotKind::in && !rule_of(side, origin.event, slots.index_of(slot)))
        return nullptr;
    return rule;
  }
  const EventRef &a = side == 0 ? origin.event : partner, &b = side == 0 ? partner : origin.event;
  const Residue left = residue(a, b, nullptr);
  if (rule && left != Residue::own) return rule;
  // Its input is hidden, and differs for no other reason.
  if (rule && origin.hole &&
      log(0, a).text(event(0, a).scalars) == log(1, b).text(event(1, b).scalars))
    return rule;
  if (left != Residue::follows) return nullptr;
  const EventSlots slots = log(side, origin.event).slots_of(event(side, origin.event));
  for (const Slot& slot : slots)
    if (const Rule* found = rule_of(side, origin.event, slots.index_of(slot))) return found;
  return nullptr;
}

void HiddenRecords::count_matched() {
  for (int side : {0, 1})
    for (size_t p = 0; p < runs_[side]->processes.size(); ++p) {
      const ProcessLog& l = runs_[side]->processes[p];
      const RuleMatcher& matcher = matchers_[side][p];
      for (const Event e : l.events) {
        if (!matcher.any(e)) continue;
        for (const Slot& slot : l.slots_of(e))
          for (uint32_t rule : matcher.rules_of(e, slot)) ++uses_[rule].matched;
        for (Kind kind : {Kind::scalar, Kind::result}) {
          const std::string& text = l.text(kind == Kind::scalar ? e.scalars : e.results);
          if (text.empty()) continue;
          for (const std::string& item : split_scalars(text))
            for (uint32_t rule :
                 matcher.rules_of(e, {kind, std::string_view(item).substr(0, item.find('='))}))
              ++uses_[rule].matched;
        }
      }
    }
}

// An event without a partner: what rules name of it is hidden.
void HiddenRecords::hide_alone(int side, const EventRef& ref) {
  const RuleMatcher& matcher = matchers_[side][ref.process];
  const Event e = event(side, ref);
  if (!matcher.any(e)) return;
  for (const Slot& slot : log(side, ref).slots_of(e)) {
    const auto rules = matcher.rules_of(e, slot);
    for (uint32_t rule : rules) ++uses_[rule].hidden;
    if (!rules.empty() && slot.kind != SlotKind::in && has_value(slot))
      held_[side].insert(value_key(log(side, ref), slot));
  }
}

// Every input that differs is a value that a hidden record differs by, or made from one.
bool HiddenRecords::only_reads(const EventRef& ra, const EventRef& rb) const {
  const ProcessLog &a = log(0, ra), &b = log(1, rb);
  const Event x = event(0, ra), y = event(1, rb);
  auto held = [&](int side, const ProcessLog& l, const std::optional<Slot>& slot) {
    return slot && held_[side].contains(value_key(l, *slot));
  };
  // What the runs are judged by, and gradients that lead there, are never explained away.
  if (x.kind != EventKind::op || is_sink(a, x, Slot{}) || a.text(x.scalars) != b.text(y.scalars))
    return false;
  bool any = false;
  for (const SlotPair& pair : pair_slots(a, x, b, y)) {
    if (!slots_differ(a, x, b, pair)) continue;
    const Slot& either = pair.either();
    if (either.kind != SlotKind::in) continue;
    if (!held(0, a, pair.a) && !held(1, b, pair.b)) return false;
    any = true;
  }
  return any;
}

// What the event leaves is made from hidden values.
void HiddenRecords::hold(int side, const EventRef& ref) {
  const Event e = event(side, ref);
  for (const Slot& slot : log(side, ref).slots_of(e)) {
    if (slot.kind != SlotKind::in && has_value(slot) && slot.value != Fingerprint{})
      held_[side].insert(value_key(log(side, ref), slot));
  }
}

void HiddenRecords::apply(Alignment& alignment) {
  if (empty()) return;
  count_matched();
  for (ProcessPair& process : alignment.processes) {
    for (uint32_t event : process.only_a) hide_alone(0, {process.a, event});
    for (uint32_t event : process.only_b) hide_alone(1, {process.b, event});
    // In the order of side a, so that what is read was held before.
    for (Pair& pair : process.pairs) {
      if (pair.equality == Equality::equal) continue;
      const EventRef a{process.a, pair.a}, b{process.b, pair.b};
      Hits hits;
      const Residue left = residue(a, b, &hits);
      for (const auto& [rule, counts] : hits.records) {
        uses_[rule].hidden += counts.first;
        uses_[rule].model_values += counts.second;
      }
      for (const SlotPair& slot : hits.slots) {
        if (slot.a && has_value(*slot.a)) held_[0].insert(value_key(log(0, a), *slot.a));
        if (slot.b && has_value(*slot.b)) held_[1].insert(value_key(log(1, b), *slot.b));
      }
      const bool reads = left != Residue::nothing && (left == Residue::follows || only_reads(a, b));
      if (left != Residue::nothing && !reads) continue;
      if (reads) hold(0, a), hold(1, b);
      pair.equality = Equality::hidden;
      --alignment.unequal;
      ++(reads ? alignment.following : alignment.hidden);
    }
  }
  alignment.certified_prefix = certified_prefix(*runs_[0], *runs_[1], alignment);
}

}  // namespace opguard
