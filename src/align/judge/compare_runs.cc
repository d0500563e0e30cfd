// One loop, in which the part of the logs that is read grows until the verdict is settled.
//
//   margin   steps before the first that differs     1, 16, 256, ...
//   window   steps behind it, parting alone          16, 256, ...
//
// Each round reads, aligns and judges anew. What settles a verdict is in is_settled(). An input
// that nobody made, or a race, may come from before what was read. Another result of the same
// inputs cannot.
//
// Counterexample: rules. They may hide what the digests count, so all is read; so it is of a run
// that failed.
#include "align/judge/compare_runs.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "align/judge/parted_parts.h"
#include "align/judge/random_state.h"
#include "align/pair/common_end.h"
#include "align/pair/common_steps.h"
#include "align/pair/differing_groups.h"
#include "align/pair/equal_start.h"
#include "align/pair/run.h"

namespace opguard {
namespace {

constexpr uint32_t kFirstMargin = 1, kMoreMargin = 16;
constexpr uint32_t kFirstWindow = 16;  // steps behind the first that differs

// Logs of fewer records are read whole: it takes less than a second, and what one run alone shows
// is told of all of it.
constexpr uint64_t kSmall = 1'000'000;

// None: all is read, as of logs without indexes. Why there are none is not told.
std::optional<IndexedRuns> indexed_runs(const std::string& dir_a, const std::string& dir_b,
                                        const std::vector<Rule>& rules,
                                        const CompareOptions& options) {
  // A rule may hide what the digests hold.
  if (options.read == ReadWhat::all || !rules.empty() || !options.failures[0].empty() ||
      !options.failures[1].empty())
    return {};
  std::string why;
  return options.only_a.empty()
             ? IndexedRuns::open(dir_a, dir_b, why, options.bring)
             : IndexedRuns::open(options.only_a, options.only_b, why, options.bring);
}

// The first step in which a pair began that is not equal; kNone: all are.
uint32_t first_unequal(const Conclusion& found, const Run& a) {
  uint32_t first = kNone;
  for (const ProcessPair& both : found.alignment.processes)
    if (both.a >= 0)
      for (const Pair& pair : both.pairs)
        if (pair.equality != Equality::equal)
          first = std::min(first, a.processes[both.a].events.step(pair.a));
  return first;
}

// Nothing before `start` has a part in what is told.
bool is_settled(const Conclusion& found, const Run& a, const EqualStart& start) {
  const Verdict& verdict = found.verdict;
  if (verdict.outcome == Outcome::inconclusive) return false;
  for (const ProcessPair& both : found.alignment.processes)
    if (both.a < 0 || both.b < 0) return false;
  // What began in a step that is not read ends the certificate there.
  if (first_unequal(found, a) < start.step) return false;
  // Since when a generator differs that was drawn from, and how often: of all of the run.
  for (const StateDifference& state : verdict.states)
    if (state.from_start && matters(state)) return false;
  if (verdict.outcome == Outcome::identical) return true;
  if (verdict.candidates.empty()) return false;
  // It reads the same and gives another result: what came before has no part in that.
  const PivotKind first = verdict.candidates[0].kind;
  if (first == PivotKind::value || first == PivotKind::scalar) return true;
  for (const Pivot& pivot : verdict.candidates)
    for (const PivotKind kind : {pivot.kind, pivot.shown_as})
      if (kind == PivotKind::input || kind == PivotKind::race) return false;
  return true;
}

void add_equal_start(const EqualStart& start, IndexedRuns& indexed, const Run& a,
                     Conclusion& found) {
  uint64_t& certified = found.alignment.certified_prefix;
  const uint32_t unequal = first_unequal(found, a);
  const uint64_t equal = start.events - start.unmoved;
  found.alignment.pairs += start.events;
  found.alignment.unequal += start.unmoved;
  // It began in a step that is not there to be read: what is before that step is certified.
  certified = unequal < start.step ? indexed.equal_before(unequal) : certified + equal;
  found.verdict.notes.push_back(
      {{.kind = ReasonKind::equal_unread, .numbers = {equal, start.steps, start.step}}});
}

// The step in which the runs part is not there to be read: nothing behind it is where they part.
void add_parted_unkept(IndexedRuns& indexed, const Run& a, const Run& b, Verdict& verdict) {
  verdict.outcome = Outcome::inconclusive;
  verdict.candidates.clear();
  verdict.ranks.clear();
  verdict.why = {
      {.kind = ReasonKind::parted_unkept, .numbers = {indexed.first_apart(), indexed.kept_from()}}};
  if (!indexed.belong_to(a, b)) return;
  if (const auto groups = differing_groups(indexed, a, b))
    verdict.why.push_back(parted_parts(*groups));
}

llvm::Expected<JudgedRuns> load_from(const std::string& dir_a, const std::string& dir_b,
                                     const std::vector<Rule>& rules, const CompareOptions& options,
                                     const EqualStart& start) {
  JudgedRuns judged;
  for (const int side : {0, 1}) {
    const std::vector<std::string>& only = side == 0 ? options.only_a : options.only_b;
    llvm::Expected<Run> run =
        load_run(side == 0 ? dir_a : dir_b, {.only = {only.begin(), only.end()},
                                             .events = side == 0 ? start.from_a : start.from_b,
                                             .until = side == 0 ? start.until_a : start.until_b,
                                             .bring = options.bring});
    if (!run) return run.takeError();
    (side == 0 ? judged.a : judged.b) = std::make_unique<Run>(std::move(*run));
  }
  judged.rules = std::make_unique<const std::vector<Rule>>(rules);
  return judged;
}

void conclude_on(JudgedRuns& judged, const CompareOptions& options) {
  Run &a = *judged.a, &b = *judged.b;
  judged.settings = compare_settings(a, b);
  cut_to_common_steps(a, b);
  const std::array<uint64_t, 2> behind_cut =
      read_to_common_end(a, b, {!options.failures[0].empty(), !options.failures[1].empty()});
  judged.hidden = std::make_unique<HiddenRecords>(*judged.rules, a, b);
  judged.found = conclude(a, b, judged.settings, *judged.hidden, options.failures, options.off);
  for (int side : {0, 1})
    if (behind_cut[side] > 0)
      judged.found.verdict.notes.push_back(
          {{.kind = ReasonKind::behind_cut, .side = side, .numbers = {behind_cut[side]}}});
}

}  // namespace

llvm::Expected<JudgedRuns> compare_runs(const std::string& dir_a, const std::string& dir_b,
                                        const std::vector<Rule>& rules,
                                        const CompareOptions& options) {
  std::optional<IndexedRuns> indexed = indexed_runs(dir_a, dir_b, rules, options);
  uint32_t margin = kFirstMargin, window = kFirstWindow;
  for (;;) {
    EqualStart start = indexed ? indexed->start(margin) : EqualStart{};
    // Of what was removed only the digests tell.
    const bool needed = indexed && indexed->kept_from() > 0;
    if (options.read == ReadWhat::automatic && start.records < kSmall && !needed) start = {};
    const bool is_small =
        indexed && options.read == ReadWhat::automatic && indexed->records() < kSmall;
    if (options.parting_alone && indexed && !is_small && !(needed && start.reads_all()))
      indexed->end_behind(window, start);
    auto judged = load_from(dir_a, dir_b, rules, options, start);
    if (!judged) return judged.takeError();
    // Another index, or a log that was damaged since.
    if (!start.reads_all() && !indexed->belong_to(*judged->a, *judged->b)) {
      indexed.reset();
      continue;
    }
    conclude_on(*judged, options);
    const bool refused = !judged->settings.refused.empty();
    if (needed && start.reads_all() && !refused)
      add_parted_unkept(*indexed, *judged->a, *judged->b, judged->found.verdict);
    if (start.reads_all() || refused) return judged;
    // A difference that reaches nothing is none, and behind the window may be one that does.
    if (start.last_step != kNone && judged->found.verdict.outcome != Outcome::diverged) {
      window = std::min(window, kNone / kMoreMargin) * kMoreMargin;
      continue;
    }
    if (start.events > 0 && !start.is_first_kept && !is_settled(judged->found, *judged->a, start)) {
      margin *= kMoreMargin;
      continue;
    }
    if (start.events > 0) add_equal_start(start, *indexed, *judged->a, judged->found);
    return judged;
  }
}

}  // namespace opguard
