// `record` and `against` are the two halves of a comparison in time:
//
//   record good     a survey, a guarded run, moved into .opguard/runs under that name
//   against good    the same of today's tree by the plan of `good`, then compare_with_kept()
//
// The store is opened before the program is run: a folder that cannot be written would be found out
// after its minutes are spent. What ran too long ago and has no name is collected behind each
// `record`.
//
// Counterexample: a program that fails under `record`. Its run is kept as far as it came, and the
// exit code says that nothing can be told by it.
#include "session/keep_named.h"

#include <cstdio>
#include <ctime>

#include "nlohmann/json.hpp"
#include "preflight/control.h"
#include "report/identity.h"
#include "report/reasons.h"
#include "session/compare_kept.h"
#include "session/kept_run.h"
#include "session/side_trees.h"
#include "session/work_folder.h"
#include "support/exit_code.h"
#include "support/kept_input.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

constexpr size_t kShownId = 12;

// "812 B", "3.4 MB".
std::string size_text(uint64_t bytes) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  double size = double(bytes);
  size_t unit = 0;
  for (; size >= 1000 && unit < 4; ++unit) size /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
  return text;
}

// "3 days ago".
std::string age_text(int64_t then_s) {
  const int64_t age = std::max<int64_t>(0, int64_t(std::time(nullptr)) - then_s);
  if (age < 60) return "now";
  if (age < 3600) return counted(uint64_t(age / 60), "minute") + " ago";
  if (age < 86400) return counted(uint64_t(age / 3600), "hour") + " ago";
  return counted(uint64_t(age / 86400), "day") + " ago";
}

std::string program_text(const KeptRun& kept) { return quote(kept.command); }

// "v1 (9488786f21ab+)": what git knew.
std::string commit_text(const KeptRun& kept) {
  return kept.commit.empty() ? "" : kept.commit.substr(0, kShownId) + (kept.changed ? "+" : "");
}

void say_collected(const Collected& collected, bool dry) {
  if (collected.removed.empty() && collected.left_over == 0) return;
  uint64_t bytes = 0;
  for (const StoredRun& run : collected.removed) bytes += run.bytes;
  say(std::string(dry ? "would remove " : "removed ") + counted(collected.removed.size(), "run") +
      " without a name, " + size_text(bytes));
}

// The absolute tree; `{tree}` in the command's words becomes it.
llvm::Expected<std::string> tree_to_run(const std::string& tree,
                                        std::vector<std::string>& command) {
  auto found = canonical_tree(tree);
  if (!found) return found;
  for (std::string& word : command) word = replace_tree(word, *found);
  return found;
}

// kYes: kept. kCouldNotTell: kept, and the program had failed.
llvm::Expected<int> keep_in(const KeepNamedOptions& opt, const std::string& work) {
  if (!is_run_name(opt.name))
    return make_error("'" + opt.name +
                      "' is no name for a run: letters, digits, '.', '_' and '-', a letter or "
                      "digit first");
  std::vector<std::string> command = opt.command;
  auto tree = tree_to_run(opt.tree, command);
  if (!tree) return tree.takeError();
  // Before the program's minutes are spent.
  auto store = RunStore::make(RunStore::find_folder(*tree, opt.store.folder));
  if (!store) return store.takeError();
  Diagnostics diags;
  auto templates = find_templates(opt.templates, diags);
  if (!templates) return templates.takeError();
  SideRequest request{.name = opt.name,
                      .tree = *tree,
                      .command = command,
                      .packages = opt.packages,
                      .sources = opt.sources,
                      .steps = opt.steps,
                      .work = work,
                      .provenance = provenance_of(*tree)};
  if (opt.deterministic) request.environment = control_environment(opt.seed);
  auto recorded = record_side(request, *templates, diags);
  print_diagnostics(diags.text());
  if (!recorded) return recorded.takeError();
  auto folder = store->begin();
  if (!folder) return folder.takeError();
  KeepOptions keep{*folder, opt.name, {}};
  if (opt.deterministic) keep.seed = opt.seed;
  if (auto failed = keep_run(*recorded, keep)) return failed;
  auto id = store->add(*folder, opt.name);
  if (!id) return id.takeError();
  auto collected = store->collect(opt.store.limits, /*dry=*/false);
  if (!collected) return collected.takeError();
  say_collected(*collected, false);
  say("kept as " + opt.name + " (" + id->substr(0, kShownId) + ") in " + store->folder());
  say("next: opguard against " + opt.name + " -- " + quote(opt.command));
  return recorded->failure.empty() ? kYes : kCouldNotTell;
}

// What was recorded under determinism control is compared under it.
void take_control(const KeptRun& kept, SideRequest& request) {
  if (!kept.seed) return;
  request.environment = control_environment(*kept.seed);
  say_step("note: '" + kept.name + "' was recorded with --deterministic, seed " +
           std::to_string(*kept.seed) + "; so is this run");
}

