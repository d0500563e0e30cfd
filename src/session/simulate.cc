// Which rank of a has the data of a rank of b is told by the two runs alone:
//
//   b's logs    simulate = "0,1;2,3"      ranks 0 and 1 have the same data, and so have 2 and 3
//   a's logs    ranks 0, 1                as many as b has groups
//   so          0, 1 -> 0   2, 3 -> 1     groups in order, beside ranks in order
//
// Every rank is loaded and compared as a run of its own, under the number of a's rank.
// Counterexample: to align both runs as a whole. A rank of b would look for a partner of its own
// number, and a has none.
//
// The cost: both folders are loaded once for each rank of b; one comparison is held at a time, and
// the one that is shown.
#include "session/simulate.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "align/judge/conclude.h"
#include "align/pair/run.h"
#include "align/pair/settings.h"
#include "report/reasons.h"
#include "support/exit_code.h"
#include "support/progress.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr const char* kSetting = "simulate";  // python/opguard/simulate/seams.py
constexpr const char* kRefusal = "opguard: --simulate: ";

// "0,1;0,2" are ranks with the same data: all three of them.
// Groups of several logs may overlap: "0,1" of one and "1,2" of another are three ranks with the
// same data. Each rank has the lowest of its group in `first`.
void join_ranks(const std::string& text, std::map<int32_t, int32_t>& first) {
  std::istringstream groups(text);
  for (std::string group; std::getline(groups, group, ';');) {
    std::istringstream members(group);
    std::vector<int32_t> ranks;
    for (std::string rank; std::getline(members, rank, ',');)
      if (!rank.empty() && rank.find_first_not_of("0123456789") == std::string::npos)
        ranks.push_back(std::stoi(rank));
    for (const int32_t rank : ranks) {
      if (!first.contains(rank) || !first.contains(ranks[0])) continue;
      const int32_t x = first[rank], y = first[ranks[0]];
      for (auto& [other, one] : first)
        if (one == x || one == y) one = std::min(x, y);
    }
  }
}

// Leaves the processes of one rank, under the number `as`.
void keep_rank(Run& run, int32_t rank, int32_t as) {
  std::erase_if(run.processes, [&](const ProcessLog& log) { return log.rank != rank; });
  for (ProcessLog& log : run.processes) log.rank = as;
}

// One rank of b beside its own of a.
struct Compared {
  Run a, b;
  SettingsReport settings;
  std::unique_ptr<HiddenRecords> hidden;
  Conclusion found;
};

llvm::Expected<std::unique_ptr<Compared>> compare_rank(const std::string& dir_a,
                                                       const std::string& dir_b, int32_t rank,
                                                       int32_t of_a, const std::vector<Rule>& rules,
                                                       const ReportOptions& options) {
  auto made = std::make_unique<Compared>();
  for (const bool is_a : {true, false}) {
    auto run = load_run(is_a ? dir_a : dir_b);
    if (!run) return run.takeError();
    (is_a ? made->a : made->b) = std::move(*run);
  }
  keep_rank(made->a, of_a, of_a);
  keep_rank(made->b, rank, of_a);
  made->settings = compare_settings(made->a, made->b);
  made->hidden = std::make_unique<HiddenRecords>(rules, made->a, made->b);
  made->found = conclude(made->a, made->b, made->settings, *made->hidden, {}, options.without);
  return made;
}

// Which rank says most: one that differs, before one that could not be compared, before one that is
// equal.
int weight(Outcome outcome) {
  return outcome == Outcome::diverged ? 2 : outcome == Outcome::inconclusive ? 1 : 0;
}

}  // namespace

Variables simulate_environment(bool on) { return {{"OPGUARD_SIMULATE", on ? "1" : ""}}; }

// The rest of the line behind the mark, as python/opguard/simulate has written it.
std::string refusal_in(const std::string& output) {
  std::ifstream file(output);
  for (std::string line; std::getline(file, line);)
    if (const size_t at = line.find(kRefusal); at != std::string::npos)
      return line.substr(at + std::string(kRefusal).size());
  return "";
}

llvm::Expected<std::map<int32_t, int32_t>> ranks_of_a(const Run& a, const Run& b) {
  std::map<int32_t, int32_t> first;  // rank of b -> the first with its data
  for (const ProcessLog& log : b.processes) first[log.rank] = log.rank;
  for (const ProcessLog& log : b.processes) {
    auto setting = log.settings.find(kSetting);
    if (setting == log.settings.end())
      return make_error(log.path + " is not of a simulated run (opguard run --simulate)");
    join_ranks(setting->second, first);
  }
  std::set<int32_t> data_b, data_a;
  for (const auto& [rank, one] : first) data_b.insert(one);
  for (const ProcessLog& log : a.processes) data_a.insert(log.rank);
  if (data_a.size() != data_b.size())
    return make_error("run a has " + counted(data_a.size(), "rank") +
                      ", and the data of run b are " + "divided among " +
                      std::to_string(data_b.size()) +
                      ": give a reference of as many data parallel ranks, each of them whole");
  std::map<int32_t, int32_t> of_a;
  for (const auto& [rank, one] : first) {
    const auto number = std::distance(data_b.begin(), data_b.find(one));
    of_a[rank] = *std::next(data_a.begin(), number);
  }
  return of_a;
}

int report_simulated(const std::string& dir_a, const std::string& dir_b, const Coverage& coverage,
                     const ReportOptions& options) {
  auto rules = read_rules(options);
  if (!rules) return fail(llvm::toString(rules.takeError()));
  auto progress = std::make_unique<Progress>("comparing " + dir_a + " and " + dir_b);
  std::map<int32_t, int32_t> of_a;
  {
    auto a = load_run(dir_a);
    if (!a) return fail(llvm::toString(a.takeError()));
    auto b = load_run(dir_b);
    if (!b) return fail(llvm::toString(b.takeError()));
    auto ranks = ranks_of_a(*a, *b);
    if (!ranks) return fail(llvm::toString(ranks.takeError()));
    of_a = std::move(*ranks);
  }
  Simulated simulated;
  std::unique_ptr<Compared> shown;
  for (const auto& [rank, a] : of_a) {
    auto one = compare_rank(dir_a, dir_b, rank, a, *rules, options);
    if (!one) return fail(llvm::toString(one.takeError()));
    const Outcome outcome = (*one)->found.verdict.outcome;
    simulated.ranks.push_back({rank, a, outcome});
    if (shown && weight(outcome) <= weight(shown->found.verdict.outcome)) continue;
    shown = std::move(*one);
    simulated.shown = rank;
  }
  progress.reset();
  if (!shown) return fail("run b has no rank");
  std::vector<SettingDifference> differing = shown->settings.refused;
  differing.insert(differing.end(), shown->settings.noted.begin(), shown->settings.noted.end());
  const Report report{.a = shown->a,
                      .b = shown->b,
                      .alignment = shown->found.alignment,
                      .verdict = shown->found.verdict,
                      .coverage = coverage,
                      .settings = std::move(differing),
                      .explain = options.explain,
                      .hidden = shown->hidden.get(),
                      .isolated = shown->found.isolated,
                      .simulated = &simulated};
  if (llvm::Error error = present(report, options)) return fail(llvm::toString(std::move(error)));
  return exit_code(shown->found.verdict, options.strict);
}

}  // namespace opguard
