// opguard record, opguard against, opguard store: three commands about kept runs.
//
//   opguard record good -- python train.py        keeps it
//   opguard against good                          compares today's tree with it
//   opguard store gc --keep-size 10G              removes what has no name
//
// Limits are of `record` and of `store gc`. A run with a name is never removed by either, whatever
// they say.
#include "session/keep_named.h"

#include <map>
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "cli/store_options.h"

namespace opguard {
namespace {

constexpr uint64_t kDaySeconds = 24 * 3600;
constexpr uint64_t kKeepDays = 30;  // runs without a name
// Of `against`. The kept program is not run again, so no run goes to writing its values.
constexpr uint32_t kProveByText = 4;

// What a program is and where, alike for `record` and `against`.
template <typename Options>
void add_program_options(CLI::App& command, Options& opt) {
  command.add_option("NAME", opt.name, "What the run is called")->required();
  command.add_option("--tree", opt.tree, "Folder of the program's source; CMD runs in it [.]")
      ->type_name("DIR");
  command.add_option("--with", opt.packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->allow_extra_args(false);
  add_source_options(command, opt.sources);
  command
      .add_option("--steps", opt.steps,
                  "Trace only this many optimizer steps, 0: all [until nothing new comes]")
      ->type_name("N");
  command.add_option("--templates", opt.templates, "Take operator templates from this folder")
      ->type_name("DIR");
  add_store_option(command, opt.store);
}

}  // namespace

void add_store_option(CLI::App& command, StoreOptions& options) {
  command
      .add_option("--store", options.folder,
                  "Keep runs in this folder [the nearest .opguard at or above the tree]")
      ->type_name("DIR");
}

// --keep-age is in days, StoreLimits::age_s in seconds; 0 of either means never.
void add_limit_options(CLI::App& command, StoreOptions& options) {
  options.limits.age_s = kKeepDays * kDaySeconds;
  command
      .add_option("--keep-size", options.limits.bytes,
                  "Remove runs without a name, the longest unused first, until the store is so "
                  "large: 10G [no limit]")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  command
      .add_option_function<uint64_t>(
          "--keep-age", [&options](uint64_t days) { options.limits.age_s = days * kDaySeconds; },
          "Remove runs without a name that were not used for so many days, 0: never [30]")
      ->type_name("DAYS");
}

void add_record(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<KeepNamedOptions>();
  CLI::App* command =
      app.add_subcommand("record", "Record a good run once and keep it under a name");
  describe(*command, {"-- CMD", {"opguard record good -- python train.py --steps 3"}});
  add_program_options(*command, *opt);
  command->add_flag("--deterministic", opt->deterministic,
                    "Control seeds and kernels, of this run and of those compared with it");
  command->add_option("--seed", opt->seed, "Seed of --deterministic")->type_name("N");
  add_limit_options(*command, opt->store);
  add_talk_options(*command);
  command->footer("After --: the program, run in the tree.");
  command->callback([opt, command, &run] {
    opt->command = program_words(*command);
    run = [opt] { return keep_named(*opt); };
  });
}

void add_against(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<AgainstOptions>();
  opt->prove_runs = kProveByText;
  CLI::App* command =
      app.add_subcommand("against", "Compare the tree as it is now with a run that was kept");
  describe(*command,
           {"[-- CMD]", {"opguard against good", "opguard against good -- python train.py"}});
  add_program_options(*command, *opt);
  command
      ->add_option("--prove-runs", opt->prove_runs,
                   "Prove the cause by at most so many runs with the kept text, 0: none")
      ->type_name("N")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  command->add_option("--work", opt->work, "Keep logs, plans and outputs in this new folder")
      ->type_name("DIR");
  add_talk_options(*command);
  add_report_options(*command, opt->report);
  add_rule_options(*command, opt->report);
  command->footer("After --: the program, run in the tree [the command of the kept run].");
  command->callback([opt, &run] {
    opt->command = program_words();
    run = [opt] { return compare_with_named(*opt); };
  });
}

void add_store(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<StoreCommand>();
  auto action = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("store", "List kept runs, take names away, free space");
  describe(*command, {"",
                      {"opguard store ls", "opguard store gc --keep-size 10G",
                       "opguard align \"$(opguard store path good)\" logs/other"}});
  static const std::map<std::string, StoreAction> actions = {{"ls", StoreAction::list},
                                                             {"gc", StoreAction::collect},
                                                             {"rm", StoreAction::remove},
                                                             {"path", StoreAction::path}};
  command
      ->add_option("ACTION", *action,
                   "ls: every run; gc: remove what has no name; rm NAME: take a name away; path "
                   "NAME: print the folder of its logs")
      ->required()
      ->check(CLI::IsMember({"ls", "gc", "rm", "path"}));
  command->add_option("NAME", opt->name, "Of rm and path");
  add_store_option(*command, opt->store);
  add_limit_options(*command, opt->store);
  command->add_flag("--dry-run", opt->dry, "With gc: say what would be removed");
  command->add_option("--json", opt->json, "With ls: write the runs to this file as JSON")
      ->type_name("FILE");
  command->callback([opt, action, &run] {
    opt->action = actions.at(*action);
    const bool named = opt->action == StoreAction::remove || opt->action == StoreAction::path;
    if (named == opt->name.empty())
      throw CLI::ValidationError(
          "ACTION", named ? *action + " needs the name of a run" : *action + " takes no name");
    run = [opt] { return run_store_command(*opt); };
  });
}

}  // namespace opguard
