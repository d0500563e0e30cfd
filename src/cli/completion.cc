// Three shells, one source: the options as the program itself declares them (help_text.h).
//
//   --color auto|always|never     choices: the shell offers the three
//   --html FILE, LOG              file names
//   DIR, TREE, REPO               folders
//   --step N                      nothing is offered, and no file by mistake
//
// What a value is follows from its name in the help, as people read it. Counterexample: a list of
// options kept here. It would be right until somebody adds one.
//
// Behind `--` stands the user's program, whose own completion goes on. The scripts are whole files;
// `opguard completion bash` prints one.
#include "cli/completion.h"

#include <functional>
#include <string_view>
#include <vector>

#include "cli/help_text.h"

namespace opguard {
namespace {

enum class Value : uint8_t { none, choices, file, folder, other };

Value value_of(const OptionText& option) {
  if (!option.choices.empty()) return Value::choices;
  const std::string& name = option.value.empty() ? option.names[0] : option.value;
  if (name.starts_with("DIR") || name.starts_with("TREE") || name == "REPO") return Value::folder;
  if (name.find("FILE") != std::string::npos || name.starts_with("LOG") || name == "PYTHON")
    return Value::file;
  return option.value.empty() ? Value::none : Value::other;
}

// Of all groups, in the order of the help.
std::vector<OptionText> all_options(const CLI::App& command) {
  std::vector<OptionText> out;
  for (const std::string& group : groups_of(command))
    for (OptionText& option : options_of(command, group)) out.push_back(std::move(option));
  return out;
}

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::string command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return join(names, " ");
}

// Each of these characters behind a backslash.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// In single quotes, for a POSIX shell and zsh.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// `diff:--json|diff:--html`
std::string bash_pattern(const std::string& command, const OptionText& option) {
  std::vector<std::string> patterns;
  for (const std::string& name : option.names) patterns.push_back(command + ":" + name);
  return join(patterns, "|");
}

// One arm of a `case $command:$prev` for each option that takes a value.
std::string bash_values(const CLI::App& command) {
  std::string out;
  for (const OptionText& option : all_options(command)) {
    std::string answer;
    if (value_of(option) == Value::choices)
      answer = "compgen -W '" + join(option.choices, " ") + "' -- \"$cur\"";
    else if (value_of(option) == Value::file)
      answer = "compgen -f -- \"$cur\"";
    else if (value_of(option) == Value::folder)
      answer = "compgen -d -- \"$cur\"";
    else if (value_of(option) == Value::other)
      answer = "true";
    if (!answer.empty())
      out += "    " + bash_pattern(command.get_name(), option) + ") mapfile -t COMPREPLY < <(" +
             answer + "); return ;;\n";
  }
  return out;
}

// What stands behind the last colon of a spec; a blank: a value that nobody can complete.
std::string zsh_action(const OptionText& option) {
  switch (value_of(option)) {
    case Value::choices:
      return "(" + join(option.choices, " ") + ")";
    case Value::folder:
      return "_files -/";
    case Value::file:
      return "_files";
    default:
      return " ";
  }
}

// "'*--with=[An installed package ...]:PKG: '"
std::string zsh_option(const OptionText& option, const std::string& name) {
  std::string spec = (option.repeatable ? "*" : "") + name;
  const bool takes_value = !option.value.empty();
  if (takes_value && name.starts_with("--")) spec += "=";
  if (takes_value && !name.starts_with("--")) spec += "+";
  spec += "[" + escaped(option.text, "[]\\") + "]";
  if (takes_value) spec += ":" + escaped(option.value, ":\\") + ":" + zsh_action(option);
  return in_quotes(spec);
}

// Each name of an option is a spec of its own: zsh then offers both.
std::string zsh_command(const CLI::App& command) {
  std::string out = "    " + command.get_name() + ") _arguments -s";
  for (const OptionText& option : all_options(command))
    for (const std::string& name : option.names) out += " \\\n      " + zsh_option(option, name);
  for (const OptionText& positional : positionals_of(command))
    out += " \\\n      " + in_quotes(std::string(positional.repeatable ? "*" : "") + ":" +
                                     positional.names[0] + ":" + zsh_action(positional));
  return out + " ;;\n";
}

// -r: it takes a value; -f: and no file; -F: and a file.
std::string fish_option(const CLI::App& command, const OptionText& option) {
  std::string out = "complete -c opguard -n '__opguard_in " + command.get_name() + "'";
  for (const std::string& name : option.names)
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  const Value value = value_of(option);
  if (!option.value.empty()) out += " -r";
  if (value == Value::file) out += " -F";
  if (value == Value::choices) out += " -f -a '" + join(option.choices, " ") + "'";
  if (value == Value::folder) out += " -f -a '(__fish_complete_directories)'";
  if (value == Value::other) out += " -f";
  return out + " -d '" + escaped(option.text, "'\\") + "'\n";
}

}  // namespace

