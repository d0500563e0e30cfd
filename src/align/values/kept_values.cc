// What is compared here are state events: "<buffers>" of a step's end, "<saved>" of a file written.
//
//   step 7   a  running_mean 9f31            b  running_mean 9f31, mask 77aa
//   step 8   a  (no event: unchanged)        b  running_mean 5b90
//
// A run's buffers are a map by name that each event updates. So step 8 holds a's value of step 7
// against b's new one. Only names that some event of the moment touched are compared.
//
// Saved files are paired by their order: the third of a with the third of b.
#include "align/values/kept_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "align/pair/slot_pairs.h"
#include "record/kept_values.h"

namespace opguard {
namespace {

struct Kept {
  SlotRef at;
  Slot slot;
  const Meta* meta = nullptr;
  bool changed = false;  // since it was first seen
};

using ByName = std::map<std::string, Kept>;

bool same_type(const Kept& a, const Kept& b) {
  return a.meta->dtype == b.meta->dtype && a.meta->shape == b.meta->shape;
}

std::vector<uint32_t> events_of(const ProcessLog& log, std::string_view boundary) {
  std::vector<uint32_t> events;
  for (uint32_t e = 0; e < log.events.size(); ++e)
    if (log.events.kind(e) == EventKind::state && log.text(log.events[e].boundary) == boundary)
      events.push_back(e);
  return events;
}

class KeptValues {
 public:
  KeptValues(const Timeline& timeline, const ProcessPair& both, const HiddenRecords& hidden)
      : timeline_(timeline), process_{both.a, both.b}, hidden_(hidden) {}

  // Walks both runs' events by the step they have in common (Timeline::step). The order of two
  // buffer events within a step does not count: the last one of each name does.
  KeptComparison buffers() {
    ByName held[2];
    const std::vector<uint32_t> events[2] = {events_of(log(0), kBuffers),
                                             events_of(log(1), kBuffers)};
    size_t next[2] = {0, 0};
    const StepPairs& steps = timeline_.steps(0, process_[0]);
    auto of_one_run = [&](int side, uint32_t event) {
      return steps.besides(side, log(side).events.step(event));
    };
    auto step = [&](int side) {
      return timeline_.step(side, {process_[side], events[side][next[side]]});
    };
    std::set<std::string> touched;
    auto left = [&](int side) { return next[side] < events[side].size(); };
    while (left(0) || left(1)) {
      const uint32_t now = !left(0) ? step(1) : !left(1) ? step(0) : std::min(step(0), step(1));
      EventRef at[2];
      bool apart = false;
      for (int side : {0, 1})
        for (; left(side) && step(side) == now; ++next[side]) {
          at[side] = {process_[side], events[side][next[side]]};
          apart |= of_one_run(side, at[side].event);
          for (auto& [name, kept] : slots_of(side, at[side].event)) {
            touched.insert(name);
            auto [known, fresh] = held[side].try_emplace(name, kept);
            if (!fresh) known->second = kept, known->second.changed = true;
          }
        }
      // What changes in a step of one run alone is compared at the end of the next one of both.
      if (apart) continue;
      for (const std::string& name : touched) {
        auto a = held[0].find(name), b = held[1].find(name);
        if (a == held[0].end() || b == held[1].end()) continue;
        result_.compared = true;
        if (!same_type(a->second, b->second) || same_bytes(a->second.slot, b->second.slot))
          continue;
        const int shown = at[0].process >= 0 ? 0 : 1;
        differs({.kind = ReasonKind::buffer_differs, .names = {name}}, shown, at[shown], a->second,
                b->second);
      }
      touched.clear();
    }
    settle(held[0], held[1], ReasonKind::alone_in_buffers);
    return std::move(result_);
  }

  KeptComparison saved() {
    std::vector<uint32_t> events[2];
    for (int side : {0, 1})
      for (uint32_t event : events_of(log(side), kSaved))
        if (!timeline_.besides(side, {process_[side], event})) events[side].push_back(event);
    for (size_t k = 0; k < std::min(events[0].size(), events[1].size()); ++k) {
      ByName tensors[2];
      for (int side : {0, 1})
        for (auto& [name, kept] : slots_of(side, events[side][k]))
          tensors[side].try_emplace(name, kept);
      for (const auto& [name, a] : tensors[0]) {
        auto b = tensors[1].find(name);
        if (b == tensors[1].end() || !same_type(a, b->second)) continue;
        result_.compared = true;
        if (!same_bytes(a.slot, b->second.slot))
          differs({.kind = ReasonKind::saved_differs, .names = {name}}, 0, a.at.event, a,
                  b->second);
      }
      settle(tensors[0], tensors[1], ReasonKind::alone_in_saved);
    }
    if (events[0].size() != events[1].size())
      result_.notes.push_back(
          {{.kind = ReasonKind::saves, .numbers = {events[0].size(), events[1].size()}}});
    return std::move(result_);
  }

