// Operators of phase recompute are read in stretches of a thread, which gradients end. Each is
// matched to its first execution in the forward pass, and the matches are judged in order.
//
//   forward     norm(40) drop(41) lin(42) | norm(50) drop(51) lin(52)      two layers
//   recompute   norm drop lin          the last layer comes first: matched to 50, 51, 52
//
// The next place behind the last match is asked first, at most 64 operators on. Else the latest
// execution that read the same values is taken, one that was not matched yet before one that was. A
// stretch whose inputs differ still has its next place.
//
// A stretch counts only if some operator in it reads what its first execution read. Else it is
// something else that looks alike.
#include "align/check/recompute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "align/judge/pivot_view.h"
#include "align/pair/slot_pairs.h"
#include "align/values/value_index.h"
#include "record/generators.h"

namespace opguard {
namespace {

constexpr size_t kReach = 64;  // forward operators passed over within one recomputed stretch

// How the recomputation's tensors of one class compare with the forward's.
struct Compared {
  bool equal = true, same_shape = true;
  uint32_t count = 0;               // that could be compared
  std::optional<uint64_t> differs;  // of the recomputation: index in ProcessLog::slots
};

class Process {
 public:
  Process(const Run& run, int32_t process, RecomputeCheck& check)
      : log_(run.processes[process]), process_(process), check_(check) {
    for (uint32_t i = 0; i < log_.events.size(); ++i) {
      const Event& event = log_.events[i];
      if (event.kind != EventKind::op || event.phase != Phase::forward || (event.flags & kRaised))
        continue;
      by_boundary_[event.boundary].push_back(uint32_t(forward_.size()));
      forward_.push_back(i);
    }
    used_.resize(forward_.size());
  }

  void run() {
    std::map<uint32_t, std::vector<uint32_t>> stretches;  // by thread, the one being read
    for (uint32_t i = 0; i < log_.events.size(); ++i) {
      const Event& event = log_.events[i];
      std::vector<uint32_t>& stretch = stretches[event.thread];
      if (event.kind != EventKind::op) {
        // Gradients flow between two stretches, never within one.
        if (event.kind == EventKind::node || event.kind == EventKind::accumulate) finish(stretch);
        continue;
      }
      // Inside a reentrant recomputation a nested checkpoint runs without gradients.
      if (event.phase == Phase::recompute || (event.phase == Phase::backward && !stretch.empty())) {
        stretch.push_back(i);
      }
    }
    for (auto& [thread, stretch] : stretches) finish(stretch);
  }

 private:
  struct Match {
    uint32_t forward, recompute;  // event indexes
    Compared inputs;
  };

  void finish(std::vector<uint32_t>& stretch) {
    std::vector<Match> matches;
    std::optional<size_t> last;  // place in forward_ of the latest match
    bool proven = false;
    size_t first_match = 0;
    for (uint32_t event : stretch) {
      if (log_.events[event].phase == Phase::recompute) ++check_.recomputed;
      std::optional<size_t> at = first_execution(event, last);
      if (!at) continue;
      const bool goes_on = last && *at > *last && *at - *last <= kReach;
      if (last && !goes_on) {  // the next stretch, with no gradient between
        if (proven) judge(matches, first_match);
        first_match = matches.size();
        proven = false;
      }
      last = at;
      used_[*at] = true;
      ++check_.compared;
      matches.push_back({forward_[*at], event, compare(forward_[*at], event, true)});
      // A stretch none of whose operators reads what a forward one read is something else.
      proven |= matches.back().inputs.equal && matches.back().inputs.count > 0;
    }
    if (proven) judge(matches, first_match);
    stretch.clear();
  }

  // Where in forward_ the operator ran first: next to its predecessor's, else where it read the
  // same values. The latest such place is asked first, since the last layer is recomputed first.
  std::optional<size_t> first_execution(uint32_t event, std::optional<size_t> last) const {
    const Event& again = log_.events[event];
    auto found = by_boundary_.find(again.boundary);
    if (found == by_boundary_.end()) return {};
    const std::vector<uint32_t>& places = found->second;
    std::optional<size_t> next, equal, equal_used, latest;
    if (last) {
      auto after = std::upper_bound(places.begin(), places.end(), *last);
      if (after != places.end() && *after - *last <= kReach && forward_[*after] < event) {
        next = *after;
        if (compare(forward_[*next], event, true).equal) return next;
      }
    }
    auto after = std::lower_bound(places.begin(), places.end(), event,
                                  [&](uint32_t place, uint32_t e) { return forward_[place] < e; });
    while (after != places.begin()) {
      const size_t place = *--after;
      if (log_.events[forward_[place]].step != again.step) break;
      if (!used_[place] && !latest) latest = place;
      const Compared inputs = compare(forward_[place], event, true);
      if (!inputs.equal || inputs.count == 0) continue;
      if (!used_[place]) {
        equal = place;
        break;
      }
      if (!equal_used) equal_used = place;
    }
    if (equal) return equal;
    if (equal_used) return equal_used;
    return next || last ? next : latest;
  }

