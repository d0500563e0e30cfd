// What is asked of a command line, in this order; the first answer is the sentence.
//
//   no `--`, and a word that PATH has     put -- before 'python3', which begins the program
//   a word with a dash is left over       no option '--formt'; did you mean '--format'?
//   a word is left over                   'c' is one argument too many
//   else                                  CLI11's own words
//
// Counterexample: the leftover option first. In `opguard run tree python3 t.py --lr 3` it is --lr,
// and "no option '--lr'" would send the user to our help, where the `--` is what is missing.
//
// A folder is never taken for a program, even if PATH has one of its name.
#include "cli/mistakes.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "cli/help_text.h"
#include "llvm/Support/Program.h"
#include "support/nearest.h"

namespace opguard {
namespace {

// The command that the words name, or the program itself.
const CLI::App& command_of(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : *parsed.front();
}

// All that the help shows; what is hidden is never suggested.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const std::string& group : groups_of(command))
    for (const OptionText& option : options_of(command, group))
      names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// "--lr=3" -> "--lr".
std::string option_of(const std::string& word) { return word.substr(0, word.find('=')); }

// What the command has taken for its own, then what it has no place for.
std::vector<std::string> plain_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional())
      words.insert(words.end(), option->results().begin(), option->results().end());
  for (const std::string& word : command.remaining())
    if (!word.empty() && word[0] != '-') words.push_back(word);
  return words;
}

// `diff good bad`: `bad` may be a folder and a program of PATH.
bool is_folder(const std::string& word) {
  std::error_code error;
  return std::filesystem::is_directory(word, error);
}

// Trees that a command takes: `diff` two, others one for each argument.
// Words beyond that number cannot be arguments.
size_t trees_of(const CLI::App& command) {
  size_t count = 0;
  for (const OptionText& positional : positionals_of(command))
    count += positional.repeatable ? 2 : 1;
  return count;
}

}  // namespace

// Before the parse: CLI11 would tell of the words behind it.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const auto commands = app.get_subcommands({});
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.empty() || word[0] == '-') continue;
    for (const std::string& name : names)
      if (name == word) return "";
    return "no command '" + word + "'" + did_you_mean(word, names);
  }
  return "";
}

// The first word that PATH has; else the first that is one too many. Trees come before a program,
// so a word that is no folder is taken before one that is.
std::string program_among(const CLI::App& command) {
  const std::vector<std::string> words = plain_words(command);
  for (const std::string& word : words)
    if (!is_folder(word) && llvm::sys::findProgramByName(word)) return word;
  const size_t trees = trees_of(command);
  if (words.size() <= trees) return "";
  for (size_t i = std::min<size_t>(trees, 1); i < words.size(); ++i)
    if (!is_folder(words[i])) return words[i];
  return words[trees];
}

std::string put_dashes_before(const std::string& word) {
  return "put -- before '" + word + "', which begins the program";
}

std::string mistake(const CLI::App& app, const CLI::ParseError& error, bool dashes) {
  const CLI::App& command = command_of(app);
  const std::string where = " (" + full_name(command) + " --help)";
  std::vector<std::string> left = command.remaining();
  if (&command != &app) {
    const auto outer = app.remaining();
    left.insert(left.end(), outer.begin(), outer.end());
  }
  // A forgotten -- makes the program's options ours, so it is looked for first.
  if (!dashes && !help_text_of(command).program.empty())
    if (const std::string program = program_among(command); !program.empty())
      return put_dashes_before(program);
  for (const std::string& word : left)
    if (word.size() > 1 && word[0] == '-')
      return "no option '" + option_of(word) + "'" +
             did_you_mean(option_of(word), option_names(command)) + where;
  if (!left.empty()) return "'" + left.front() + "' is one argument too many" + where;
  return error.what() + where;
}

}  // namespace opguard
