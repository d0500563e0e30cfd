// One program with two names. `opguard-instrument ...` is `opguard instrument ...`.
//
// The second name has one command and no subcommands. Its settings file may still speak of the
// others, so all commands are declared beside it (`all`), and none of them is parsed.
//
// Counterexample: a program without an argv[0]. It is opguard.
#include "cli/program.h"

#include <string_view>

#include "cli/command.h"
#include "cli/help_text.h"
#include "support/version.h"

namespace opguard {
namespace {

void add_commands(CLI::App& app, Pipeline& run) {
  // In the order of a first use.
  add_diff(app, run);
  add_preflight(app, run);
  add_plan(app, run);
  add_match(app, run);
  add_instrument(app, run);
  add_run(app, run);
  add_align(app, run);
  add_bisect(app, run);
  add_noise(app, run);
  add_certify(app, run);
  add_record(app, run);
  add_replay(app, run);
  add_check(app, run);
  add_infer(app, run);
  add_prove(app, run);
  add_invariants(app, run);
  add_against(app, run);
  add_store(app, run);
  add_compare(app, run);
  add_digest(app, run);
  add_dump(app, run);
  add_export(app, run);
  add_doctor(app, run);
  add_help(app, run);
  add_completion(app, run);
  add_man(app, run);
}

int opguard_main(int argc, char** argv) {
  CLI::App app{"Names the first operator, in your own source, where two training runs part.",
               "opguard"};
  app.set_version_flag("--version", version_text(), "Print the version and the commit");
  app.require_subcommand(1);
  Pipeline run;
  add_commands(app, run);
  app.footer(
      "Exit codes: 0 the same or done, 1 a difference or an unmatched site, 2 could not tell.\n"
      "opguard COMMAND --help tells a command's options, opguard help lists the topics.");
  describe(app, {"", {"opguard diff good/ bad/ -- python train.py --steps 3"}});
  return run_app(app, run, argc, argv);
}

int opguard_instrument_main(int argc, char** argv) {
  CLI::App app{"Puts probes into the sources of a training program, as a git diff.",
               "opguard-instrument"};
  app.set_version_flag("--version", version_text(), "Print the version and the commit");
  Pipeline run;
  add_instrument_options(app, run);
  CLI::App all;
  Pipeline none;
  add_commands(all, none);
  return run_app(app, run, argc, argv, &all);
}

}  // namespace

int run_program(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "";
  return path.ends_with("opguard-instrument") ? opguard_instrument_main(argc, argv)
                                              : opguard_main(argc, argv);
}

}  // namespace opguard
