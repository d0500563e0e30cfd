// opguard: names the first operator, in the user's own source, where two training runs part.
#include <algorithm>
#include <string>
#include <string_view>

#include "cli/command.h"

#ifndef OPGUARD_VERSION
#define OPGUARD_VERSION "unknown"
#endif

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
  add_dump(app, run);
  add_doctor(app, run);
  int own = int(std::find(argv, argv + argc, std::string_view("--")) - argv);
  if (own < argc && argc > 1 && std::string_view(argv[1]) == "diff") {
    set_program_words({argv + own + 1, argv + argc});
    argc = own;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    int code = app.exit(e);
    return code == 0 ? kYes : kCouldNotTell;
  }
  return run ? run() : kCouldNotTell;
}
