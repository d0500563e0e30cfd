// What may stand in [tool.opguard], checked against the commands' own options.
//
//   [tool.opguard]
//   steps = 3                 every command that has --steps gets it
//   with = "transformers"     one string for a list of one
//   boundary = "a"            error: 'boundary' is of one run: give it on the command line
//   steps = "3"               error: 'steps' takes a whole number, not string
//
// All keys are checked before any option gets a value, those of other commands too. So a fault
// shows with the first command, and not weeks later with another. Counterexample: `json` in the
// general table. A second command would write over the first one's file.
#include "cli/settings.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/help_text.h"
#include "support/nearest.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// Tables in this table are its checks: certify/read_checks.h reads them.
constexpr std::string_view kNested = "certify.";

// Options of one run, one question or one machine: a repository has no standing value of them.
constexpr std::string_view kOfOneRun[] = {
    "all-sites",   "apply",       "boundary", "branch",  "capture", "check", "confirm",
    "dataset",     "drill",       "events",   "explain", "git",     "help",  "log",
    "merge",       "no-prove",    "observed", "only",    "output",  "pages", "part",
    "parts",       "phase",       "plan",     "python",  "rank",    "run-a", "run-b",
    "salvage",     "show-config", "single",   "static",  "step",    "strip", "trace-rank",
    "trace-steps", "transplant",  "upload",   "verify",  "version", "work"};

// What these mean depends on the command, or it is a file that a second command would write over.
constexpr std::string_view kOfOneCommand[] = {"format",   "html", "json", "limit",
                                              "perfetto", "runs", "sarif"};

template <size_t n>
bool among(const std::string_view (&names)[n], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Logs do not say how to run the programs again.
bool of_one_run(const CLI::App& command, const std::string& key) {
  return among(kOfOneRun, key) || (key == "prove-runs" && table_of(command) == "align");
}

const CLI::Option* named_option(const CLI::App& command, const std::string& key) {
  const CLI::Option* option = command.get_option_no_throw("--" + key);
  return option && !option->get_group().empty() ? option : nullptr;
}

// Whether a settings file may give the command this key.
bool has_key(const CLI::App& command, const std::string& key) {
  if (key == kCommandKey) return takes_program(command);
  return named_option(command, key) != nullptr && !of_one_run(command, key);
}

void add_keys(const CLI::App& command, std::vector<std::string>& keys) {
  if (takes_program(command)) keys.push_back(kCommandKey);
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      if (has_key(command, name)) keys.push_back(name);
}

std::vector<const CLI::App*> commands_of(const CLI::App& all) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : all.get_subcommands({})) commands.push_back(command);
  return commands;
}

// By what the help shows: no value is a flag, "N" a number.
SettingKind kind_of(const CLI::Option& option) {
  const OptionText text = text_of(option);
  if (text.value.empty()) return SettingKind::flag;
  if (text.repeatable) return SettingKind::list;
  return text.value == "N" ? SettingKind::number : SettingKind::text;
}

// What is wrong, at the key or at its value; nothing where the text is "".
struct Fault {
  std::string text;
  bool of_value = false;
};

// One string is a list of one.
Fault wrong_type(const CLI::App& command, const Setting& setting) {
  const bool program = setting.key == kCommandKey;
  const SettingKind wanted =
      program ? SettingKind::list : kind_of(*named_option(command, setting.key));
  const bool one = wanted == SettingKind::list && setting.kind == SettingKind::text;
  // No option takes a number below 0, and CLI11 reads "-4" as a very large one.
  if (wanted == SettingKind::number && setting.kind == wanted && setting.values[0].starts_with("-"))
    return {"'" + setting.key + "' is not below 0", true};
  if (setting.kind == wanted || one) return {};
  return {"'" + setting.key + "' takes " + told_type(wanted) +
              (program ? ", or a string for the shell" : "") + ", not " + setting.type,
          true};
}

// A key of the general table is checked by the first command that has it.
Fault wrong_general(const std::vector<const CLI::App*>& commands, const Setting& setting) {
  const CLI::App& has = **std::find_if(commands.begin(), commands.end(),
                                       [&](const CLI::App* c) { return has_key(*c, setting.key); });
  if (among(kOfOneCommand, setting.key))
    return {"'" + setting.key + "' is set in the table of a command, as " + table_of(has)};
  return wrong_type(has, setting);
}

