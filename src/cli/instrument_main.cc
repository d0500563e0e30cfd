// opguard-instrument: `opguard instrument` as a program of its own.
#include "cli/command.h"

int main(int argc, char** argv) {
  using namespace opguard;
  CLI::App app{"Puts probes into the sources of a training program, as a git diff."};
  app.set_version_flag("--version", "opguard " OPGUARD_VERSION);
  Pipeline run;
  add_instrument_options(app, run);
  return run_app(app, run, argc, argv);
}
