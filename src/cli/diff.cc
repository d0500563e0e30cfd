#include <memory>

#include "cli/command.h"
#include "cli/report_options.h"
#include "session/diff.h"

namespace opguard {
namespace {

constexpr uint32_t kProveRuns = 3;  // of a, then of b: forced, and once more

}  // namespace

void add_diff(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand(
      "diff", "Run two trees, or two commands, and name the first operator where they part");
  command->add_option("TREE", opt->trees, "TREE_A TREE_B; one folder twice, or once, is fine");
  command->add_option("--with", opt->packages, "an installed package that counts as source")
      ->allow_extra_args(false);
  command->add_option("--run-a", opt->run_a, "shell command of side a; {tree} is its tree");
  command->add_option("--run-b", opt->run_b, "shell command of side b");
  command->add_option(
      "--git", opt->revisions,
      "GOOD..BAD: two revisions of the repository TREE; GOOD..: and its working tree");
  command
      ->add_option("--link", opt->links,
                   "with --git: a file or folder of the repository that git does not keep, linked "
                   "into each exported revision")
      ->allow_extra_args(false);
  command->add_option("--steps", opt->steps,
                      "trace only this many optimizer steps (0: all) [until nothing new comes]");
  command->add_option("--work", opt->work, "keep logs, plans and outputs in this new folder");
  command->add_flag("--copy-trees", opt->copy_trees,
                    "give every run a fresh copy of its tree, for programs that write into it");
  command->add_option("--templates", opt->templates, "folder of operator templates");
  command->add_flag("--deterministic", opt->deterministic,
                    "control seeds and kernels in both runs");
  command->add_option("--seed", opt->seed, "seed for --deterministic");
  add_examine_options(*command, opt->examine, kProveRuns);
  add_report_options(*command, opt->report);
  add_rule_options(*command, opt->report);
  command->footer("After --: the program, run in each tree.");
  command->callback([opt, &run] {
    opt->command = program_words();
    run = [opt] { return diff(*opt); };
  });
}

}  // namespace opguard
