// Three steps, each on what the one before has left:
//
//   find_noise       what differs though nothing before it did: a rule each
//   noisy_numbers    with these hidden, a number handed to Python still differs: a rule too
//   verdict          with all of them hidden, the model values agree, or the noise reaches them
//
// A number's rule is of use only where the noise goes nowhere else. So it is kept only if no pair
// of runs is still diverged with it.
#include "session/noise.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "align/judge/holes.h"
#include "align/judge/pivot_view.h"
#include "align/pair/run.h"
#include "align/rules/hidden.h"
#include "align/rules/noise.h"
#include "preflight/control.h"
#include "report/reasons.h"
#include "session/report_verdict.h"
#include "session/side.h"
#include "session/side_trees.h"
#include "support/exit_code.h"
#include "support/kept_input.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

// Two of the runs, aligned beside what the user's rules hide.
struct RunPair {
  const Run& a;
  const Run& b;
  Alignment alignment;

  // What the user's own rules hide is hidden before anything is looked for: known noise is not
  // found again.
  RunPair(const Run& first, const Run& other, const std::vector<Rule>& rules)
      : a(first), b(other), alignment(align_runs(first, other)) {
    HiddenRecords(rules, a, b).apply(alignment);
  }
  // On a copy of the alignment: each question hides other records of the same pair.
  Verdict verdict(const std::vector<Rule>& rules) const {
    Alignment beside = alignment;
    HiddenRecords hidden(rules, a, b);
    hidden.apply(beside);
    return limit_by_holes(judge(a, b, beside, hidden), a, b, beside);
  }
};

// The rules that hide something. Sites that are model values have a rule as a text to show, and
// hide nothing.
std::vector<Rule> both(std::vector<Rule> rules, const std::vector<NoiseSite>& sites) {
  for (const NoiseSite& site : sites)
    if (!site.model_value) rules.push_back(site.rule);
  return rules;
}

// A site that several pairs of runs show is one.
void merge(std::vector<NoiseSite>& all, std::vector<NoiseSite> more) {
  for (NoiseSite& site : more) {
    auto known = std::find_if(all.begin(), all.end(), [&](const NoiseSite& other) {
      return other.rule.text == site.rule.text;
    });
    if (known == all.end())
      all.push_back(std::move(site));
    else
      known->times = std::max(known->times, site.times);
  }
}

// Parsed again, since what was found is only its text.
llvm::Error parse_sites_rules(std::vector<NoiseSite>& sites) {
  for (NoiseSite& site : sites) {
    std::vector<Rule> rules;
    Diagnostics diags;
    if (!parse_rules(site.rule.line(), "noise", rules, diags) || rules.size() != 1)
      return make_error("no rule can name this record:\n" + diags.text());
    site.rule = rules[0];
  }
  return llvm::Error::success();
}

struct Found {
  std::vector<NoiseSite> sites;
  // Of these, what is noise: generators that nobody draws from are none.
  uint64_t noisy() const {
    return uint64_t(std::count_if(sites.begin(), sites.end(),
                                  [](const NoiseSite& site) { return !site.idle; }));
  }
  Reasons reaches;         // how the noise shows in the model values, if it does
  std::string unknowable;  // "" or why nothing can be said
};

// A rule's reason is a sentence.
std::vector<NoiseSite> in_words(const Run& a, const Run& b, std::vector<NoiseSite> sites) {
  for (NoiseSite& site : sites) site.rule.why = words(a, b, site.pivot.why);
  return sites;
}

