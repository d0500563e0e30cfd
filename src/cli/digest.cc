// opguard digest: one run in one number, or the first step in which two runs part.
//
//   opguard digest run_a --step 37       tell the number to whoever has run_b
//   opguard digest run_a run_b           both are here: which step, and what of it
//
// --step is of one run. With two, the step is what is looked for.
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "session/digest.h"
#include "support/url.h"

namespace opguard {

void add_digest(CLI::App& app, Pipeline& run) {
  auto options = std::make_shared<DigestOptions>();
  CLI::App* command = app.add_subcommand(
      "digest", "Say a run in one number, or in which step two runs part, without their events");
  describe(*command,
           {"", {"opguard digest run_a/log --step 37", "opguard digest run_a/log run_b/log"}});
  command
      ->add_option("DIR", options->dir_a,
                   "Log folder; or s3://, gs://, hdfs:// (opguard help objectstorage)")
      ->required();
  CLI::Option* other = command->add_option("DIR_B", options->dir_b,
                                           "Log folder of a second run: where do the two part?");
  command
      ->add_option(
          "--step", options->last_step,
          "Of the steps up to this one alone: two who tell each other the numbers find the "
          "step in which their runs part, and no log is sent")
      ->type_name("N")
      // Nine digits at most, so that the number fits; CLI11 alone would take "-1" for a very large
      // one.
      ->check([](const std::string& text) {
        const bool is_number =
            text.find_first_not_of("0123456789") == text.npos && text.size() < 10;
        return is_number ? "" : "not a step: " + text;
      })
      ->excludes(other);
  add_helper_python(*command, options->python,
                    "Interpreter that reaches object storage: with pyarrow [python3]",
                    "logs in object storage",
                    [options] { return is_url(options->dir_a) || is_url(options->dir_b); });
  command->add_option("--json", options->json, "Write the digests as JSON")->type_name("FILE");
  command->footer(
      "Exits with 0; of two runs with 1 where they differ. 2: a log has no digests or has lost "
      "records, or of two runs one is not closed. One run may still be going on.");
  command->callback([options, &run] { run = [options] { return digest_logs(*options); }; });
}

}  // namespace opguard
