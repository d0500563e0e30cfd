// The order of what can fail: rules, options, trees, templates, then four runs from the cheapest
// mistake to the dearest. Both preflights come before either guarded run, so a program that does
// not start costs no guarded run of the other.
//
// Where an exported revision fails, the last lines of its output are searched for names that the
// repository has and the revision lacks: `hint: v1 has no data, and /home/me/repo has: --link data`
// (link_data.h).
//
// Counterexample: --simulate with a program that fails. Elsewhere half of a run is compared as far
// as it came; a rank that stopped half-way says nothing of its arithmetic.
//
// The cost: both surveys are held until the report, with all texts of both programs.
#include "session/diff.h"

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "matcher/match.h"
#include "matcher/share.h"
#include "preflight/control.h"
#include "session/examine.h"
#include "session/isolate.h"
#include "session/leave_out.h"
#include "session/link_data.h"
#include "session/program_texts.h"
#include "session/report_verdict.h"
#include "session/side.h"
#include "session/side_trees.h"
#include "session/simulate.h"
#include "session/tree_copy.h"
#include "support/exit_code.h"
#include "support/kept_input.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/text.h"

namespace opguard {
namespace {

// Of so many operators less than one is found in both: one program is a port of the other.
constexpr size_t kFewShared = 4;

// A side's command as an argument vector: its own shell command, or the common one.
// A side's own command is the shell's, so it may be `cd x && python train.py`.
std::vector<std::string> side_command(const DiffOptions& opt, const std::string& shell_command,
                                      const std::string& tree) {
  if (!shell_command.empty()) return {"/bin/sh", "-c", replace_tree(shell_command, tree)};
  std::vector<std::string> command;
  for (const std::string& word : opt.command) command.push_back(replace_tree(word, tree));
  return command;
}

// With --copy-trees the side's tree is the copy, and provenance.home the tree that people know.
DiffSide make_side(const DiffOptions& opt, int side, const Provenance& provenance) {
  DiffSide made;
  made.name = side == 0 ? "a" : "b";
  made.tree = provenance.tree;
  made.work = opt.work + "/run_" + made.name;
  made.provenance = provenance;
  if (opt.copy_trees) {
    made.copy_of = provenance.tree;
    made.tree = made.provenance.tree = made.work + "/tree";
    if (made.provenance.home.empty()) made.provenance.home = provenance.tree;
  }
  made.command = side_command(opt, side == 0 ? opt.run_a : opt.run_b, made.tree);
  made.provenance.command = quote(made.command);
  return made;
}

// "a", "a, v1 (9488786f21ab)".
std::string told(const DiffSide& side) {
  const std::string version = side.provenance.revision.empty() ? "" : side.provenance.version();
  return side.name + (version.empty() ? "" : ", " + version);
}

// An exported revision lacks what git does not keep.
void hint_missing(const DiffSide& side) {
  const Provenance& provenance = side.provenance;
  if (provenance.revision.empty() || provenance.home.empty()) return;
  const std::vector<std::string> missing =
      missing_data({side.work + "/trace/output.txt", side.work + "/output.txt"}, provenance.home,
                   provenance.tree);
  for (const std::string& path : missing)
    say("hint: " + provenance.revision + " has no " + path + ", and " + provenance.home +
        " has: --link " + quote({path}) + " links it into both trees");
}

// What programs write into a tree is found there by the runs after it.
void note_written(const WatchedTree& a, const WatchedTree& b) {
  std::string text;
  auto add = [&](const char* side, const std::set<std::string>& files) {
    if (files.empty()) return;
    text += (text.empty() ? "" : ", ") + counted(files.size(), "file") + " in " + side + " (" +
            *files.begin() + (files.size() > 1 ? ", ...)" : ")");
  };
  add("a", a.written());
  add("b", b.written());
  if (!text.empty())
    say("note: the program wrote into its own tree: " + text +
        "; --copy-trees gives every run a tree of its own");
}

// What is no source in one tree is none in the other, or only one of them would have boundaries
// there.
llvm::Expected<LeftOutFiles> left_out_of_both(const DiffOptions& opt, const DiffSide& a,
                                              const DiffSide& b) {
  LeftOutFiles both;
  for (const DiffSide* side : {&a, &b}) {
    const Provenance& known = side->provenance;
    const std::string& tree = side->copy_of.empty() ? side->tree : side->copy_of;
    const bool exported = !known.revision.empty() && tree != known.repository;
    auto one = left_out_of(tree, opt.sources, side->command, exported);
    if (!one) return one.takeError();
    both.add(*one);
  }
  say_left_out(both, opt.sources);
  return both;
}

// Side b alone is simulated, and that explicitly: a surrounding run may be.
Variables simulated_if(const DiffOptions& opt, const DiffSide& side) {
  return simulate_environment(opt.simulate && side.name == "b");
}

// A simulated program that was refused is not compared as far as it came.
llvm::Error refused(const DiffOptions& opt, const std::string& output) {
  const std::string why = opt.simulate ? refusal_in(output) : "";
  return why.empty() ? llvm::Error::success() : make_error("run b is not simulated: " + why);
}

// A program that fails under the preflight is surveyed all the same, as far as it came.
SurveyOptions survey_options(const DiffSide& side, const DiffOptions& opt,
                             const std::set<std::string>& left_out) {
  return {.command = side.command,
          .tree = side.tree,
          .packages = opt.packages,
          .left_out = left_out,
          .steps = opt.steps,
          .work = side.work,
          .quiet = talk() == Talk::quiet,
          .to_its_end = true,
          .environment = simulated_if(opt, side)};
}

llvm::Expected<int> compare_sides(const DiffOptions& opt) {
  // Before anything runs: a rule with a fault in it would be found out too late.
  if (auto rules = read_rules(opt.report); !rules) return rules.takeError();
  if (opt.command.empty() && (opt.run_a.empty() || opt.run_b.empty()))
    return make_error("give the program after --, or both --run-a and --run-b");
  auto trees = find_side_trees({opt.trees, opt.revisions, opt.links, opt.work});
  if (!trees) return trees.takeError();
  const DiffSide a = make_side(opt, 0, (*trees)[0]), b = make_side(opt, 1, (*trees)[1]);

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
    hint_missing(side);
  };
  Failures failures;
  auto recorded = [](const DiffSide& side, const std::string& failure) {
    if (failure.empty()) return;
    say("warning: run " + side.name + " ended with " + failure);
    hint_missing(side);
  };
  auto failed = [](const DiffSide& side, llvm::Error error) {
    hint_missing(side);
    return error;
  };

