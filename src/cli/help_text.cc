// Takes apart what CLI11 knows of an option, and lays it out as help.
//
//   add_option("--format", f, "Write it as")     names {"--format"}, value "FORMAT",
//     ->type_name("FORMAT")                      choices {"text", "json"}, "Write it as [text]"
//     ->check(IsMember({"text", "json"}))
//     ->capture_default_str()
//
// The same OptionText goes to the help, the completions and the manual page. Counterexample: a help
// text with the options written into it. It would say what they were.
//
// CLI11 hands a parent's formatter down to its commands. So a text counts only where its own App
// asks for it: `help_text_of` compares the two.
#include "cli/help_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace opguard {
namespace {

constexpr size_t kColumns = 100;  // of a line of help
constexpr size_t kIndent = 30;    // where what an option does begins

// "UINT:INT in [0 - 64]" of a type and its checks -> "UINT".
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

// CLI11 tells the values of an IsMember in the type's name: "FORMAT:{text,json,csv}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

// `left` and beside it `right`, wrapped.
std::string entry(const std::string& left, const std::string& right) {
  std::string out = "  " + left;
  if (right.empty()) return out + "\n";
  if (out.size() + 2 > kIndent) out += "\n";
  size_t column = out.back() == '\n' ? 0 : out.size();
  out.append(kIndent - column, ' ');
  column = kIndent;
  for (std::string_view rest = right; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (column > kIndent && column + 1 + end > kColumns) {
      out += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (column > kIndent) {
      out += ' ';
      ++column;
    }
    out += rest.substr(0, end);
    column += end;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out + "\n";
}

//   -o, --output FILE           Write the rules to this file, for --ignore-file
std::string option_line(const OptionText& option) {
  std::string left;
  for (const std::string& name : option.names) left += (left.empty() ? "" : ", ") + name;
  if (!option.value.empty()) left += " " + option.value;
  return entry(left, option.text + (option.required ? " (required)" : ""));
}

class HelpFormat : public CLI::FormatterBase {
 public:
  explicit HelpFormat(const CLI::App* app, HelpText text) : app(app), text(std::move(text)) {}
  // Usage, sentence, commands, arguments, options by group, examples, footer: each only where there
  // is some.
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::string out = usage_of(*app) + "\n\n" + app->get_description();
    out += out.back() == '.' ? "\n" : ".\n";
    const auto commands = app->get_subcommands({});
    if (!commands.empty()) out += "\nCommands:\n";
    for (const CLI::App* command : commands)
      out += entry(command->get_name(), command->get_description());
    const auto positionals = positionals_of(*app);
    if (!positionals.empty()) out += "\nArguments:\n";
    for (const OptionText& positional : positionals)
      out += entry(positional.names[0], positional.text);
    for (const std::string& group : groups_of(*app)) {
      out += "\n" + group + ":\n";
      for (const OptionText& option : options_of(*app, group)) out += option_line(option);
    }
    const HelpText own = help_text_of(*app);
    if (!own.examples.empty()) out += own.examples.size() > 1 ? "\nExamples:\n" : "\nExample:\n";
    for (const std::string& example : own.examples) out += "  " + example + "\n";
    if (!app->get_footer().empty()) out += "\n" + app->get_footer() + "\n";
    return out;
  }

  const CLI::App* const app;
  const HelpText text;
};

}  // namespace

void describe(CLI::App& command, HelpText text) {
  command.formatter(std::make_shared<HelpFormat>(&command, std::move(text)));
}

HelpText help_text_of(const CLI::App& command) {
  auto format = std::dynamic_pointer_cast<HelpFormat>(command.get_formatter());
  return format && format->app == &command ? format->text : HelpText{};
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent ? full_name(*parent) + " " : "") + command.get_name();
}

//   Usage: opguard preflight [OPTIONS] --output FILE -- CMD      what is required is named
std::string usage_of(const CLI::App& command) {
  std::string out = "Usage: " + full_name(command);
  if (!command.get_subcommands({}).empty()) return out + " COMMAND ...";
  out += " [OPTIONS]";
  for (const std::string& group : groups_of(command))
    for (const OptionText& option : options_of(command, group))
      if (option.required) out += " " + option.names.back() + " " + option.value;
  for (const OptionText& positional : positionals_of(command)) {
    std::string name = positional.names[0];
    if (positional.repeatable) name += "...";
    out += " " + (positional.required ? name : "[" + name + "]");
  }
  const std::string program = help_text_of(command).program;
  return program.empty() ? out : out + " " + program;
}

OptionText text_of(const CLI::Option& option) {
  OptionText out;
  const bool positional = option.get_positional();
  if (positional) {
    out.names = {option.get_name(true, false)};
  } else {
    for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  }
  if (option.get_expected_max() > 0 && option.get_type_size() > 0) out.value = type_of(option);
  out.choices = choices_of(option);
  out.text = option.get_description();
  out.repeatable = option.get_expected_max() > 1 ||
                   option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  out.required = option.get_required();
  if (!option.get_default_str().empty()) out.text += " [" + option.get_default_str() + "]";
  return out;
}

std::vector<OptionText> options_of(const CLI::App& command, const std::string& group) {
  std::vector<OptionText> out;
  for (const CLI::Option* option : command.get_options())
    if (option->nonpositional() && option->get_group() == group) out.push_back(text_of(*option));
  return out;
}

std::vector<OptionText> positionals_of(const CLI::App& command) {
  std::vector<OptionText> out;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional() && !option->get_group().empty()) out.push_back(text_of(*option));
  return out;
}

std::vector<std::string> groups_of(const CLI::App& command) {
  std::vector<std::string> out;
  for (const std::string& group : command.get_groups())
    if (!group.empty() && !options_of(command, group).empty()) out.push_back(group);
  return out;
}

}  // namespace opguard
