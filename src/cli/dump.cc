// opguard dump: what is printed is chosen by its kind (a log, a folder, a plan, traces), and then
// by options that only logs have.
//
//   opguard dump run_a/log --boundary 'train.*' --step 0-2 --rank 1
//   opguard dump run_a/log --format csv --events --limit 100
//
// Numbers are read from text here. Trap: a check of CLI11 is where --step and --limit are stored,
// since a check can complain in its own words.
//
// Counterexample: --step 3..5, as `run --steps` has it. Here a range is 3-5.
#include <algorithm>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "record/log_words.h"
#include "session/dump_files.h"
#include "support/url.h"

namespace opguard {
namespace {

// Digits only: what else strtoul takes (signs, spaces) is a slip. False: none, or too large.
bool read_number(const std::string& text, uint32_t& number) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    return false;
  number = static_cast<uint32_t>(std::stoul(text));
  return true;
}

// "3" or "3-5". The complaint, or "".
std::string read_steps(const std::string& text, EventSelection& selection) {
  const size_t dash = text.find('-');
  uint32_t first = 0, last = 0;
  if (!read_number(text.substr(0, dash), first) ||
      !read_number(dash == std::string::npos ? text : text.substr(dash + 1), last) || last < first)
    return "not a step or steps, as 3 or 3-5: " + text;
  selection.steps = {first, last};
  return "";
}

std::string read_limit(const std::string& text, uint64_t& limit) {
  uint32_t number = 0;
  if (!read_number(text, number)) return "not a number: " + text;
  limit = number;
  return "";
}

}  // namespace

void add_dump(CLI::App& app, Pipeline& run) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* command = app.add_subcommand(
      "dump", "Print a log, a folder of logs, a plan, traces or an alignment as text");
  describe(*command, {"",
                      {"opguard dump run_a/log --boundary 'train.*' --step 0-2",
                       "opguard dump run_a/log --format csv"}});
  command
      ->add_option("FILE", options->path,
                   "Log, folder of logs or traces, or plan; logs may be a URL "
                   "(opguard help objectstorage)")
      ->required();
  command->add_option("DIR_B", options->other,
                      "Second folder of logs: how the events of the two are paired");
  command->add_flag("--salvage", options->salvage,
                    "Read one damaged log on behind the damage; what is missing shows as a gap");
  command
      ->add_option("--boundary", options->selection.boundaries,
                   "Print only events of this boundary (* and ? match), "
                   "as ID[@OCCURRENCE][,KEY=VALUE...]; repeatable")
      ->check(event_selection_fault)
      ->type_name("ID")
      ->expected(1)
      ->take_all();
  command->add_option("--step", options->steps, "Print only events of this step, or of steps N-M")
      ->type_name("N[-M]")
      ->check([options](const std::string& text) { return read_steps(text, options->selection); });
  command
      ->add_option("--rank", options->selection.ranks, "Print only events of this rank; repeatable")
      ->type_name("N")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--phase", options->phases,
                   "Print only events of forward, recompute, backward or optimizer; repeatable")
      ->check(CLI::IsMember(std::vector<std::string>(kPhaseNames.begin(), kPhaseNames.end())))
      ->type_name("PHASE")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--observed", options->selection.observed,
                   "Print only observations of this kind (* and ? match), and no events")
      ->type_name("KIND");
  command
      ->add_option("--limit", options->limit_text,
                   "Print at most so many events and observations of text, or lines of the others")
      ->type_name("N")
      ->check([options](const std::string& text) { return read_limit(text, options->limit); });
  command
      ->add_option("--format", options->format,
                   "Print as text, as JSON (an object a line) or as CSV")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->type_name("FORMAT");
  add_helper_python(*command, options->python,
                    "Interpreter that reaches object storage: with pyarrow [python3]",
                    "logs in object storage",
                    [options] { return is_url(options->path) || is_url(options->other); });
  command->add_flag("--events", options->events,
                    "With json and csv: a line an event, not a record");
  command->footer("Exits with 0; of a damaged log with 2, and with 1 where --salvage has read on.");
  command->callback([options, &run] {
    if (options->events && options->format == "text")
      throw CLI::ValidationError("--events",
                                 "needs --format json or csv: text shows events and their records");
    for (const std::string& name : options->phases)
      options->selection.phases.push_back(static_cast<Phase>(
          std::find(kPhaseNames.begin(), kPhaseNames.end(), name) - kPhaseNames.begin()));
    run = [options] {
      return options->other.empty() ? dump_path(*options) : dump_alignment(*options);
    };
  });
}

}  // namespace opguard