  auto both = left_out_of_both(opt, a, b);
  if (!both) return both.takeError();
  const std::set<std::string> left_out = both->all();

  WatchedTree watched_a(a.tree, opt.work), watched_b(b.tree, opt.work);
  auto in_tree = [](const DiffSide& side, WatchedTree& watched, auto run) {
    if (side.copy_of.empty()) watched.begin();
    auto result = run();
    if (side.copy_of.empty()) watched.end();
    return result;
  };
  auto surveyed = [&](const DiffSide& side, WatchedTree& watched) -> llvm::Expected<Survey> {
    if (auto error = renew_tree(side)) return error;
    return in_tree(side, watched,
                   [&] { return survey(survey_options(side, opt, left_out), *templates, diags); });
  };

  const std::string total = std::to_string(4 + (opt.tolerance.on ? opt.tolerance.perturb : 0));
  say_step("1/" + total + " preflight of " + told(a) + ": " + quote(a.command));
  auto survey_a = surveyed(a, watched_a);
  if (!survey_a) return failed(a, survey_a.takeError());
  traced(a, *survey_a);
  say_step("2/" + total + " preflight of " + told(b) + ": " + quote(b.command));
  auto survey_b = surveyed(b, watched_b);
  if (auto error = refused(opt, b.work + "/trace/output.txt")) {
    if (!survey_b) llvm::consumeError(survey_b.takeError());
    return error;
  }
  if (!survey_b) return failed(b, survey_b.takeError());
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
  auto with_simulation = [&](const DiffSide& side) {
    Variables all = environment;
    for (auto& variable : simulated_if(opt, side)) all.push_back(variable);
    return all;
  };
  const GuardedProgram programs[2] = {guarded(a, *hook_a, with_simulation(a)),
                                      guarded(b, *hook_b, with_simulation(b))};
  auto recording = [&](const DiffSide& side, WatchedTree& watched, auto&&... rest) {
    return in_tree(side, watched, [&] { return record(side, rest...); });
  };
  if (opt.tolerance.on) {
    ToleranceRuns runs = opt.tolerance;
    runs.port = matches.count(MatchStatus::matched) * kFewShared < bounds_b.size();
    auto logs = record_tolerance(
        runs, programs[0], programs[1],
        [&](const GuardedProgram& program, const std::string& folder) {
          return recording(a, watched_a, program, bounds_a, *survey_a, nullptr, folder);
        },
        [&](const GuardedProgram& program, const std::string& folder) {
          return recording(b, watched_b, program, bounds_b, *survey_b, nullptr, folder);
        });
    if (!logs) return logs.takeError();
    note_written(watched_a, watched_b);
    GuardedProgram sketched_b = programs[1];  // which `isolate` refers to
    if (!logs->pads.empty())
      sketched_b.environment.emplace_back("OPGUARD_SLICES", "@" + logs->pads);
    Isolate isolate;
    if (opt.tolerance.isolate)
      isolate = isolate_with(programs[0], sketched_b, opt.tolerance.options);
    return report_tolerance(*logs, coverage, opt.tolerance.options, opt.report, isolate);
  }
  say_step("3/4 guarded run of " + told(a));
  if (auto error = recording(a, watched_a, programs[0], bounds_a, *survey_a, &failures[0]))
    return failed(a, std::move(error));
  recorded(a, failures[0]);
  say_step("4/4 guarded run of " + told(b) + (opt.simulate ? ", simulated" : ""));
  if (auto error = recording(b, watched_b, programs[1], bounds_b, *survey_b, &failures[1]))
    return failed(b, std::move(error));
  if (auto error = refused(opt, b.work + "/output.txt")) return error;
  recorded(b, failures[1]);
  note_written(watched_a, watched_b);

  if (opt.simulate) {
    for (int side : {0, 1})
      if (!failures[side].empty())
        return make_error("run " + programs[side].name + " ended with " + failures[side] +
                          ": nothing is told by half of a run");
    return report_simulated(a.work + "/log", b.work + "/log", coverage, opt.report);
  }
  // A program that fails cannot be run again to prove anything.
  Examine examine;
  const RewriteProgram rewrite = rewriter(b, programs[1], survey_a->plan, survey_b->sources, *templates);
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
  const int code = work_in(opt.work, "logs, plans and outputs", [&](const std::string& path) {
    opt.work = path;
    return compare_sides(opt);
  });
  return code == kCouldNotTell && opt.bisect_exit ? kSkipCommit : code;
}

}  // namespace opguard
