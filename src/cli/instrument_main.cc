// opguard-instrument: `opguard instrument` as a program of its own.
#include "cli/command.h"

#ifndef OPGUARD_VERSION
#define OPGUARD_VERSION "unknown"
#endif

int main(int argc, char** argv) {
  using namespace opguard;
  CLI::App app{"Puts probes into the sources of a training program, as a git diff."};
  app.set_version_flag("--version", "opguard " OPGUARD_VERSION);
  Pipeline run;
  add_instrument_options(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    int code = app.exit(e);
    return code == 0 ? kYes : kCouldNotTell;
  }
  return run ? run() : kCouldNotTell;
}
