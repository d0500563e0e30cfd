// Three sieves, each on what the one before leaves.
//
//   alone_in_order    four equal pairs before and four behind, partners without a gap between
//   differing         tensors alone differ: no argument, no result text, no exception
//   held_elsewhere    the value that only one run holds stands in one slot of that run
//
// The last asks for whole runs, and is made once for all suspects: a count for each of their
// values.
#include "align/judge/isolated.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "align/pair/difference.h"
#include "align/pair/slot_pairs.h"
#include "align/values/value_index.h"

namespace opguard {
namespace {

struct Suspect {
  IsolatedPair pair;
  std::vector<ValueKey> values[2];  // that the pair differs by
};

class Search {
 public:
  Search(const Run& a, const Run& b, const Alignment& alignment)
      : runs_{&a, &b}, alignment_(alignment) {}

  std::vector<IsolatedPair> pairs() {
    std::vector<Suspect> suspects;
    for (const Pair* pair : pairs_in_order(*runs_[0], alignment_)) {
      if (pair->equality != Equality::inputs && pair->equality != Equality::outputs) continue;
      const ProcessPair& process = alignment_.processes[pair->process];
      if (!(is_state(process, *pair) ? alone_of_its_generators(process, *pair)
                                     : alone_in_order(process, *pair)))
        continue;
      if (auto suspect = differing(process, *pair)) suspects.push_back(std::move(*suspect));
    }
    if (suspects.empty()) return {};
    const Holders counts[2] = {holders(0, suspects), holders(1, suspects)};
    std::vector<IsolatedPair> result;
    for (const Suspect& suspect : suspects)
      if (!held_elsewhere(suspect, counts)) result.push_back(suspect.pair);
    return result;
  }

 private:
  const ProcessLog& log(int side, int32_t process) const { return runs_[side]->processes[process]; }

  bool is_state(const ProcessPair& process, const Pair& pair) const {
    return log(0, process.a).events.kind(pair.a) == EventKind::state;
  }

  // A step of -1 walks below 0 as size_t, which is past the end as well: one comparison serves
  // both.
  bool alone_in_order(const ProcessPair& process, const Pair& pair) const {
    const auto at = size_t(&pair - process.pairs.data());
    for (int step : {-1, 1}) {
      size_t equal = 0;
      for (size_t i = at; equal < kIsolatedReach; ++equal) {
        if (i + step >= process.pairs.size()) return false;
        const Pair &from = process.pairs[i], &to = process.pairs[i + step];
        if (to.equality != Equality::equal) return false;
        // Partners all of them, and in one order.
        if (int64_t(to.a) - int64_t(from.a) != step || int64_t(to.b) - int64_t(from.b) != step)
          return false;
        i += step;
      }
    }
    return true;
  }

  // The states of the same boundary before and after it are equal.
  bool alone_of_its_generators(const ProcessPair& process, const Pair& pair) const {
    const auto at = int64_t(&pair - process.pairs.data());
    for (int step : {-1, 1}) {
      int64_t i = at + step;
      while (i >= 0 && i < int64_t(process.pairs.size()) && !is_state(process, process.pairs[i]))
        i += step;
      if (i < 0 || i >= int64_t(process.pairs.size()) ||
          process.pairs[i].equality != Equality::equal)
        return false;
    }
    return true;
  }

  std::optional<Suspect> differing(const ProcessPair& process, const Pair& pair) const {
    const ProcessLog &a = log(0, process.a), &b = log(1, process.b);
    const Event x = a.events[pair.a], y = b.events[pair.b];
    if (a.text(x.scalars) != b.text(y.scalars) || a.text(x.results) != b.text(y.results) ||
        ((x.flags ^ y.flags) & kRaised))
      return {};
    Suspect suspect{{{process.a, pair.a}, {process.b, pair.b}}, {}};
    for (const SlotPair& slot : SlotDifferences(a, x, b, y).slots) {
      if (!slot.a || !slot.b) return {};
      suspect.values[0].push_back(value_key(a, *slot.a));
      suspect.values[1].push_back(value_key(b, *slot.b));
      if (suspect.pair.slot == kNone) suspect.pair.slot = uint32_t(slot.at_b);
      // A digest that differs alone names the same value: who else holds it says nothing.
      if (suspect.values[0].back() == suspect.values[1].back())
        suspect.values[0].pop_back(), suspect.values[1].pop_back();
    }
    if (suspect.pair.slot == kNone) return {};
    return suspect;
  }

  // How many slots of a run hold each value that some suspect differs by.
  using Holders = std::unordered_map<ValueKey, uint64_t, ValueKeyHash>;
  Holders holders(int side, const std::vector<Suspect>& suspects) const {
    Holders counts;
    for (const Suspect& suspect : suspects)
      for (const auto& values : suspect.values)
        for (const ValueKey& key : values) counts[key] = 0;
    if (counts.empty()) return counts;
    for (const ProcessLog& log : runs_[side]->processes)
      for (uint64_t s = 0; s < log.slots.size(); ++s)
        if (auto at = counts.find(value_key(log, log.slots[s])); at != counts.end()) ++at->second;
    return counts;
  }

  // One side's value is what both runs hold everywhere else, the other's is the stranger: nobody
  // else may hold that one.
  static bool held_elsewhere(const Suspect& suspect, const Holders (&counts)[2]) {
    for (int side : {0, 1})
      for (const ValueKey& key : suspect.values[side])
        if (counts[1 - side].at(key) == 0 && counts[side].at(key) > 1) return true;
    return false;
  }

  const Run* runs_[2];
  const Alignment& alignment_;
};

}  // namespace

std::vector<IsolatedPair> isolated_pairs(const Run& a, const Run& b, const Alignment& alignment) {
  return Search(a, b, alignment).pairs();
}

void mark_isolated(const std::vector<IsolatedPair>& isolated, Verdict& verdict) {
  std::vector<const IsolatedPair*> others;
  for (const IsolatedPair& pair : isolated) {
    auto at =
        std::find_if(verdict.candidates.begin(), verdict.candidates.end(),
                     [&](const Pivot& pivot) { return pivot.a == pair.a && pivot.b == pair.b; });
    if (at == verdict.candidates.end())
      others.push_back(&pair);
    else
      at->why.push_back({ReasonKind::likely_false_alarm});
  }
  if (others.empty()) return;
  verdict.notes.push_back({{.kind = ReasonKind::alone_differing,
                            .numbers = {others.size()},
                            .events = {others[0]->a, others[0]->b},
                            .slots = {kNone, others[0]->slot}},
                           {ReasonKind::likely_false_alarm}});
}

}  // namespace opguard
