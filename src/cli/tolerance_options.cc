// Everything but the flag itself needs the flag (needs): a factor without --tolerance would be
// silently without effect.
#include "cli/tolerance_options.h"

#include <string>

#include "cli/command.h"
#include "support/say.h"

namespace opguard {
namespace {

CLI::Option* add_flag(CLI::App& command, bool& on) {
  return command
      .add_flag("--tolerance", on,
                "Compare within the rounding that side a itself shows: other layouts, types, "
                "kernels (opguard help tolerance)")
      ->group("Tolerance");
}

void add_factor(CLI::App& command, CLI::Option* on, ToleranceOptions& options) {
  command
      .add_option("--factor", options.factor,
                  "Allow so many times what the jitter did to a tensor [4]")
      ->type_name("C")
      ->needs(on)
      ->group("Tolerance")
      ->check(CLI::PositiveNumber);
}

}  // namespace

void add_tolerance_options(CLI::App& command, ToleranceRuns& runs) {
  CLI::Option* on = add_flag(command, runs.on);
  command.add_option("--perturb", runs.perturb, "Runs of a with jittered rounding [1]")
      ->type_name("N")
      ->needs(on)
      ->group("Tolerance")
      ->check(CLI::Range(1, 64));
  command.add_option("--jitter-seed", runs.seed, "Seed of the jitter, plus the run's number [0]")
      ->type_name("N")
      ->needs(on)
      ->group("Tolerance");
  command
      .add_flag("--isolate", runs.isolate,
                "Put the reference's values into the candidate: every independent fault, by two "
                "more runs (opguard help tolerance)")
      ->needs(on)
      ->group("Tolerance");
  add_factor(command, on, runs.options);
}

void add_tolerance_options(CLI::App& command, ToleranceRead& read) {
  CLI::Option* on = add_flag(command, read.on);
  command
      .add_option("--noise", read.noise, "Log folder of run a recorded with --jitter; repeatable")
      ->type_name("DIR")
      ->needs(on)
      ->group("Tolerance")
      ->allow_extra_args(false)
      ->check(folder_or_url_fault);
  add_factor(command, on, read.options);
}

// On the command line alone: count() is 0 for what a settings file says.
void note_unused(const CLI::App& command, const std::string& beside,
                 std::initializer_list<const char*> options) {
  std::string unused;
  for (const char* name : options) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0)
      unused += (unused.empty() ? "" : ", ") + std::string(name);
  }
  if (!unused.empty()) say("note: beside " + beside + " these mean nothing: " + unused);
}

void note_unused_by_tolerance(const CLI::App& command) {
  note_unused(command, "--tolerance",
              {"--ignore", "--ignore-file", "--strict", "--without", "--prove-runs", "--drill"});
}

}  // namespace opguard
