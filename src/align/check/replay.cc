// Values of a rank have keys that hold in both runs, and the first key whose values differ is its
// story.
//
//   (step 1204, micro-batch 0, all_reduce, given, "grad:up.weight", 0th)     rank 5: d1f0, 03c9
//   (step 1204, micro-batch 0, all_reduce, got,   "grad:up.weight", 0th)     all: 77aa, 5e12
//
// What a rank got follows from what another one gave or made otherwise, at the same moment or
// before. What it then made follows from what another one gave. What a rank gave itself is
// explained by none.
//
// Counterexample: every rank gave what the replay gave, and all got something else. The exchange
// itself did that.
#include "align/check/replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace opguard {
namespace {

// Whose value a slot tells: a collective's input is the rank's own, and its result the others'.
enum class ReplayPart : uint8_t { own, given, got };

struct ReplayKey {
  uint32_t step, micro_batch;
  std::string boundary;
  ReplayPart part;
  std::string name;
  uint32_t nth;  // of these in the micro-batch
  auto operator<=>(const ReplayKey&) const = default;
};

struct SeenValue {
  Fingerprint value;
  EventRef event;
  bool readable;
};

struct ReplayValues {
  std::map<ReplayKey, SeenValue> values;
  std::vector<ReplayKey> order;
  std::string host;
};

std::map<int32_t, ReplayValues> values_of(const Run& run) {
  std::map<int32_t, ReplayValues> ranks;
  for (size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessLog& log = run.processes[p];
    ReplayValues& rank = ranks[log.rank];
    if (const auto at = log.settings.find("hostname"); at != log.settings.end())
      rank.host = at->second;
    std::map<ReplayKey, uint32_t> counts;
    for (uint32_t e = 0; e < log.events.size(); ++e) {
      const Event event = log.events[e];
      const bool exchange = communicates(event);
      if (!exchange && event.kind != EventKind::loss && event.kind != EventKind::optimizer)
        continue;
      for (const Slot& slot : log.slots_of(event)) {
        ReplayKey key{event.step,
                      event.micro_batch,
                      log.text(event.boundary),
                      !exchange                    ? ReplayPart::own
                      : slot.kind == SlotKind::out ? ReplayPart::got
                                                   : ReplayPart::given,
                      log.text(slot.name),
                      0};
        key.nth = counts[key]++;
        rank.values.emplace(
            key, SeenValue{slot.value, {int32_t(p), e}, (slot.flags & kUnreadable) == 0});
        rank.order.push_back(std::move(key));
      }
    }
  }
  return ranks;
}

// Of the keys a rank's two runs share, the first whose values differ, in the recorded order.
struct FirstOtherValue {
  ReplayRank found;
  std::optional<ReplayKey> key;
};

FirstOtherValue compare_rank(int32_t number, const ReplayValues& a, const ReplayValues& b,
                             ReplayCheck& check) {
  FirstOtherValue first;
  first.found.rank = number;
  first.found.host = a.host;
  std::set<uint32_t> steps;
  for (const auto& [key, seen] : b.values) steps.insert(key.step);
  uint64_t shared = 0;
  for (const ReplayKey& key : a.order) {
    if (!steps.contains(key.step)) continue;
    const auto other = b.values.find(key);
    if (other == b.values.end()) {
      ++first.found.alone;
      continue;
    }
    const SeenValue& seen = a.values.at(key);
    ++shared;
    if (!seen.readable || !other->second.readable) continue;
    ++first.found.compared;
    check.first_step = std::min(check.first_step, key.step);
    check.last_step = std::max(check.last_step, key.step);
    if (first.key || seen.value == other->second.value) continue;
    first.key = key;
    first.found.step = key.step;
    first.found.micro_batch = key.micro_batch;
    first.found.event = seen.event;
    first.found.name = key.name;
  }
  std::set<uint32_t> own_steps;
  for (const ReplayKey& key : a.order) own_steps.insert(key.step);
  uint64_t of_b = 0;
  for (const auto& [key, seen] : b.values) of_b += own_steps.contains(key.step);
  first.found.alone += of_b - shared;
  return first;
}

using ReplayMoment = std::pair<uint32_t, uint32_t>;  // step, micro-batch

}  // namespace

ReplayCheck check_replay(const Run& recorded, const Run& replayed) {
  const auto a = values_of(recorded), b = values_of(replayed);
  ReplayCheck check;
  std::vector<FirstOtherValue> all;
  for (const auto& [rank, values] : a) {
    const auto other = b.find(rank);
    if (other == b.end()) {
      FirstOtherValue none;
      none.found.rank = rank;
      none.found.host = values.host;
      none.found.alone = values.order.size();
      all.push_back(std::move(none));
      continue;
    }
    all.push_back(compare_rank(rank, values, other->second, check));
  }
  // What others gave explains what a rank received, and what it then computed.
  auto explained = [&](const FirstOtherValue& by) {
    const ReplayMoment when(by.key->step, by.key->micro_batch);
    return std::any_of(all.begin(), all.end(), [&](const FirstOtherValue& other) {
      return &other != &by && other.key && other.key->part != ReplayPart::got &&
             (other.key->part == ReplayPart::given || by.key->part == ReplayPart::got) &&
             ReplayMoment(other.key->step, other.key->micro_batch) <= when;
    });
  };
  std::vector<bool> follows;
  for (const FirstOtherValue& one : all)
    follows.push_back(one.key && one.key->part != ReplayPart::given && explained(one));
  for (size_t i = 0; i < all.size(); ++i) {
    FirstOtherValue& one = all[i];
    ReplayRank& rank = one.found;
    if (!one.key)
      rank.role = rank.compared > 0 ? ReplayRole::same : ReplayRole::unknown;
    else if (follows[i])
      rank.role = ReplayRole::received;
    else
      rank.role = one.key->part == ReplayPart::got ? ReplayRole::exchanged : ReplayRole::origin;
    check.ranks.push_back(std::move(rank));
  }
  return check;
}

}  // namespace opguard
