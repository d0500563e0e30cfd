#include "align/values/model_values.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "align/values/kept_values.h"
#include "record/kept_values.h"

namespace opguard {
namespace {

// A model value at one moment: the roots of a backward pass, or the parameters after a step.
struct Sink {
  struct Held {
    uint64_t slot;  // index in ProcessLog::slots
    ValueKey key;
    Fingerprint value;
    uint32_t meta;
  };
  EventRef event;
  std::vector<Held> slots;

  void add(const ProcessLog& log, uint64_t index, const Slot& slot) {
    slots.push_back({index, value_key(log, slot), slot.value, slot.meta});
  }
};

struct Sinks {
  std::vector<Sink> losses;
  // Of each optimizer step: the parameters it left, the gradients it read, the state it left.
  std::vector<Sink> steps, gradients, states;
};

// Which list of an optimizer's step a slot belongs to; nullptr: none.
std::vector<Sink> Sinks::* list_of(const ProcessLog& log, const Slot& slot) {
  if (slot.flags & kModelValue)
    return slot.kind == SlotKind::out  ? &Sinks::steps
           : slot.kind == SlotKind::in ? &Sinks::gradients
                                       : nullptr;
  return slot.kind == SlotKind::out && log.text(slot.name).starts_with("state") ? &Sinks::states
                                                                                : nullptr;
}

// But for steps that the other run does not make.
Sinks model_values(const Timeline& timeline, int32_t process, int side,
                   const HiddenRecords& hidden) {
  Sinks sinks;
  const ProcessLog& log = timeline.run(side).processes[process];
  const StepPairs& steps = timeline.steps(side, process);
  for (uint32_t e = 0; e < log.events.size(); ++e) {
    const EventKind kind = log.events.kind(e);
    if (kind != EventKind::loss && kind != EventKind::optimizer) continue;
    if (steps.besides(side, log.events.step(e))) continue;
    const Event event = log.events[e];
    const EventRef ref{process, e};
    if (kind == EventKind::loss)
      sinks.losses.push_back({ref, {}});
    else
      for (auto list : {&Sinks::steps, &Sinks::gradients, &Sinks::states})
        (sinks.*list).push_back({ref, {}});
    for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
      const Slot slot = log.slots[s];
      auto list = kind == EventKind::optimizer                              ? list_of(log, slot)
                  : slot.kind == SlotKind::in && (slot.flags & kModelValue) ? &Sinks::losses
                                                                            : nullptr;
      if (list && has_value(slot) && !hidden.rule_of(side, ref, s))
        (sinks.*list).back().add(log, s, slot);
    }
  }
  return sinks;
}

class ModelValues {
 public:
  ModelValues(const ValueIndex& a, const ValueIndex& b, const Timeline& timeline,
              const HiddenRecords& hidden)
      : index_{&a, &b}, timeline_(timeline), hidden_(hidden) {}

  // A value's name and, where it is to be told by that too, its digest in its own shape.
  using Key = std::pair<ValueKey, Fingerprint>;

  static Key key(const Sink::Held& held, bool digest) {
    return {held.key, digest ? held.value : Fingerprint{}};
  }

  static std::multiset<Key> keys(const Sink& sink, bool digest) {
    std::multiset<Key> all;
    for (const Sink::Held& held : sink.slots) all.insert(key(held, digest));
    return all;
  }

  std::multiset<Meta> layouts(int side, const Sink& sink) const {
    std::multiset<Meta> all;
    for (const Sink::Held& held : sink.slots)
      all.insert(timeline_.log(side, sink.event).metas[held.meta]);
    return all;
  }

  Sink inputs(int side, const EventRef& ref) const {
    Sink sink{ref, {}};
    const Event& e = timeline_.event(side, ref);
    const ProcessLog& log = timeline_.log(side, ref);
    for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s)
      if (const Slot slot = log.slots[s];
          slot.kind == SlotKind::in && !hidden_.rule_of(side, ref, s))
        sink.add(log, s, slot);
    return sink;
  }

  // The slots of each sink whose value the other sink does not have.
  std::optional<ModelDifference> compare(const Sink& a, const Sink& b,
                                         const std::string& why) const {
    const bool digest = layouts(0, a) == layouts(1, b);
    const auto keys_a = keys(a, digest), keys_b = keys(b, digest);
    if (keys_a == keys_b) return {};
    ModelDifference difference{{}, timeline_.position(0, a.event), why};
    difference.same_names = keys(a, false) == keys(b, false);
    const Sink* sinks[2] = {&a, &b};
    for (int side : {0, 1}) {
      auto rest = side == 0 ? keys_b : keys_a;
      for (const Sink::Held& held : sinks[side]->slots) {
        if (auto at = rest.find(key(held, digest)); at != rest.end())
          rest.erase(at);
        else
          difference.slots[side].push_back({sinks[side]->event, held.slot});
      }
    }
    return difference;
  }