// in: the commands whose options the setting's table may name.
// In this order: the name is known; it is known and of one run; it is unknown, with a nearest one.
Fault fault_of(const std::vector<const CLI::App*>& in, const Setting& setting) {
  std::vector<std::string> keys;
  for (const CLI::App* command : in) add_keys(*command, keys);
  const bool known = std::find(keys.begin(), keys.end(), setting.key) != keys.end();
  if (known)
    return setting.table.empty() ? wrong_general(in, setting) : wrong_type(*in[0], setting);
  for (const CLI::App* command : in)
    if (named_option(*command, setting.key) && of_one_run(*command, setting.key))
      return {"'" + setting.key + "' is of one run: give it on the command line"};
  const std::string who = setting.table.empty() ? "no command has" : setting.table + " has no";
  return {who + (setting.table.empty() ? " an option '" : " option '") + setting.key + "'" +
          did_you_mean(setting.key, keys)};
}

// The first fault of names and types.
std::optional<Diagnostic> first_fault(const CLI::App& all, const SettingsFile& file) {
  const auto commands = commands_of(all);
  std::vector<std::string> names;
  for (const CLI::App* command : commands)
    if (has_settings(*command)) names.push_back(command->get_name());
  for (const SettingTable& table : file.tables) {
    if (table.name.starts_with(kNested)) continue;
    if (const size_t dot = table.name.find('.'); dot != std::string::npos)
      return file.error_at(table.at, table.name.substr(0, dot) + " has no option '" +
                                         table.name.substr(dot + 1) + "'");
    if (std::find(names.begin(), names.end(), table.name) == names.end())
      return file.error_at(table.at, "no command '" + table.name + "' with settings" +
                                         did_you_mean(table.name, names));
  }
  for (const Setting& setting : file.settings) {
    if (setting.table.starts_with(kNested)) continue;
    std::vector<const CLI::App*> in = commands;
    if (!setting.table.empty())
      std::erase_if(in, [&](const CLI::App* c) { return c->get_name() != setting.table; });
    if (Fault fault = fault_of(in, setting); !fault.text.empty())
      return file.error_at(fault.of_value ? setting.value_at : setting.key_at,
                           std::move(fault.text));
  }
  return std::nullopt;
}

// Relative to the file's folder.
void put_folder(const OptionText& option, const std::string& folder, Setting& setting) {
  constexpr std::string_view kPaths[] = {"FILE", "DIR", "PATH", "TREE"};
  if (!among(kPaths, option.value)) return;
  for (std::string& value : setting.values)
    if (!value.empty() && value != "-")
      value = (fs::path(folder) / value).lexically_normal().string();
}

// "--color: blue not in {auto,always,never}" -> "blue not in {auto,always,never}"
std::string reason(const CLI::ParseError& error, const Setting& setting) {
  const std::string text = error.what(), name = "--" + setting.key + ": ";
  if (text.starts_with("Could not convert"))
    return "'" + setting.values.front() + "' is no value of '" + setting.key + "'";
  return "'" + setting.key + "': " + (text.starts_with(name) ? text.substr(name.size()) : text);
}

// The complaint, or "".
std::string set_option(CLI::Option& option, const Setting& setting) {
  if (setting.values.empty()) return "";
  std::string wrong;
  try {
    option.add_result(setting.values);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    wrong = reason(error, setting);
  }
  // Nothing of it counts as given: the command line is still to come.
  option.clear();
  return wrong;
}

// A string is for the shell, as `command = "cd src && python train.py"`.
std::vector<std::string> program_of(const Setting& setting) {
  if (setting.kind != SettingKind::text) return setting.values;
  return {"/bin/sh", "-c", setting.values.front()};
}

}  // namespace

std::string table_of(const CLI::App& command) {
  return command.get_parent() ? command.get_name() : "instrument";
}

bool takes_program(const CLI::App& command) {
  const std::string program = help_text_of(command).program;
  return program == "-- CMD" || program == "[-- CMD]";
}

bool has_settings(const CLI::App& command) {
  std::vector<std::string> keys;
  add_keys(command, keys);
  return !keys.empty();
}

AppliedSettings apply_settings(const CLI::App& all, CLI::App& command, const SettingsFile& file,
                               Diagnostics& diags) {
  AppliedSettings applied;
  if (auto fault = first_fault(all, file)) {
    diags.add(std::move(*fault));
    return applied;
  }
  for (const std::string& table : {std::string(), table_of(command)})
    for (const Setting& setting : file.settings)
      if (setting.table == table && has_key(command, setting.key))
        applied.values[setting.key] = setting;
  for (auto& [key, setting] : applied.values) {
    if (key == kCommandKey) {
      applied.program = program_of(setting);
      continue;
    }
    CLI::Option& option = *command.get_option("--" + key);
    put_folder(text_of(option), file.folder, setting);
    const std::string wrong = set_option(option, setting);
    if (wrong.empty()) continue;
    diags.add(file.error_at(setting.value_at, wrong));
    return {};
  }
  applied.file = file;
  return applied;
}

}  // namespace opguard
