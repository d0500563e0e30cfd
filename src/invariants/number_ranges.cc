// The arithmetic of ranges, in logarithms to the base 2.
//
//   five programs, each with losses 1, 1.5, 2.1 and 3
//   their buckets' middles           0.0625   0.5625   1.0625   1.5625
//   median 0.5625, median distance 0.5, spread 8 * 0.5 = 4
//   the rule                         between 2^-3.4375 = 0.0923 and 2^4.5625 = 23.6
//
// Logarithms, because losses and norms differ by factors. Medians, because one step that explodes
// does not move them. A spread is one octave at least, so equal numbers have a range from half to
// twice.
//
// Counterexample: the least and the most of the good runs as the range. The next run with another
// seed leaves it.
//
// The cost: by buckets, not by rows.
#include "invariants/number_ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace opguard {

namespace {

constexpr uint32_t kRangePrograms = 5, kRangeRuns = 3;
// kOctave is the width of a bucket (NumberTally), in octaves. kSpreads: median distances.
constexpr double kSpreads = 8, kOctave = 1.0 / 8;

// The lower one of an even number of rows: a value that occurs.
double median_of(const std::map<double, uint64_t>& counts, uint64_t rows) {
  uint64_t before = 0;
  for (const auto& [value, count] : counts)
    if ((before += count) * 2 >= rows) return value;
  return 0;
}

// Three digits, so that a person can read it.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::strtod(text, nullptr);
}

}  // namespace

void add_ranges(const RuleView& view, const std::map<uint32_t, NumberTally>& numbers,
                const CellTexts& texts, bool one_program, std::vector<Invariant>& rules) {
  // The rule would have to ask which call it is, and its name is one program's own.
  if (view.anchor >= 0 && view.columns[view.anchor].names && !one_program) return;
  std::vector<Invariant> found;
  for (const auto& [anchor, tally] : numbers) {
    const bool enough =
        one_program ? tally.runs.size() >= kRangeRuns : tally.programs.size() >= kRangePrograms;
    // A zero has no logarithm, and infinity no range: one such number and nothing is said.
    if (!enough || tally.outside || (view.anchor >= 0 && anchor == kUnknown)) continue;
    uint64_t rows = 0;
    std::map<double, uint64_t> logs, distances;
    for (const auto& [bucket, count] : tally.buckets) {
      logs[(bucket + 0.5) * kOctave] += count;
      rows += count;
    }
    if (rows == 0) continue;
    const double median = median_of(logs, rows);
    for (const auto& [value, count] : logs) distances[std::abs(value - median)] += count;
    const double spread = kSpreads * std::max(kOctave, median_of(distances, rows));
    const double least = rounded(std::exp2(median - spread)),
                 most = rounded(std::exp2(median + spread));
    // A good run has left it: what it did once another one does again.
    if (tally.least < least || tally.most > most) continue;
    Invariant rule;
    rule.view = view.name;
    if (view.anchor >= 0)
      rule.when = {{std::string(view.columns[view.anchor].name), {texts.text(anchor)}}};
    rule.between = {least, most};
    rule.tier = one_program ? InvariantTier::program : InvariantTier::general;
    rule.severity = InvariantSeverity::note;
    rule.relation = "range";
    const auto programs = static_cast<uint32_t>(tally.programs.size());
    const auto runs = static_cast<uint32_t>(tally.runs.size());
    rule.evidence = {.programs = programs,
                     .runs = runs,
                     .rows = rows,
                     .held_out = one_program ? runs : programs};
    rule.id = invariant_id(rule);
    rule.says = invariant_words(rule, view);
    found.push_back(std::move(rule));
  }
  // By their words: the map is by numbers of texts, which depend on the order of the logs.
  std::sort(found.begin(), found.end(),
            [](const Invariant& a, const Invariant& b) { return a.says < b.says; });
  rules.insert(rules.end(), found.begin(), found.end());
}

}  // namespace opguard