// Run 1 against each of the others: where two of these differ, one differs from run 1.
llvm::Expected<Found> compare_runs(const std::vector<Run>& runs, const std::vector<Rule>& known) {
  Found found;
  std::vector<RunPair> pairs;
  for (size_t i = 1; i < runs.size(); ++i) {
    pairs.emplace_back(runs[0], runs[i], known);
    merge(found.sites,
          in_words(runs[0], runs[i], find_noise(runs[0], runs[i], pairs.back().alignment)));
  }
  if (auto error = parse_sites_rules(found.sites)) return error;
  // A number handed to Python is a model value. Only a rule of its own can hide it, and only where
  // the noise goes nowhere else is that any use.
  std::vector<NoiseSite> numbers;
  for (const RunPair& pair : pairs) {
    Alignment beside = pair.alignment;
    const std::vector<Rule> rules = both(known, found.sites);
    HiddenRecords(rules, pair.a, pair.b).apply(beside);
    merge(numbers, in_words(pair.a, pair.b, noisy_numbers(pair.a, pair.b, beside)));
  }
  if (auto error = parse_sites_rules(numbers)) return error;
  std::vector<NoiseSite> with_numbers = found.sites;
  merge(with_numbers, numbers);
  for (const RunPair& pair : pairs) {
    const Verdict verdict = pair.verdict(both(known, with_numbers));
    if (verdict.outcome == Outcome::diverged && found.reaches.empty()) found.reaches = verdict.why;
    if (verdict.outcome == Outcome::inconclusive && !pair.a.processes.empty() &&
        !verdict.why.empty() && verdict.why.back().kind == ReasonKind::log_not_whole)
      found.unknowable = words(pair.a, pair.b, verdict.why);
  }
  if (found.reaches.empty()) found.sites = std::move(with_numbers);
  return found;
}

// reaches: found.reaches, in words.
// The head of the file of rules: comment lines, which parse_rules() skips.
std::string header(const NoiseOptions& opt, const Found& found, const std::string& reaches) {
  std::string text = "# opguard noise: records that differ between " + std::to_string(opt.runs) +
                     " runs of one tree. Form: docs/guide/noise.md\n# " + quote(opt.command) + "\n";
  if (!found.reaches.empty())
    text += "# The noise reaches the model values (" + reaches +
            "): comparisons stay diverged where it does.\n";
  return text;
}

std::string place_of(const Run& a, const Run& b, const NoiseSite& site) {
  const PivotView both = view(a, b, site.pivot);
  return place(both.either()) + "  " + both.either().operator_name;
}

//   # train.py:14  torch.empty, 8 executions
//   train.empty:q7k2:out0 -- why: uninitialised memory
llvm::Error write_rules(const NoiseOptions& opt, const Found& found, const std::vector<Run>& runs) {
  std::string text = header(opt, found, words(runs[0], runs.back(), found.reaches));
  for (const NoiseSite& site : found.sites) {
    text += "# " + place_of(runs[0], runs.back(), site) + ", " + std::to_string(site.times) +
            (site.times == 1 ? " execution\n" : " executions\n");
    // What the runs are judged by is never hidden.
    text += (site.model_value ? "# a model value: no rule for " : "") + site.rule.line() + "\n";
  }
  if (opt.out.empty()) {
    print_lines("\n" + text);
    return llvm::Error::success();
  }
  return write_file(opt.out, text);
}

// One survey serves all runs: the tree is the same, so its probes are.
llvm::Expected<std::vector<Run>> record_runs(const NoiseOptions& opt, const std::string& tree) {
  Diagnostics diags;
  auto templates = find_templates(opt.templates, diags);
  if (!templates) return templates.takeError();
  const std::string total = std::to_string(opt.runs + 1);
  say_step("1/" + total + " preflight: " + quote(opt.command));
  DiffSide side{"1", tree, opt.command, opt.work + "/run_1", provenance_of(tree)};
  side.provenance.command = quote(opt.command);
  auto left_out = left_out_of(tree, opt.sources, opt.command);
  if (!left_out) return left_out.takeError();
  say_left_out(*left_out, opt.sources);
  auto seen = survey({.command = opt.command,
                      .tree = tree,
                      .packages = opt.packages,
                      .left_out = left_out->all(),
                      .steps = opt.steps,
                      .work = side.work,
                      .quiet = talk() == Talk::quiet},
                     *templates, diags);
  if (!seen) return seen.takeError();
  if (std::string end = told_end(seen->trace); !end.empty()) say_step("note: " + end);
  const std::vector<Bound> bounds = bind(seen->plan);
  auto hook = instrument_side(side, *seen, bounds, diags);
  if (!hook) return hook.takeError();
  if (!diags.items().empty()) print_diagnostics(diags.text());
  Variables environment;
  if (opt.deterministic) environment = control_environment(opt.seed);
  std::vector<Run> runs;
  for (uint32_t i = 1; i <= opt.runs; ++i) {
    side.name = std::to_string(i);
    side.work = opt.work + "/run_" + side.name;
    say_step(std::to_string(i + 1) + "/" + total + " guarded run " + side.name);
    if (auto error = record(side, guarded(side, *hook, environment), bounds, *seen)) return error;
    auto run = load_run(side.work + "/log");
    if (!run) return run.takeError();
    runs.push_back(std::move(*run));
  }
  return runs;
}

