// opguard bisect: two searches under one name. Without --package the words are revisions, with it
// releases, and the options of one mean nothing to the other (needs("--package")).
//
//   opguard bisect v1.2 HEAD -- python train.py                      GOOD BAD
//   opguard bisect v1.2..HEAD -- python train.py                     the same
//   opguard bisect --package einops 0.6.1..0.8.0 -- python run.py
//
// Counterexample: --package-python is not --python. It is the program's interpreter, not one of a
// helper's.
#include "session/bisect.h"

#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"

namespace opguard {
namespace {

// Each needs --package, so that a slip is told and no revision is taken for a release.
void add_release_options(CLI::App& command, BisectOptions& opt) {
  command
      .add_option("--package", opt.package,
                  "Search the releases of this installed package; it counts as source")
      ->type_name("PKG");
  command
      .add_option("--releases", opt.releases,
                  "The releases to search, oldest first [all of the package index]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("VERSIONS")
      ->needs("--package");
  command.add_option("--module", opt.module, "What the package is imported by [its name, - as _]")
      ->type_name("NAME")
      ->needs("--package");
  command
      .add_option("--package-python", opt.python,
                  "The program's interpreter, where its command does not begin with one")
      ->type_name("FILE")
      ->needs("--package");
  command
      .add_option("--environments", opt.environments,
                  "Keep releases in this folder, for further searches")
      ->type_name("DIR")
      ->needs("--package");
}

}  // namespace

void add_bisect(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<BisectOptions>();
  CLI::App* command = app.add_subcommand(
      "bisect", "Find the first commit, or release of a package, whose run differs");
  describe(*command,
           {"-- CMD",
            {"opguard bisect v1.2 HEAD -- python train.py --steps 3",
             "opguard bisect v1.2..HEAD --setup 'pip install -t lib .' --jobs 4 -- python train.py",
             "opguard bisect --package transformers 4.38..4.48 -- python run.py"}});
  command->add_option("REVISION", opt->revisions, "GOOD BAD, or GOOD..BAD")
      ->required()
      ->expected(1, 2);
  command
      ->add_option("--repo", opt->repository,
                   "A folder in the repository; with --package the folder the program runs in [.]")
      ->type_name("DIR");
  add_release_options(*command, *opt);
  command->add_option("--with", opt->packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->allow_extra_args(false);
  add_source_options(*command, opt->sources);
  command
      ->add_option(
          "--setup", opt->setup,
          "Shell command, run in each exported commit first; one where it fails is skipped")
      ->type_name("CMD");
  command
      ->add_option("--link", opt->links,
                   "Link a file or folder that git does not keep into each commit; repeatable")
      ->type_name("PATH")
      ->allow_extra_args(false);
  command->add_option("--jobs", opt->jobs, "Try so many at once")
      ->type_name("N")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  command
      ->add_option("--steps", opt->steps,
                   "Trace only this many optimizer steps, 0: all [until nothing new comes]")
      ->type_name("N");
  command
      ->add_option("--work", opt->work,
                   "Keep logs and reports in this folder; a search that is there goes on")
      ->type_name("DIR");
  command->add_option("--templates", opt->templates, "Take operator templates from this folder")
      ->type_name("DIR");
  command->add_flag("--deterministic", opt->deterministic,
                    "Control seeds and kernels in all runs (opguard help determinism)");
  command->add_option("--seed", opt->seed, "Seed of --deterministic")->type_name("N");
  command
      ->add_option("--prove-runs", opt->prove_runs,
                   "Prove the operator of the first bad one by at most so many further runs")
      ->type_name("N")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  command->add_flag("!--no-name", opt->name,
                    "Do not run the first bad one against the one before it, to name the operator");
  command->add_option("--json", opt->report.json, "Write the result to this file as well")
      ->type_name("FILE");
  add_talk_options(*command);
  add_ignore_options(*command, opt->report);
  command->footer(
      "After --: the program, run in each commit. Exit codes: 0 found, 1 BAD does not differ, 2 "
      "could not tell.");
  command->callback([opt, command, &run] {
    opt->command = program_words(*command);
    run = [opt] { return bisect(*opt); };
  });
}

}  // namespace opguard