  // Gradients or state of one step. A gradient that one run lacks and the other has as zeros is the
  // same to an optimizer, or shows in its parameters.
  std::optional<ModelDifference> compare_step(Sink a, Sink b, const std::string& why) {
    if (layouts(0, a) != layouts(1, b)) {
      auto shared = [&](int side, Sink& mine, const Sink& theirs) {
        std::multiset<std::pair<std::string, Meta>> others;
        for (const Sink::Held& held : theirs.slots) others.insert(place(1 - side, theirs, held));
        std::erase_if(mine.slots, [&](const Sink::Held& held) {
          auto at = others.find(place(side, mine, held));
          if (at == others.end()) return true;
          others.erase(at);
          return false;
        });
      };
      const Sink all_a = a;
      shared(0, a, b);
      shared(1, b, all_a);
    }
    result_.compared |= !a.slots.empty();
    return compare(a, b, why);
  }

  std::pair<std::string, Meta> place(int side, const Sink& sink, const Sink::Held& held) const {
    const ProcessLog& log = timeline_.log(side, sink.event);
    return {log.text(log.slots[held.slot].name), log.metas[held.meta]};
  }

  Comparison first_difference() {
    // behind: a loss shows the step before its own only by being equal or not.
    std::optional<ModelDifference> first;  // of the pair of processes
    auto consider = [&](std::optional<ModelDifference> found, uint32_t behind = 0) {
      if (!found || (first && !(found->position < first->position))) return;
      found->clean_steps = found->position.step > behind ? found->position.step - behind : 0;
      first = std::move(found);
    };
    for (const ProcessPair& both : timeline_.alignment().processes) {
      if (both.a < 0 || both.b < 0) continue;
      first.reset();
      const Sinks a = model_values(timeline_, both.a, 0, hidden_),
                  b = model_values(timeline_, both.b, 1, hidden_);
      for (size_t k = 0; k < std::min(a.losses.size(), b.losses.size()); ++k) {
        result_.compared |= !a.losses[k].slots.empty() || !b.losses[k].slots.empty();
        consider(compare(a.losses[k], b.losses[k], "the loss differs"), 1);
      }
      // Only where both runs report it: a side that merely logs more has no pivot.
      for (const Pair& pair : both.pairs) {
        EventRef ra{both.a, pair.a}, rb{both.b, pair.b};
        if (!reports_number(timeline_.log(0, ra), timeline_.event(0, ra)) ||
            !reports_number(timeline_.log(1, rb), timeline_.event(1, rb)))
          continue;
        // Equal ones need no look at their values, unless a rule may name them.
        if (pair.equality == Equality::equal && hidden_.empty()) {
          result_.compared = true;
          continue;
        }
        const Sink number_a = inputs(0, ra), number_b = inputs(1, rb);
        if (number_a.slots.empty() && number_b.slots.empty()) continue;
        result_.compared = true;
        if (pair.equality != Equality::equal)
          consider(compare(number_a, number_b, "a reported number differs"));
      }
      size_t other_layouts = 0;
      for (size_t k = 0; k < std::min(a.steps.size(), b.steps.size()); ++k) {
        if (layouts(0, a.steps[k]) != layouts(1, b.steps[k])) {
          // What the other run holds as such: its forward reads it, or a flat buffer is all of it.
          const bool known = held_by_other(0, a.steps[k]) || held_by_other(1, b.steps[k]);
          other_layouts += !known;
          result_.compared |= known;
          continue;
        }
        result_.compared |= !a.steps[k].slots.empty();
        consider(compare(a.steps[k], b.steps[k], "the parameters differ after a step"));
        consider(
            compare_step(a.gradients[k], b.gradients[k], "the gradients differ that a step reads"));
        consider(
            compare_step(a.states[k], b.states[k], "the optimizer's state differs after a step"));
      }
      if (other_layouts > 0)
        add_once(result_.uncompared,
                 "the optimizers hold the parameters in other shapes, and after " +
                     std::to_string(other_layouts) + " of " +
                     std::to_string(std::min(a.steps.size(), b.steps.size())) +
                     " steps they could not be put together from the other run's");
      // What is saved may have been made in any step; a buffer was the same a step ago.
      constexpr uint32_t kAnyStep = UINT32_MAX;
      for (auto [compare_kept, behind] :
           {std::pair(&compare_buffers, 0u), std::pair(&compare_lasting, 0u),
            std::pair(&compare_saved, kAnyStep)}) {
        KeptComparison kept = compare_kept(timeline_, both, hidden_);
        result_.compared |= kept.compared;
        for (std::string& note : kept.notes) add_once(result_.notes, std::move(note));
        for (std::string& reason : kept.uncompared) add_once(result_.uncompared, std::move(reason));
        consider(std::move(kept.first), behind);
      }
      if (a.losses.size() != b.losses.size())
        result_.notes.push_back("one run makes " + std::to_string(a.losses.size()) +
                                " backward passes, the other " + std::to_string(b.losses.size()));
      else if (a.steps.size() != b.steps.size())
        result_.notes.push_back("one run makes " + std::to_string(a.steps.size()) +
                                " optimizer steps, the other " + std::to_string(b.steps.size()));
      if (a.losses.size() != b.losses.size() || a.steps.size() != b.steps.size())
        consider(extra(a, b));
      if (a.losses.empty() && b.losses.empty() && a.steps.empty() && b.steps.empty()) {
        KeptComparison results = compare_results(timeline_, both, hidden_);
        result_.compared |= results.compared;
        consider(std::move(results.first));
        // Nothing leaves the program where we could see it.
        if (!result_.compared) consider(final_values(both));
      }
      if (!first) continue;
      if (!result_.first || first->position < result_.first->position) result_.first = first;
      result_.ranks.push_back(std::move(*first));
    }
    return std::move(result_);
  }

