#include <memory>

#include "cli/command.h"
#include "session/instrument.h"

namespace opguard {

void add_instrument_options(CLI::App& command, Pipeline& run) {
  auto opt = std::make_shared<InstrumentOptions>();
  command.add_option("repo", opt->repo, "The tree whose sources get probes")->required();
  auto* plan = command.add_option("--plan", opt->plan, "Boundaries to wrap; no program is run");
  command.add_option("--with", opt->packages, "An installed package that counts as user source")
      ->type_size(1)
      ->allow_extra_args(false);
  command.add_option(
      "--python", opt->python,
      "The interpreter that has the packages of --with [that of the program, python3]");
  command.add_option("--templates", opt->templates, "Folder of templates instead of opguard's own");
  auto* apply = command.add_flag("--apply", opt->apply, "Write the files, every one or none");
  auto* branch = command.add_option("--branch", opt->branch, "Commit on a new branch of this name");
  auto* check =
      command.add_flag("--check", opt->check, "Write nothing; 1 if a boundary is unmatched");
  auto* strip = command.add_flag("--strip", opt->strip, "Take every probe out again");
  auto* all = command.add_flag("--all-sites", opt->all_sites,
                               "Wrap every site there is (to test the patcher)");
  apply->excludes(branch)->excludes(check);
  branch->excludes(check);
  strip->excludes(plan)->excludes(all);
  all->excludes(plan);
  auto* verify = command.add_flag(
      "--verify", opt->verify,
      "Run the program bare and instrumented: 0 if losses, gradients and parameters are bit-equal");
  verify->excludes(apply)->excludes(branch)->excludes(check)->excludes(strip);
  command.add_option("--json", opt->json, "Write what --verify found to this file")->needs(verify);
  command.add_option("--work", opt->work, "Keep logs and outputs of --verify in this new folder")
      ->needs(verify);
  command.add_option("--seed", opt->seed, "Seed of --verify [0]")->needs(verify);
  command
      .add_option("--runs", opt->runs, "Runs to find the probe with that changes something [20]")
      ->needs(verify);
  command.footer(
      "After --: the program to make a plan of, where there is none to give with --plan, and to "
      "verify.");
  command.callback([opt, &run] {
    opt->command = program_words();
    run = [opt] { return instrument(*opt); };
  });
}

void add_instrument(CLI::App& app, Pipeline& run) {
  add_instrument_options(
      *app.add_subcommand("instrument", "Print the diff that puts probes into a tree"), run);
}

}  // namespace opguard
