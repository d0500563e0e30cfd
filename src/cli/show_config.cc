// Asks each option once where its value comes from, in the order in which one replaces another.
//
//   on the command line?     as CLI11 counts it
//   in the settings file?    as settings.h applied it, with line and column
//   else                     what the help says in brackets, "[until nothing new comes]"; without
//                            brackets what the option's variable holds
//
// Counterexample: to print the variables after the parse. They do not tell a default from the same
// value that was given, and "until nothing new comes" is a very large number there.
#include "cli/show_config.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/help_text.h"
#include "nlohmann/json.hpp"
#include "report/identity.h"
#include "support/exit_code.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// Variables that no option sets, and that change what a command does.
constexpr const char* kVariables[] = {"OPGUARD_DEVICE_PLUGIN", "OPGUARD_DEVICE_WAIT"};

enum class ValueOrigin : uint8_t { built_in, file, environment, command_line };

struct Shown {
  std::string name;  // "--with"; "command"
  Json value;        // null: none
  ValueOrigin origin = ValueOrigin::built_in;
  const Setting* setting = nullptr;
  std::string variable;  // of the environment
};

// "3" is a number; "20GB" and what has more than 18 digits stay words.
Json number_or_words(const std::string& text) {
  const bool digits = !text.empty() && text.size() < 19 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? Json(std::stoull(text)) : Json(text);
}

// A flag is true where it was given, unless as --flag=false.
Json as_value(const OptionText& option, const std::vector<std::string>& values) {
  if (option.value.empty()) return !values.empty() && values.back() != "false";
  if (option.repeatable) return values;
  if (values.empty()) return nullptr;
  return option.value == "N" ? number_or_words(values.back()) : Json(values.back());
}

// "Trace only this many optimizer steps, 0: all [until nothing new comes]": what stands in
// brackets.
std::string told_default(const std::string& text) {
  const size_t open = text.rfind('[');
  if (open == std::string::npos || !text.ends_with(']')) return "";
  return text.substr(open + 1, text.size() - open - 2);
}

// Where nothing is given, the option's variable holds what is built in.
Json built_in(CLI::Option& option, const OptionText& text) {
  if (text.value.empty()) return false;
  if (text.repeatable) return Json::array();
  std::string value = told_default(text.text);
  if (value.empty()) {
    option.capture_default_str();
    value = option.get_default_str();
  }
  if (value.empty()) return nullptr;
  return text.value == "N" ? number_or_words(value) : Json(value);
}

// count() is of the command line alone: what a settings file gave was cleared behind its callback.
Shown shown_option(CLI::Option& option, const AppliedSettings& settings) {
  const OptionText text = text_of(option);
  Shown shown;
  shown.name = text.names.back();
  const auto set = settings.values.find(shown.name.substr(2));
  if (option.count() > 0) {
    shown.value = as_value(text, option.results());
    shown.origin = ValueOrigin::command_line;
  } else if (set != settings.values.end()) {
    shown.value = as_value(text, set->second.values);
    shown.origin = ValueOrigin::file;
    shown.setting = &set->second;
  } else {
    shown.value = built_in(option, text);
  }
  const char* no_color = std::getenv("NO_COLOR");
  if (shown.name == "--color" && shown.value == "auto" && no_color && *no_color) {
    shown.value = "never";
    shown.origin = ValueOrigin::environment;
    shown.variable = "NO_COLOR";
  }
  return shown;
}

// The program first, then the options in the order of the help, then the environment's variables.
std::vector<Shown> everything(CLI::App& command, const AppliedSettings& settings,
                              const std::vector<std::string>& program) {
  std::vector<Shown> all;
  if (takes_program(command)) {
    Shown shown;
    shown.name = kCommandKey;
    const auto set = settings.values.find(kCommandKey);
    if (!program.empty()) {
      shown.value = program;
      shown.origin = ValueOrigin::command_line;
    } else if (set != settings.values.end()) {
      shown.value = set->second.kind == SettingKind::text ? Json(set->second.values.front())
                                                          : Json(set->second.values);
      shown.origin = ValueOrigin::file;
      shown.setting = &set->second;
    }
    all.push_back(std::move(shown));
  }
  for (CLI::Option* option : command.get_options({})) {
    const bool named = option->nonpositional() && !option->get_lnames().empty();
    if (!named || option->get_group().empty() || option == command.get_help_ptr()) continue;
    if (option->get_name() != kShowConfig) all.push_back(shown_option(*option, settings));
  }
  for (const char* name : kVariables)
    if (const char* value = std::getenv(name); value && *value)
      all.push_back({name, value, ValueOrigin::environment, nullptr, name});
  return all;
}

