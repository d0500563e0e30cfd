#include "session/diff.h"

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "matcher/match.h"
#include "matcher/share.h"
#include "patcher/revision.h"
#include "preflight/control.h"
#include "session/examine.h"
#include "session/program_texts.h"
#include "session/report_verdict.h"
#include "session/side.h"
#include "support/exit_code.h"
#include "support/kept_input.h"
#include "support/launch.h"
#include "support/say.h"

namespace opguard {
namespace {

// A side's command as an argument vector: its own shell command, or the common one.
std::vector<std::string> side_command(const DiffOptions& opt, const std::string& shell_command,
                                      const std::string& tree) {
  if (!shell_command.empty()) return {"/bin/sh", "-c", replace_tree(shell_command, tree)};
  std::vector<std::string> command;
  for (const std::string& word : opt.command) command.push_back(replace_tree(word, tree));
  return command;
}

// The trees of both sides: as given, or two revisions of one repository written to the work folder.
llvm::Expected<std::pair<std::string, std::string>> find_trees(const DiffOptions& opt) {
  if (!opt.revisions.empty()) {
    size_t dots = opt.revisions.find("..");
    if (dots == std::string::npos || dots == 0 || dots + 2 == opt.revisions.size())
      return make_error("--git takes GOOD..BAD, not '" + opt.revisions + "'");
    if (opt.trees.size() > 1) return make_error("--git takes at most one tree, the repository");
    std::string repository = opt.trees.empty() ? "." : opt.trees[0];
    std::string revisions[2] = {opt.revisions.substr(0, dots), opt.revisions.substr(dots + 2)};
    std::pair<std::string, std::string> out{opt.work + "/tree_a", opt.work + "/tree_b"};
    if (auto error = export_revision(repository, revisions[0], out.first)) return error;
    if (auto error = export_revision(repository, revisions[1], out.second)) return error;
    return out;
  }
  if (opt.trees.empty() || opt.trees.size() > 2)
    return make_error("give TREE_A TREE_B, or --git GOOD..BAD");
  std::vector<std::string> trees;
  for (const std::string& tree : opt.trees) {
    auto path = canonical_tree(tree);
    if (!path) return path.takeError();
    trees.push_back(*path);
  }
  return std::pair(trees.front(), trees.back());
}

SurveyOptions survey_options(const DiffSide& side, const DiffOptions& opt) {
  return {.command = side.command,
          .tree = side.tree,
          .packages = opt.packages,
          .steps = opt.steps,
          .work = side.work,
          .quiet = talk() == Talk::quiet,
          .to_its_end = true};
}

llvm::Expected<int> compare_sides(const DiffOptions& opt) {
  // Before anything runs: a rule with a fault in it would be found out too late.
  if (auto rules = read_rules(opt.report); !rules) return rules.takeError();
  auto trees = find_trees(opt);
  if (!trees) return trees.takeError();
  if (opt.command.empty() && (opt.run_a.empty() || opt.run_b.empty()))
    return make_error("give the program after --, or both --run-a and --run-b");
  DiffSide a{"a", trees->first, side_command(opt, opt.run_a, trees->first), opt.work + "/run_a"};
  DiffSide b{"b", trees->second, side_command(opt, opt.run_b, trees->second), opt.work + "/run_b"};

  Diagnostics diags;
  auto templates = find_templates(opt.templates, diags);
  if (!templates) return templates.takeError();

  // Both sides are preflighted: each loads its own sources, perhaps in its own interpreter.
  auto traced = [&](const DiffSide& side, const Survey& survey) {
    if (std::string end = told_end(survey.trace); !end.empty())
      say_step("note: " + side.name + ": " + end);
    if (survey.failure.empty()) return;
    say("warning: " + side.name + " ended with " + survey.failure +
        " under preflight; operators that only come later have no probe");
  };
  Failures failures;
  auto recorded = [](const DiffSide& side, const std::string& failure) {
    if (!failure.empty()) say("warning: run " + side.name + " ended with " + failure);
  };

  say_step("1/4 preflight of a: " + quote(a.command));
  auto survey_a = survey(survey_options(a, opt), *templates, diags);
  if (!survey_a) return survey_a.takeError();
  traced(a, *survey_a);
  say_step("2/4 preflight of b: " + quote(b.command));
  auto survey_b = survey(survey_options(b, opt), *templates, diags);
  if (!survey_b) return survey_b.takeError();
  traced(b, *survey_b);

  // One set of ids for both: what the matcher finds again in b, and what only b has.
  MatchSet matches = match_sites(survey_b->sites, *templates, survey_a->plan);
  std::vector<Bound> bounds_a = bind(survey_a->plan);
  std::vector<Bound> bounds_b =
      share_boundaries(survey_a->plan, matches, survey_b->sites, survey_b->plan);
  Coverage coverage{survey_a->plan.activities() + survey_b->plan.activities(),
                    survey_a->plan.attributed() + survey_b->plan.attributed(),
                    matches.count(MatchStatus::lost) + matches.count(MatchStatus::ambiguous)};
  say_step(std::to_string(bounds_a.size()) + " boundaries in a, " +
           std::to_string(bounds_b.size()) + " in b, " +
           std::to_string(matches.count(MatchStatus::matched)) + " shared");

  auto hook_a = instrument_side(a, *survey_a, bounds_a, diags);
  if (!hook_a) return hook_a.takeError();
  auto hook_b = instrument_side(b, *survey_b, bounds_b, diags);
  if (!hook_b) return hook_b.takeError();
  if (!diags.items().empty()) print_diagnostics(diags.text());

  Variables environment;
  if (opt.deterministic) environment = control_environment(opt.seed);
  const GuardedProgram programs[2] = {guarded(a, *hook_a, environment),
                                      guarded(b, *hook_b, environment)};
  say_step("3/4 guarded run of a");
  if (auto error = record(a, programs[0], bounds_a, *survey_a, &failures[0])) return error;
  recorded(a, failures[0]);
  say_step("4/4 guarded run of b");
  if (auto error = record(b, programs[1], bounds_b, *survey_b, &failures[1])) return error;
  recorded(b, failures[1]);

  // A program that fails cannot be run again to prove anything.
  Examine examine;
  const RewriteProgram rewrite = rewriter(b, programs[1], *survey_a, *survey_b, *templates);
  const auto texts =
      texts_of({a.tree, std::move(survey_a->sources), read_files(a.work + "/trace")},
               {b.tree, std::move(survey_b->sources), read_files(b.work + "/trace")});
  const FindBackgrounds backgrounds = backgrounds_of(texts);
  if (failures == Failures{})
    examine = examine_with(opt.examine, programs[0], programs[1], {texts, backgrounds, rewrite});
  return report_verdict(a.work + "/log", b.work + "/log", coverage, opt.report, examine, failures,
                        backgrounds);
}

}  // namespace

int diff(DiffOptions opt) {
  keep_input();
  // Two comparisons never mix.
  return work_in(opt.work, {"run_a", "run_b", "tree_a", "tree_b"}, "logs, plans and outputs",
                 [&](const std::string& path) {
                   opt.work = path;
                   return compare_sides(opt);
                 });
}

}  // namespace opguard