// The word before the cursor decides first: behind an option with a value that value is completed.
// Else options where the word begins with a dash, else files.
std::string bash_completion(const CLI::App& app) {
  std::string values, words;
  for (const CLI::App* command : app.get_subcommands({})) {
    values += bash_values(*command);
    std::vector<std::string> names;
    for (const OptionText& option : all_options(*command))
      names.insert(names.end(), option.names.begin(), option.names.end());
    words += "    " + command->get_name() + ") words='" + join(names, " ") + "' ;;\n";
  }
  return R"(# Bash completion of opguard, made by `opguard completion bash`.
_opguard() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= i
  COMPREPLY=()
  [[ ${COMP_WORDS[0]##*/} == opguard-instrument ]] && command=instrument
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      # Behind it the program stands, which has a completion of its own.
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      fi
      return
    fi
    [[ -z $command && ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]}
  done
  case $command:$prev in
)" + values +
         R"(  esac
  case $command in
    '') words='--help --version )" +
         command_names(app) + R"(' ;;
)" + words +
         R"(  esac
  if [[ -z $command || $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}
complete -o filenames -o bashdefault -F _opguard opguard opguard-instrument
)";
}

// The file serves both uses: autoloaded from fpath, and sourced (the last line tells which).
std::string zsh_completion(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    names += "    " +
             in_quotes(command->get_name() + ":" + escaped(command->get_description(), ":\\")) +
             "\n";
    cases += zsh_command(*command);
  }
  return R"(#compdef opguard opguard-instrument
# Zsh completion of opguard, made by `opguard completion zsh`.
_opguard() {
  local -a commands
  commands=(
)" + names +
         R"(  )
  local command=instrument
  if [[ $service != opguard-instrument ]]; then
    if (( CURRENT == 2 )); then
      _describe command commands
      _arguments '--help[Print the help]' '--version[Print the version]'
      return
    fi
    command=$words[2]
    shift words
    (( CURRENT-- ))
  fi
  # Behind -- the program stands, which has a completion of its own.
  local dashes=${words[(ie)--]}
  if (( dashes < CURRENT )); then
    shift $dashes words
    (( CURRENT -= dashes ))
    _normal
    return
  fi
  case $command in
)" + cases +
         R"(  esac
}
if [[ $funcstack[1] == _opguard ]]; then _opguard "$@"; else compdef _opguard opguard opguard-instrument; fi
)";
}

// A condition in front of each line (-n) says whose option it is: fish has no table of commands.
std::string fish_completion(const CLI::App& app) {
  std::string out = R"(# Fish completion of opguard, made by `opguard completion fish`.
# Behind -- the program stands.
function __opguard_in
    set -l words (commandline -opc)
    contains -- -- $words; and return 1
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end
function __opguard_first
    test (count (commandline -opc)) -eq 1
end
)";
  for (const CLI::App* command : app.get_subcommands({}))
    out += "complete -c opguard -n __opguard_first -f -a " + command->get_name() + " -d '" +
           escaped(command->get_description(), "'\\") + "'\n";
  for (const CLI::App* command : app.get_subcommands({}))
    for (const OptionText& option : all_options(*command)) out += fish_option(*command, option);
  return out;
}

}  // namespace opguard