// "-" for nothing; a list as a, b; the program as a shell would take it.
std::string value_text(const Shown& shown) {
  if (shown.value.is_null() || (shown.value.is_array() && shown.value.empty())) return "-";
  if (shown.value.is_string()) return shown.value;
  if (!shown.value.is_array()) return shown.value.dump();
  const auto words = shown.value.get<std::vector<std::string>>();
  if (shown.name == kCommandKey) return quote(words);
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

//   pyproject.toml:3:1, as compilers say it
std::string origin_text(const Shown& shown, const AppliedSettings& settings) {
  switch (shown.origin) {
    case ValueOrigin::built_in:
      return "default";
    case ValueOrigin::file:
      return settings.file->name + ":" + std::to_string(shown.setting->key_at.line) + ":" +
             std::to_string(shown.setting->key_at.column);
    case ValueOrigin::environment:
      return "environment: " + shown.variable;
    case ValueOrigin::command_line:
      return "command line";
  }
  return "";
}

// Three columns. A value wider than kWidest moves its own origin and no other line's.
std::string as_text(const std::vector<Shown>& all, const AppliedSettings& settings) {
  constexpr size_t kWidest = 40;  // beyond it a value pushes its origin to the right
  size_t names = 0, values = 0;
  for (const Shown& shown : all) {
    names = std::max(names, shown.name.size());
    values = std::max(values, std::min(kWidest, value_text(shown).size()));
  }
  std::string out;
  for (const Shown& each : all) {
    std::string line = each.name + std::string(names - each.name.size() + 2, ' ');
    const std::string value = shown(value_text(each));
    line += value + std::string(value.size() < values ? values - value.size() + 2 : 2, ' ');
    out += line + shown(origin_text(each, settings)) + "\n";
  }
  return out;
}

// `from` is one of four words; file, line and column only where a settings file says it.
std::string as_json(const std::vector<Shown>& all, const AppliedSettings& settings) {
  constexpr const char* kOrigins[] = {"default", "file", "environment", "command line"};
  Json json = identity_json(identity_now());
  json["options"] = Json::array();
  for (const Shown& shown : all) {
    const std::string name = shown.name.starts_with("--") ? shown.name.substr(2) : shown.name;
    Json option = {{"name", name},
                   {"value", shown.value},
                   {"from", kOrigins[static_cast<size_t>(shown.origin)]}};
    if (shown.setting) {
      option["file"] = settings.file->path;
      option["line"] = shown.setting->key_at.line;
      option["column"] = shown.setting->key_at.column;
    }
    if (!shown.variable.empty()) option["variable"] = shown.variable;
    json["options"].push_back(std::move(option));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// `opguard man` has none, and gets no --show-config.
bool has_options(const CLI::App& command) {
  const auto options = command.get_options();
  return std::any_of(options.begin(), options.end(), [&](const CLI::Option* option) {
    return option->nonpositional() && option != command.get_help_ptr();
  });
}

}  // namespace

void add_show_config(CLI::App& app) {
  std::vector<CLI::App*> commands = app.get_subcommands({});
  if (commands.empty()) commands.push_back(&app);
  for (CLI::App* command : commands)
    if (has_options(*command))
      command->add_flag_callback(
          kShowConfig, [] {}, "Print every option's value and where it comes from; run nothing");
}

void demand_nothing(CLI::App& command) {
  // Thrown once the options have their values; the command's own callback would demand a program.
  command.parse_complete_callback([] { throw CLI::Success(); });
  for (CLI::Option* option : command.get_options({})) {
    option->required(false);
    const auto needs = option->get_needs();
    for (CLI::Option* needed : needs) option->remove_needs(needed);
  }
}

int show_config(CLI::App& command, const AppliedSettings& settings,
                const std::vector<std::string>& program) {
  const std::vector<Shown> all = everything(command, settings, program);
  const CLI::Option* json = command.get_option_no_throw("--json");
  if (!json || json->count() == 0) {
    print_lines(as_text(all, settings));
    return kYes;
  }
  const std::string text = as_json(all, settings), file = json->results().back();
  if (file == "-")
    print_lines(text);
  else if (llvm::Error failed = write_file(file, text))
    return fail(llvm::toString(std::move(failed)));
  return kYes;
}

}  // namespace opguard
