// From states to stretches, in the order of pair_steps().
//
//   equal_beginnings   steps that find equal parameters, once in each run     (3, 0) (4, 1) (5, 2)
//   longest_chain      those that increase on both sides
//   by_votes           where these do not tell how the runs begin, or one run's optimizer was
//                      restored: the step that found most of the same tensors
//   stretches_of       (3, 0), and on from there as far as both runs go
//   in_windows         of these the steps that both logs hold
//
// A common number counts the steps of both runs: between two stretches it moves on by the longer
// gap. So a number never stands for two steps of one run.
#include "align/pair/steps.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "align/pair/step_states.h"

namespace opguard {
namespace {

using Anchor = std::pair<uint32_t, uint32_t>;  // a step of a and the same one of b

// Steps that begin with the same parameters, where that tells: no other step of either run begins
// so.
std::vector<Anchor> equal_beginnings(const StepStates& a, const StepStates& b) {
  std::unordered_map<uint64_t, std::array<uint32_t, 2>> steps;  // kNone: not seen yet
  constexpr uint32_t kRecurs = kNone - 1;
  const StepStates* sides[2] = {&a, &b};
  for (int side : {0, 1})
    for (uint32_t step = 0; step < sides[side]->found.size(); ++step) {
      if (sides[side]->found[step] == 0) continue;
      auto& at =
          steps.try_emplace(sides[side]->found[step], std::array{kNone, kNone}).first->second[side];
      at = at == kNone ? step : kRecurs;
    }
  std::vector<Anchor> anchors;
  for (const auto& [state, at] : steps)
    if (at[0] < kRecurs && at[1] < kRecurs) anchors.emplace_back(at[0], at[1]);
  std::sort(anchors.begin(), anchors.end());
  return anchors;
}

// The most anchors that increase on both sides. A run that went back to an old state and then on
// from there has some that do not.
std::vector<Anchor> longest_chain(const std::vector<Anchor>& anchors) {
  std::vector<uint32_t> tails;  // the anchor that ends a chain of each length lowest
  std::vector<uint32_t> before(anchors.size(), kNone);
  for (uint32_t i = 0; i < anchors.size(); ++i) {
    auto at = std::partition_point(tails.begin(), tails.end(), [&](uint32_t tail) {
      return anchors[tail].second < anchors[i].second;
    });
    if (at != tails.begin()) before[i] = *(at - 1);
    if (at == tails.end())
      tails.push_back(i);
    else
      *at = i;
  }
  std::vector<Anchor> chain;
  for (uint32_t i = tails.empty() ? kNone : tails.back(); i != kNone; i = before[i])
    chain.push_back(anchors[i]);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// Where one run's first step stands in the other, by the most tensors it finds as that step did.
std::optional<Anchor> by_votes(const SteppingProcesses& processes, const StepStates& a,
                               const StepStates& b) {
  const StepVotes in_a = votes_for(processes.b, b, processes.a, a),
                  in_b = votes_for(processes.a, a, processes.b, b);
  // Two at least: one small tensor may be the same by chance.
  auto tells = [](const StepVotes& votes) {
    return votes.most >= 2 && votes.most > votes.for_first;
  };
  if (tells(in_a) && in_a.most >= in_b.most) return Anchor{in_a.step, b.first};
  if (tells(in_b)) return Anchor{a.first, in_b.step};
  return {};
}

// The steps between two anchors are the same in order, as far as both runs have some.
std::vector<StepStretch> stretches_of(const std::vector<Anchor>& anchors, const StepStates& a,
                                      const StepStates& b) {
  std::vector<StepStretch> stretches;
  for (auto [i, j] : anchors) {
    if (stretches.empty()) {
      // What came before is the same as well where the numbers are, or as far as the states are.
      if (i == j) i = j = 0;
      while (i > 0 && j > 0 && a.found[i - 1] != 0 && a.found[i - 1] == b.found[j - 1]) --i, --j;
      stretches.push_back({i, j});
      continue;
    }
    StepStretch& last = stretches.back();
    if (i - last.a == j - last.b) continue;
    last.count = std::min(i - last.a, j - last.b);
    stretches.push_back({i, j});
  }
  return stretches;
}

}  // namespace

StepPairs::StepPairs(std::vector<StepStretch> stretches, bool windowed)
    : stretches_(std::move(stretches)), windowed_(windowed) {
  uint32_t number = 0, end[2] = {0, 0};
  for (const StepStretch& s : stretches_) {
    number += std::max(s.a - end[0], s.b - end[1]);
    numbers_.push_back(number);
    number += s.count;
    end[0] = s.a + s.count, end[1] = s.b + s.count;
  }
}

size_t StepPairs::at(int side, uint32_t step) const {
  auto after = std::partition_point(stretches_.begin(), stretches_.end(),
                                    [&](const StepStretch& s) { return begin(side, s) <= step; });
  return after == stretches_.begin() ? stretches_.size() : size_t(after - stretches_.begin()) - 1;
}

// Steps before a stretch count back from it, those behind the last one go on from it.
uint32_t StepPairs::number(int side, uint32_t step) const {
  if (by_number()) return step;
  const size_t i = at(side, step);
  if (!besides(side, step)) return numbers_[i] + (step - begin(side, stretches_[i]));
  const size_t next = i == stretches_.size() ? 0 : i + 1;
  if (next == stretches_.size()) return numbers_[i] + (step - begin(side, stretches_[i]));
  return numbers_[next] - (begin(side, stretches_[next]) - step);
}

uint32_t StepPairs::step(int side, uint32_t number) const {
  if (by_number()) return number;
  for (size_t i = stretches_.size(); i-- > 0;) {
    const StepStretch& s = stretches_[i];
    if (numbers_[i] > number) continue;
    if (number - numbers_[i] < s.count || i + 1 == stretches_.size())
      return begin(side, s) + (number - numbers_[i]);
    return begin(side, stretches_[i + 1]);
  }
  return begin(side, stretches_[0]);
}

bool StepPairs::besides(int side, uint32_t step) const {
  if (by_number()) return false;
  const size_t i = at(side, step);
  return i == stretches_.size() || step - begin(side, stretches_[i]) >= stretches_[i].count;
}

static uint32_t end_of(const std::vector<const ProcessLog*>& processes) {
  uint32_t end = 0;
  for (const ProcessLog* log : processes)
    for (uint64_t e = 0; e < log->events.size(); ++e) end = std::max(end, log->events.step(e) + 1);
  return end;
}

// Of these the steps that both logs have. None: one stretch without any, behind all there is.
static StepPairs in_windows(const StepPairs& steps, const SteppingProcesses& processes) {
  if (processes.a.empty() || processes.b.empty()) return steps;
  const StepWindow a = window_of(*processes.a[0]), b = window_of(*processes.b[0]);
  if (a.all() && b.all()) return steps;
  if (a == b && steps.by_number()) return steps;
  const uint32_t end[2] = {end_of(processes.a), end_of(processes.b)};
  std::vector<StepStretch> given = steps.stretches(), kept;
  if (given.empty()) given.push_back({});
  for (const StepStretch& s : given)
    for (uint32_t i = 0; i < s.count && (s.a + i < end[0] || s.b + i < end[1]); ++i) {
      if (!a.holds(s.a + i) || !b.holds(s.b + i)) continue;
      const bool follows = !kept.empty() && kept.back().a + kept.back().count == s.a + i &&
                           kept.back().b + kept.back().count == s.b + i;
      if (follows)
        ++kept.back().count;
      else
        kept.push_back({s.a + i, s.b + i, 1});
    }
  if (kept.empty()) kept.push_back({end[0], end[1], 0});
  return StepPairs(std::move(kept), true);
}

StepPairs pair_steps(const SteppingProcesses& processes) {
  const StepStates a = step_states(processes.a), b = step_states(processes.b);
  if (a.first == kNone || b.first == kNone) return in_windows({}, processes);
  std::vector<Anchor> anchors = longest_chain(equal_beginnings(a, b));
  const bool unknown =
      anchors.empty() || (anchors[0].first != a.first && anchors[0].second != b.first);
  // An optimizer that has worked before tells more than weights that were never restored.
  if (unknown || a.restored != b.restored)
    if (const std::optional<Anchor> first = by_votes(processes, a, b)) {
      std::erase_if(anchors, [&](const Anchor& anchor) {
        return anchor.first <= first->first || anchor.second <= first->second;
      });
      anchors.insert(anchors.begin(), *first);
    }
  std::vector<StepStretch> stretches = stretches_of(anchors, a, b);
  if (stretches.size() == 1 && stretches[0] == StepStretch{}) stretches.clear();
  return in_windows(StepPairs(std::move(stretches)), processes);
}

StepWindow window_of(const ProcessLog& log) {
  StepWindow window;
  std::string error;
  if (auto at = log.settings.find("steps"); at != log.settings.end())
    parse_window(at->second, window, error);
  return window;
}

bool have_common_steps(const Run& a, const Run& b) {
  if (a.processes.empty() || b.processes.empty()) return true;
  const StepPairs steps = pair_steps({{&a.processes[0]}, {&b.processes[0]}});
  return !steps.windowed() || steps.stretches().front().count > 0;
}

}  // namespace opguard
