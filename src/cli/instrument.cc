// opguard instrument, and the program opguard-instrument: the same options added to two Apps.
//
//   instrument TREE -- CMD               a traced run says what to wrap
//   instrument TREE --plan plan.json     a plan does
//   instrument TREE --strip --apply      every probe out
//   instrument TREE --verify -- CMD      does a probe change a bit
//   instrument --check-stripped FILES    do any still carry probes: for a hook before a commit
//
// --check-stripped takes its paths as values, as a hook gives them. A word that was taken for TREE
// is then one more of them.
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "session/check_stripped.h"
#include "session/instrument.h"

namespace opguard {

void add_instrument_options(CLI::App& command, Pipeline& run) {
  auto opt = std::make_shared<InstrumentOptions>();
  auto* tree = command.add_option("TREE", opt->repo, "The tree whose sources get probes");
  auto* plan = command.add_option("--plan", opt->plan, "Boundaries to wrap; no program is run")
                   ->type_name("FILE");
  command.add_option("--with", opt->packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->type_size(1)
      ->allow_extra_args(false);
  command
      .add_option("--python", opt->python,
                  "Interpreter that has the packages of --with [that of the program, python3]")
      ->type_name("PYTHON");
  command.add_option("--templates", opt->templates, "Take operator templates from this folder")
      ->type_name("DIR");
  auto* apply = command.add_flag("--apply", opt->apply, "Write the files, every one or none");
  auto* branch = command.add_option("--branch", opt->branch, "Commit on a new branch of this name")
                     ->type_name("NAME");
  auto* check = command.add_flag("--check", opt->check,
                                 "Write nothing; exit code 1 if a boundary is unmatched");
  auto* strip = command.add_flag("--strip", opt->strip, "Take every probe out again");
  auto* all = command.add_flag("--all-sites", opt->all_sites,
                               "Wrap every site there is (to test the patcher)");
  auto* comments = command.add_flag("--comments", opt->comments,
                                    "Say in comment lines what the probes below them record");
  apply->excludes(branch)->excludes(check);
  branch->excludes(check);
  strip->excludes(plan)->excludes(all)->excludes(comments);
  all->excludes(plan);
  auto* verify = command.add_flag(
      "--verify", opt->verify,
      "Run the program bare and instrumented: exit code 0 if losses, gradients and parameters are "
      "bit-equal");
  verify->excludes(apply)->excludes(branch)->excludes(check)->excludes(strip)->excludes(comments);
  command.add_option("--json", opt->json, "Write what --verify found to this file")
      ->type_name("FILE")
      ->needs(verify);
  command.add_option("--work", opt->work, "Keep logs and outputs of --verify in this new folder")
      ->type_name("DIR")
      ->needs(verify);
  command.add_option("--seed", opt->seed, "Seed of --verify [0]")->type_name("N")->needs(verify);
  command
      .add_option("--runs", opt->runs,
                  "Find the probe that changes something with at most so many runs [20]")
      ->type_name("N")
      ->needs(verify);
  auto* stripped =
      command
          .add_option("--check-stripped", opt->stripped,
                      "Name the probes that these files and folders still carry; exit code 1 if "
                      "there is one")
          ->type_name("PATH")
          ->expected(0, CLI::detail::expected_max_vector_size);
  for (CLI::Option* other : {plan, apply, branch, check, strip, all, comments, verify})
    stripped->excludes(other);
  add_source_options(command, opt->sources);
  add_talk_options(command);
  command.footer(
      "After --: the program to make a plan of, where there is none to give with --plan, and to "
      "verify.");
  describe(command, {"[-- CMD]",
                     {full_name(command) + " . -- python train.py --steps 3 > probes.diff",
                      full_name(command) + " . --plan plan.json --branch probes",
                      full_name(command) + " . --strip --apply",
                      full_name(command) + " --check-stripped model/*.py"}});
  command.callback([opt, tree, stripped, &run] {
    if (stripped->count() > 0) {
      std::erase(opt->stripped, "");  // what CLI11 gives for none
      if (tree->count() > 0) opt->stripped.insert(opt->stripped.begin(), opt->repo);
      run = [opt] { return check_stripped(opt->stripped); };
      return;
    }
    if (tree->count() == 0) throw CLI::RequiredError("TREE");
    opt->command = program_words();
    run = [opt] { return instrument(*opt); };
  });
}

void add_instrument(CLI::App& app, Pipeline& run) {
  add_instrument_options(
      *app.add_subcommand("instrument", "Print the git diff that puts probes into a tree"), run);
}

}  // namespace opguard