// The exit code: kYes, the runs agree in every record, or differ only in generators that nobody
// draws from.
llvm::Expected<int> search_noise(NoiseOptions opt) {
  auto known = read_rules(opt.report);
  if (!known) return known.takeError();
  auto tree = canonical_tree(opt.tree);
  if (!tree) return tree.takeError();
  for (std::string& word : opt.command) word = replace_tree(word, *tree);
  auto runs = record_runs(opt, *tree);
  if (!runs) return runs.takeError();
  auto found = compare_runs(*runs, *known);
  if (!found) return found.takeError();
  if (!found->unknowable.empty()) return make_error(found->unknowable);

  // The report is of the first pair of runs that shows the first of the sites.
  std::optional<RunPair> pair;
  std::vector<NoiseSite> sites;
  for (size_t shown = 1; shown < runs->size(); ++shown) {
    pair.emplace((*runs)[0], (*runs)[shown], *known);
    sites = find_noise(pair->a, pair->b, pair->alignment);
    if (std::any_of(sites.begin(), sites.end(), [](const auto& site) { return !site.idle; })) break;
  }
  Verdict verdict;
  const uint64_t noisy = found->noisy();
  verdict.outcome = noisy == 0 ? Outcome::identical : Outcome::diverged;
  if (noisy > 0)
    verdict.why = {{.kind = ReasonKind::noise_differs, .numbers = {opt.runs, noisy}}};
  else
    verdict.why = {{.kind = ReasonKind::noise_agrees, .numbers = {opt.runs}}};
  if (noisy == 0 && !found->sites.empty()) verdict.why.push_back({ReasonKind::noise_idle});
  constexpr size_t kMost = 6;  // as many as judge names
  for (const NoiseSite& site : sites)
    if (!site.idle && verdict.candidates.size() < kMost) verdict.candidates.push_back(site.pivot);
  if (!found->reaches.empty()) {
    verdict.notes.push_back(found->reaches);
    verdict.notes.back().insert(verdict.notes.back().begin(), {ReasonKind::noise_reaches});
  }
  HiddenRecords hidden(*known, pair->a, pair->b);
  Alignment counted = align_runs(pair->a, pair->b);
  hidden.apply(counted);
  const Report report{pair->a, pair->b, counted, verdict, {}, {}, opt.report.explain,
                      {},      {},      &hidden};
  if (auto error = present(report, opt.report)) return error;
  if (noisy == 0 && opt.out.empty()) return kYes;
  if (auto error = write_rules(opt, *found, *runs)) return error;
  if (!opt.out.empty()) say(std::to_string(found->sites.size()) + " rules are in " + opt.out);
  return noisy == 0 ? kYes : kNo;
}

}  // namespace

int noise(NoiseOptions opt) {
  keep_input();
  return work_in(opt.work, "logs, the plan and outputs", [&](const std::string& path) {
    opt.work = path;
    return search_noise(opt);
  });
}

}  // namespace opguard