 private:
  const ProcessLog& log(int side) const { return timeline_.run(side).processes[process_[side]]; }

  // With a value, and named by no rule.
  std::vector<std::pair<std::string, Kept>> slots_of(int side, uint32_t event) const {
    std::vector<std::pair<std::string, Kept>> all;
    const ProcessLog& l = log(side);
    const EventRef ref{process_[side], event};
    const EventSlots slots = l.slots_of(l.events[event]);
    for (const Slot& slot : slots) {
      const uint64_t at = slots.index_of(slot);
      if (!has_value(slot) || slot.meta >= l.metas.size() || hidden_.rule_of(side, ref, at))
        continue;
      all.push_back({l.text(slot.name), {{ref, at}, slot, &l.metas[slot.meta]}});
    }
    return all;
  }

  // The earliest counts.
  void differs(Reason why, int side, const EventRef& shown, const Kept& a, const Kept& b) {
    const Position position = timeline_.position(side, shown);
    if (result_.first && !(position < result_.first->position)) {
      // Others of the same moment lead on as well.
      if (!(result_.first->position < position)) {
        result_.first->slots[0].push_back(a.at);
        result_.first->slots[1].push_back(b.at);
      }
      return;
    }
    ModelDifference difference;
    difference.slots[0] = {a.at};
    difference.slots[1] = {b.at};
    difference.position = position;
    difference.why = std::move(why);
    difference.same_names = value_key(log(0), a.slot) == value_key(log(1), b.slot);
    result_.first = std::move(difference);
  }

  // What only one side calls so, or holds in another type: another name for the same value, or
  // something the other run has nothing of.
  // Contents are matched as a multiset: of two equal tensors under other names each takes one
  // partner.
  void settle(const ByName& a, const ByName& b, ReasonKind alone_in) {
    const ByName* sides[2] = {&a, &b};
    using Content = std::tuple<std::string, std::vector<int64_t>, Fingerprint, uint64_t>;
    auto content = [](const Kept& k) {
      return Content{k.meta->dtype, k.meta->shape, k.slot.value, k.slot.flat};
    };
    std::vector<const Kept*> alone[2];
    std::multiset<Content> theirs;
    for (const auto& [name, kept] : b) {
      auto other = a.find(name);
      if (other != a.end() && same_type(kept, other->second)) continue;
      alone[1].push_back(&kept);
      theirs.insert(content(kept));
    }
    for (const auto& [name, kept] : a) {
      auto other = b.find(name);
      if (other != b.end() && same_type(kept, other->second)) continue;
      if (auto at = theirs.find(content(kept)); at != theirs.end()) {
        theirs.erase(at);
        result_.compared = true;
      } else {
        alone[0].push_back(&kept);
      }
    }
    std::erase_if(alone[1], [&](const Kept* kept) {
      auto at = theirs.find(content(*kept));
      if (at == theirs.end()) return true;
      theirs.erase(at);
      return false;
    });
    // Where both have some left, one may be the other's in another shape; a constant is no result.
    auto lives = [&](const Kept* kept) {
      return alone_in == ReasonKind::alone_in_saved || kept->changed;
    };
    const bool both = std::any_of(alone[0].begin(), alone[0].end(), lives) &&
                      std::any_of(alone[1].begin(), alone[1].end(), lives);
    for (int side : {0, 1}) {
      if (alone[side].empty()) continue;
      const SlotRef& first = alone[side][0]->at;
      const Reasons reason = {{.kind = alone_in,
                               .side = side,
                               .numbers = {alone[side].size(), sides[side]->size()},
                               .names = {log(side).text(log(side).slots[first.slot].name)}}};
      auto& to = both ? result_.uncompared : result_.notes;
      if (std::find(to.begin(), to.end(), reason) == to.end()) to.push_back(reason);
    }
  }

  const Timeline& timeline_;
  const int32_t process_[2];
  const HiddenRecords& hidden_;
  KeptComparison result_;
};

}  // namespace

KeptComparison compare_buffers(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden) {
  return KeptValues(timeline, both, hidden).buffers();
}

KeptComparison compare_saved(const Timeline& timeline, const ProcessPair& both,
                             const HiddenRecords& hidden) {
  return KeptValues(timeline, both, hidden).saved();
}

}  // namespace opguard
