// opguard: names the first operator, in the user's own source, where two training runs part.
#include "cli/command.h"

int main(int argc, char** argv) {
  using namespace opguard;
  CLI::App app{"Names the first operator, in your own source, where two training runs part."};
  app.set_version_flag("--version", "opguard " OPGUARD_VERSION);
  app.require_subcommand(1);
  Pipeline run;
  // In the order of a first use.
  add_diff(app, run);
  add_preflight(app, run);
  add_plan(app, run);
  add_match(app, run);
  add_instrument(app, run);
  add_run(app, run);
  add_align(app, run);
  add_noise(app, run);
  add_compare(app, run);
  add_dump(app, run);
  add_export(app, run);
  add_doctor(app, run);
  return run_app(app, run, argc, argv);
}
