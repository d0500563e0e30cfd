// opguard diff: the trees, the program, and how much to prove.
//
//   opguard diff good/ bad/ -- python train.py                 two trees, one command
//   opguard diff --git v1.2..HEAD -- python train.py           two revisions
//   opguard diff . . --run-a "A" --run-b "B"                   one tree, two commands; no `--` then
//
// Beside --tolerance, rules and proofs mean nothing, and beside --simulate proofs do not. On the
// command line they are noted so; those of a settings file are passed over.
//
// Counterexample: --simulate beside --tolerance. Both ask what the arithmetic does, by different
// runs.
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "cli/tolerance_options.h"
#include "session/diff.h"

namespace opguard {
namespace {

constexpr uint32_t kProveRuns = 3;  // of a, then of b: forced, and once more

}  // namespace

void add_diff(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand(
      "diff", "Run two trees, or two commands, and name the first operator where they part");
  describe(*command,
           {"-- CMD",
            {"opguard diff good/ bad/ -- python train.py --steps 3",
             "opguard diff --git v1.2..HEAD -- torchrun --nproc-per-node 2 train.py",
             "opguard diff . . --with transformers --run-a 'old/bin/python {tree}/run.py' "
             "--run-b 'new/bin/python {tree}/run.py'"}});
  command->add_option("TREE", opt->trees, "TREE_A TREE_B; one folder twice, or once, is fine");
  command->add_option("--with", opt->packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->allow_extra_args(false);
  add_source_options(*command, opt->sources);
  command->add_option("--run-a", opt->run_a, "Shell command of side a; {tree} is its tree")
      ->type_name("CMD");
  command->add_option("--run-b", opt->run_b, "Shell command of side b")->type_name("CMD");
  command
      ->add_option("--git", opt->revisions,
                   "Compare two revisions of the repository TREE; GOOD..: with its working tree")
      ->type_name("GOOD..BAD");
  command
      ->add_option("--link", opt->links,
                   "With --git: link a file or folder that git does not keep into each exported "
                   "revision; repeatable")
      ->type_name("PATH")
      ->allow_extra_args(false);
  command
      ->add_option("--steps", opt->steps,
                   "Trace only this many optimizer steps, 0: all [until nothing new comes]")
      ->type_name("N");
  command->add_option("--work", opt->work, "Keep logs, plans and outputs in this new folder")
      ->type_name("DIR");
  command->add_flag("--copy-trees", opt->copy_trees,
                    "Give every run a fresh copy of its tree, for programs that write into it");
  command->add_option("--templates", opt->templates, "Take operator templates from this folder")
      ->type_name("DIR");
  command->add_flag("--deterministic", opt->deterministic,
                    "Control seeds and kernels in both runs (opguard help determinism)");
  command->add_option("--seed", opt->seed, "Seed of --deterministic")->type_name("N");
  add_examine_options(*command, opt->examine, kProveRuns);
  add_tolerance_options(*command, opt->tolerance);
  command
      ->add_flag("--simulate", opt->simulate,
                 "Is it the arithmetic or the configuration? Run b computes the whole model on "
                 "every rank (opguard help simulate)")
      ->excludes("--tolerance");
  command->add_flag("--bisect-exit", opt->bisect_exit,
                    "Exit with 125 where it could not tell, for git bisect run");
  add_talk_options(*command);
  add_report_options(*command, opt->report);
  add_rule_options(*command, opt->report);
  command->footer("After --: the program, run in each tree.");
  command->callback([opt, command, &run] {
    const bool both = !opt->run_a.empty() && !opt->run_b.empty();
    opt->command = both ? program_words() : program_words(*command);
    if (opt->tolerance.on) note_unused_by_tolerance(*command);
    if (opt->simulate) note_unused(*command, "--simulate", {"--prove-runs", "--drill"});
    run = [opt] { return diff(*opt); };
  });
}

}  // namespace opguard