// Rules are read first and again behind the run: a fault in them costs no run.
llvm::Expected<int> compare_in(AgainstOptions opt, const std::string& work) {
  if (auto rules = read_rules(opt.report); !rules) return rules.takeError();
  std::vector<std::string> command = opt.command;
  auto tree = tree_to_run(opt.tree, command);
  if (!tree) return tree.takeError();
  auto store = RunStore::open(RunStore::find_folder(*tree, opt.store.folder));
  if (!store) return store.takeError();
  auto stored = store->find(opt.name);
  if (!stored) return stored.takeError();
  auto kept = read_kept_run(stored->folder);
  if (!kept) return kept.takeError();
  Diagnostics diags;
  auto plan = read_plan(kept->plan_path(), diags);
  if (!plan) return plan.takeError();
  auto templates = find_templates(opt.templates, diags);
  if (!templates) return templates.takeError();
  SideRequest request{.name = "b",
                      .tree = *tree,
                      .command = command.empty() ? kept->command : command,
                      .packages = kept->packages,
                      .sources = opt.sources,
                      .steps = opt.steps,
                      .work = work + "/run_b",
                      .provenance = provenance_of(*tree)};
  for (const std::string& package : opt.packages) request.packages.push_back(package);
  take_control(*kept, request);
  auto recorded = record_side(request, *templates, diags, &*plan);
  print_diagnostics(diags.text());
  if (!recorded) return recorded.takeError();
  say_step(std::to_string(recorded->shared) + " of " + std::to_string(plan->boundaries.size()) +
           " boundaries of '" + kept->name + "' found again");
  auto compared =
      compare_with_kept(*kept, *plan, *recorded, *templates, opt.prove_runs, opt.report);
  if (!compared) return compared.takeError();
  return show_compared(**compared, opt.report);
}

// A damaged run is listed with what is wrong of it: to hide it would hide its bytes.
llvm::Expected<int> list_runs(const RunStore& store, const std::string& json_file) {
  auto runs = store.list();
  if (!runs) return runs.takeError();
  nlohmann::ordered_json json = identity_json(identity_now());
  json["store"] = store.folder();
  json["runs"] = nlohmann::ordered_json::array();
  std::string text;
  for (const StoredRun& run : *runs) {
    auto kept = read_kept_run(run.folder);
    const std::string damage = kept ? "" : llvm::toString(kept.takeError());
    std::string names;
    for (const std::string& name : run.names) names += (names.empty() ? "" : ", ") + name;
    const std::string program = damage.empty() ? program_text(*kept) : "damaged: " + damage;
    const std::string commit = damage.empty() ? commit_text(*kept) : "";
    char line[256];
    std::snprintf(line, sizeof line, "%-16s %.12s %10s  %-14s %-13s  ",
                  names.empty() ? "-" : names.c_str(), run.id.c_str(), size_text(run.bytes).c_str(),
                  age_text(run.used_s).c_str(), commit.c_str());
    text += line + shown(program) + "\n";
    json["runs"].push_back({{"id", run.id},
                            {"names", run.names},
                            {"bytes", run.bytes},
                            {"used", run.used_s},
                            {"commit", commit},
                            {"program", damage.empty() ? program : ""},
                            {"damage", damage}});
  }
  if (!json_file.empty())
    if (auto failed = write_file(
            json_file, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"))
      return failed;
  print_lines(text.empty() ? "no run is kept in " + store.folder() : text);
  return kYes;
}

llvm::Expected<int> do_store(const StoreCommand& opt) {
  auto store = RunStore::open(RunStore::find_folder(".", opt.store.folder));
  if (!store) return store.takeError();
  switch (opt.action) {
    case StoreAction::list:
      return list_runs(*store, opt.json);
    case StoreAction::remove:
      if (auto failed = store->remove_name(opt.name)) return failed;
      say("'" + opt.name + "' names nothing any more; opguard store gc frees its space");
      return kYes;
    case StoreAction::path: {
      auto found = store->find(opt.name);
      if (!found) return found.takeError();
      print_lines(found->folder + "/log");
      return kYes;
    }
    case StoreAction::collect:
      break;
  }
  auto collected = store->collect(opt.store.limits, opt.dry);
  if (!collected) return collected.takeError();
  say_collected(*collected, opt.dry);
  say("kept: " + size_text(collected->bytes) + " in " + store->folder());
  if (opt.store.limits.bytes > 0 && collected->bytes > opt.store.limits.bytes)
    say("note: what is left has names or was used in the last hour; opguard store rm NAME takes "
        "a name away");
  return kYes;
}

}  // namespace

int keep_named(const KeepNamedOptions& opt) {
  keep_input();
  return work_in("", "", [&](const std::string& work) { return keep_in(opt, work); });
}

int compare_with_named(AgainstOptions opt) {
  keep_input();
  return work_in(opt.work, "logs, plans and outputs",
                 [&](const std::string& work) { return compare_in(opt, work); });
}

int run_store_command(const StoreCommand& opt) {
  auto code = do_store(opt);
  return code ? *code : fail(llvm::toString(code.takeError()));
}

}  // namespace opguard
