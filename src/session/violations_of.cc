// A rule says what broke; a reader wants the statement. A place is text in the log,
// "/w/train.py:53:main", and becomes a Location whose line is read from today's file. With `run`
// the first of a group also gets the statement that last wrote the value (source_of), which may
// stand elsewhere:
//
//   seen at     train.py:53   opt.step()
//   source      train.py:52   nn.utils.clip_grad_norm_(model.parameters(), 1.0)
//
// Counterexample: while a program runs there is no whole log, and `run` is null: a finding has its
// place alone.
//
// The cost: one file is read for each place.
#include "session/violations_of.h"

#include <charconv>
#include <filesystem>

#include "invariants/places/source_of.h"
#include "report/excerpt.h"

namespace opguard {
namespace {

// head: the first of its group. Its source is the group's, so it is looked for once.
Violation violation_of(const BrokenRule& broken, const Run* run, bool head) {
  const Invariant& rule = *broken.rule;
  const std::string tree = run ? run->provenance->tree : std::string();
  Violation made;
  made.id = rule.id;
  made.says = rule.says;
  made.severity = severity_name(rule.severity);
  made.tier = tier_name(rule.tier);
  made.relation = rule.relation;
  made.evidence = evidence_words(rule.evidence);
  made.step = broken.first.step;
  made.rank = broken.first.rank;
  made.name = broken.first.name;
  made.module = broken.first.module;
  made.detail = broken.first.detail;
  if (!broken.others.empty()) {
    made.detail += (made.detail.empty() ? "so " : "; so ") + std::string("are ");
    for (size_t i = 0; i < broken.others.size(); ++i)
      made.detail += (i ? ", " : "") + broken.others[i];
  }
  made.at = location_of(broken.first.place, tree);
  made.times = broken.times;
  if (!run || !head) return made;
  auto source = source_of(*run, {rule.view, rule.then.column, made.name, made.step, made.rank});
  if (source && source->location.line) {
    made.source = source->location;
    if (made.source.text.empty()) made.source.text = read_excerpt(made.source).line;
    made.because = source->because;
  }
  return made;
}

}  // namespace

// The two last colons part it: a path may hold one. No line at all where the text is no place.
Location location_of(const std::string& place, const std::string& tree) {
  Location at;
  const size_t second = place.rfind(':');
  if (second == std::string::npos || second == 0) return at;
  const size_t first = place.rfind(':', second - 1);
  if (first == std::string::npos) return at;
  uint32_t line = 0;
  std::from_chars(place.data() + first + 1, place.data() + second, line);
  at.path = place.substr(0, first);
  at.line = line;
  at.function = place.substr(second + 1);
  at.file = at.path;
  if (!tree.empty() && at.path.starts_with(tree + "/")) at.file = at.path.substr(tree.size() + 1);
  Location whole = at;
  whole.text.clear();
  SourceFiles files;
  for (const ContextLine& context : files.excerpt(whole, 0))
    if (context.number == line) at.text = context.text.line;
  const size_t start = at.text.find_first_not_of(" \t");
  at.text.erase(0, start == std::string::npos ? at.text.size() : start);
  return at;
}

ViolationFinding finding_of(const BrokenGroup& group, const Run* run) {
  ViolationFinding finding;
  for (size_t i = 0; i < group.size(); ++i) {
    Violation violation = violation_of(group[i], run, i == 0);
    if (i == 0)
      finding.first = std::move(violation);
    else
      finding.others.push_back(std::move(violation));
  }
  return finding;
}

}  // namespace opguard