  Compared compare(uint32_t forward, uint32_t recompute, bool inputs) const {
    Compared result;
    const Event &first = log_.events[forward], &again = log_.events[recompute];
    for (const SlotPair& pair : pair_slots(log_, first, log_, again)) {
      if ((pair.either().kind == SlotKind::in) != inputs) continue;
      if ((pair.a && !has_value(*pair.a)) || (pair.b && !has_value(*pair.b))) continue;
      ++result.count;
      const bool same_shape = pair.a && pair.b && pair.a->meta == pair.b->meta;
      if (same_shape && pair.a->value == pair.b->value) continue;
      result.equal = false;
      result.same_shape &= same_shape;
      if (!result.differs && pair.b) result.differs = pair.at_b;
    }
    return result;
  }

  // States of torch's generators when the operator began; empty if it draws no random numbers.
  std::map<std::string, Fingerprint> generators(uint32_t operation) const {
    std::map<std::string, Fingerprint> states;
    const Event& event = log_.events[operation];
    for (uint64_t i = event.begin; i < operation && states.empty(); ++i) {
      const Event& state = log_.events[i];
      if (state.thread != event.thread) continue;
      if (state.kind != EventKind::state || log_.text(state.boundary) != kGenerators) break;
      for (const Slot& slot : log_.slots_of(state))
        // Checkpointing puts back no other: Python's own is further on in any recomputation.
        if (std::string_view name = log_.text(slot.name); name.starts_with("torch."))
          states[std::string(name)] = slot.value;
    }
    return states;
  }

  // What the first operator of a stretch that is not as before says; the rest follow from it.
  void judge(const std::vector<Match>& matches, size_t from) {
    for (size_t i = from; i < matches.size(); ++i) {
      const Match& match = matches[i];
      const Event &first = log_.events[match.forward], &again = log_.events[match.recompute];
      RecomputeFinding finding{
          PivotKind::value, {process_, match.forward}, {process_, match.recompute}, kNone, 1};
      std::optional<uint64_t> differs = match.inputs.differs;
      if (!match.inputs.equal) {
        finding.kind = match.inputs.same_shape ? PivotKind::input : PivotKind::structure;
        finding.why = {match.inputs.same_shape ? ReasonKind::recompute_other_input
                                               : ReasonKind::recompute_other_shape};
      } else if (log_.text(first.scalars) != log_.text(again.scalars)) {
        finding.kind = PivotKind::scalar;
        finding.why = {ReasonKind::recompute_other_argument};
      } else {
        if (again.flags & kRaised) {
          // An early stop ends the last operator, and all around it, by an exception: there is no
          // result. What it would have drawn is known.
          if (generators(match.forward) == generators(match.recompute)) continue;
          finding.why = {ReasonKind::recompute_other_numbers};
          return add(std::move(finding), again.boundary);
        }
        const Compared results = compare(match.forward, match.recompute, false);
        if (results.equal && log_.text(first.results) == log_.text(again.results)) continue;
        differs = results.differs;
        finding.kind = results.same_shape ? PivotKind::value : PivotKind::structure;
        finding.why = {results.same_shape ? ReasonKind::recompute_other_result
                                          : ReasonKind::recompute_other_result_shape};
      }
      if (differs) finding.slot = uint32_t(*differs);
      return add(std::move(finding), again.boundary);
    }
  }

  void add(RecomputeFinding finding, uint32_t boundary) {
    auto [at, fresh] = found_.try_emplace(boundary, check_.findings.size());
    if (fresh)
      check_.findings.push_back(std::move(finding));
    else
      ++check_.findings[at->second].times;
  }

  const ProcessLog& log_;
  const int32_t process_;
  RecomputeCheck& check_;
  std::vector<uint32_t> forward_;  // events, in order of completion
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_boundary_;  // places in forward_
  std::vector<bool> used_;
  std::unordered_map<uint32_t, size_t> found_;
};

// Few programs do; a stretch begins nowhere else.
bool recomputes(const ProcessLog& log) {
  for (uint64_t i = 0; i < log.events.size(); ++i)
    if (log.events.phase(i) == Phase::recompute) return true;
  return false;
}

}  // namespace

RecomputeCheck check_recompute(const Run& run) {
  RecomputeCheck check;
  for (size_t p = 0; p < run.processes.size(); ++p)
    if (recomputes(run.processes[p])) Process(run, int32_t(p), check).run();
  return check;
}

void add_recompute_findings(const Run& a, const Run& b, Verdict& verdict) {
  const Run* runs[2] = {&a, &b};
  for (int side : {0, 1}) {
    const RecomputeCheck check = check_recompute(*runs[side]);
    if (check.findings.empty()) continue;
    Reason note{.kind = ReasonKind::recompute_finding,
                .side = side,
                .numbers = {check.findings.size() - 1},
                .pivot = check.findings[0].kind};
    note.events[side] = check.findings[0].recompute;
    verdict.notes.push_back({note});
    for (Pivot& pivot : verdict.candidates) {
      const EventView event = view(*runs[side], side == 0 ? pivot.a : pivot.b);
      const bool found = std::any_of(
          check.findings.begin(), check.findings.end(), [&](const RecomputeFinding& finding) {
            return event && view(*runs[side], finding.recompute).boundary == event.boundary;
          });
      if (found) pivot.why.push_back({.kind = ReasonKind::recomputed_unlike, .side = side});
    }
  }
}

}  // namespace opguard
