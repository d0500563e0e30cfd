// opguard doctor: two questions under one name, told apart by the last word behind `--`.
//
//   opguard doctor                           the first of python and python3: what works
//   opguard doctor -- .venv/bin/python       this interpreter: what works
//   opguard doctor -- python train.py        this program: what holds its determinism
//
// The other options are of a program; they mean nothing to an interpreter, and are not refused.
#include "session/doctor.h"

#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "session/doctor_program.h"

namespace opguard {

void add_doctor(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<DoctorProgramOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Tell what works here, or what holds a program's determinism and what does not");
  describe(*command, {"[-- PYTHON | CMD]",
                      {"opguard doctor -- .venv/bin/python", "opguard doctor -- python train.py"}});
  command->add_option("--steps", opt->steps, "Observe so many optimizer steps, 0: all")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--with", opt->packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->allow_extra_args(false);
  command->add_flag("--once", opt->once,
                    "Run the program once: no search for operators, no comparison of two runs");
  CLI::Option* deterministic =
      command->add_flag("--deterministic", opt->deterministic,
                        "Observe it under opguard's control (opguard help determinism)");
  command->add_option("--seed", opt->seed, "Seed of --deterministic [0]")
      ->type_name("N")
      ->needs(deterministic);
  command->add_option("--json", opt->json, "Write the findings to this file (opguard help json)")
      ->type_name("FILE");
  command->add_option("--work", opt->work, "Keep facts and outputs in this new folder")
      ->type_name("DIR");
  add_talk_options(*command);
  command->footer(
      "After --: an interpreter, to be asked what works [python]; or a training program, to be run "
      "for a few steps.\n"
      "Exits with 0 if nothing is violated, 1 if something is, 2 if the program fails.");
  command->callback([opt, &run] {
    opt->command = program_words();
    run = [opt] {
      return names_interpreter(opt->command) ? doctor({opt->command}) : doctor_program(*opt);
    };
  });
}

}  // namespace opguard
