#include "cli/tolerance_options.h"

namespace opguard {

void add_tolerance_options(CLI::App& command, ToleranceRuns& runs) {
  CLI::Option* on =
      command
          .add_flag("--tolerance", runs.on,
                    "Compare within the rounding that side a itself shows: other layouts, types, "
                    "kernels (opguard help tolerance)")
          ->group("Tolerance");
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
      .add_option("--factor", runs.options.factor,
                  "Allow so many times what the jitter did to a tensor [4]")
      ->type_name("C")
      ->needs(on)
      ->group("Tolerance")
      ->check(CLI::PositiveNumber);
}

}  // namespace opguard