  // Every parameter of the step is a value the other run holds.
  bool held_by_other(int side, const Sink& sink) const {
    return !sink.slots.empty() &&
           std::all_of(sink.slots.begin(), sink.slots.end(), [&](const Sink::Held& held) {
             return held.value == Fingerprint{} || index_[1 - side]->holds(held.key);
           });
  }

  static void add_once(std::vector<std::string>& to, std::string text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(std::move(text));
  }

  // One run goes on where the other has ended: its first further model value.
  std::optional<ModelDifference> extra(const Sinks& a, const Sinks& b) const {
    const Sinks* sinks[2] = {&a, &b};
    for (int side : {0, 1}) {
      for (auto member : {&Sinks::losses, &Sinks::steps}) {
        const auto &mine = sinks[side]->*member, &theirs = sinks[1 - side]->*member;
        if (mine.size() <= theirs.size()) continue;
        const Sink& sink = mine[theirs.size()];
        ModelDifference difference{
            {}, timeline_.position(side, sink.event), "one run computes more model values"};
        difference.longer = side;
        for (const Sink::Held& held : sink.slots)
          difference.slots[side].push_back({sink.event, held.slot});
        return difference;
      }
    }
    return {};
  }

  // Without training: the last values made and not read again, novel on either side.
  std::optional<ModelDifference> final_values(const ProcessPair& both) {
    ModelDifference difference{{}, {}, "the final values differ"};
    int32_t process[2] = {both.a, both.b};
    for (int side : {0, 1}) {
      EventRef ref{process[side], 0};
      const ProcessLog& log = timeline_.run(side).processes[process[side]];
      if (log.events.empty()) continue;
      result_.compared = true;
      Flow flow(*index_[side], *index_[1 - side]);
      std::set<std::pair<uint64_t, uint64_t>> read;
      for (uint32_t e = log.events.size(); e-- > 0 && difference.slots[side].empty();) {
        ref.event = e;
        const Event& event = log.events[e];
        if (event.kind == EventKind::state) continue;
        for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
          const Slot& slot = log.slots[s];
          ValueKey key = value_key(log, slot);
          bool result = slot.kind != SlotKind::in || event.results != kNone;
          if (result && flow.novel(ref, slot) && log.metas[slot.meta].dtype != "bool" &&
              !read.contains({key.lo, key.hi}) && !hidden_.rule_of(side, ref, s)) {
            difference.slots[side].push_back({ref, s});
            difference.position = std::max(difference.position, timeline_.position(side, ref));
          }
          if (slot.kind == SlotKind::in) read.insert({key.lo, key.hi});
        }
      }
    }
    if (difference.slots[0].empty() && difference.slots[1].empty()) return {};
    return difference;
  }

 private:
  const ValueIndex* index_[2];
  const Timeline& timeline_;
  const HiddenRecords& hidden_;
  Comparison result_;
};

// `x.numpy()`: an array of the very values, which code without operators works on.
bool hands_array(const std::string& boundary) {
  const std::string label = boundary.substr(0, boundary.rfind(':'));
  const std::string name = label.substr(label.rfind('.') + 1);
  return name == "numpy" || name == "__array__";
}

}  // namespace

std::vector<Pair> unequal_pairs(const Run& a, const Alignment& alignment) {
  std::vector<Pair> pairs;
  for (const Pair* pair : pairs_in_order(a, alignment))
    if (pair->equality != Equality::equal && !passed_over(a, alignment, *pair))
      pairs.push_back(*pair);
  return pairs;
}

bool reports_number(const ProcessLog& log, const Event& event) {
  if (event.kind != EventKind::op || event.slot_count == 0) return false;
  const std::string& results = log.text(event.results);
  const size_t value = results.find('=') + 1;
  const bool array = hands_array(log.text(event.boundary));
  const bool text = value < results.size() && std::strchr("-[('0123456789in", results[value]) &&
                    results.find_first_of("0123456789in", value) != std::string::npos;
  if (!array && !text) return false;
  for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
    const Slot& slot = log.slots[s];
    if (slot.kind == SlotKind::written || (slot.kind != SlotKind::in && !array)) return false;
    if (log.metas[slot.meta].dtype == "bool") return false;
  }
  return true;
}

Comparison compare_model_values(const ValueIndex& a, const ValueIndex& b, const Timeline& timeline,
                                const HiddenRecords& hidden) {
  return ModelValues(a, b, timeline, hidden).first_difference();
}

}  // namespace opguard
