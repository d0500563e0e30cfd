#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "session/doctor.h"

namespace opguard {

void add_doctor(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Tell what works here: interpreter, torch, extension, CUDA, compilers");
  describe(*command, {"[-- PYTHON]", {"opguard doctor -- .venv/bin/python"}});
  command->footer("After --: the interpreter of your program [python].");
  command->callback([opt, &run] {
    opt->python = program_words();
    run = [opt] { return doctor(*opt); };
  });
}

}  // namespace opguard
