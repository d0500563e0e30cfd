// opguard completion SHELL, opguard man: files for the system, printed.
//
// They are asked of the App as it is when the command runs, so every command and option is in them.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/completion.h"
#include "cli/help_text.h"
#include "cli/man_page.h"

namespace opguard {
namespace {

int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kYes;
}

int completion(const CLI::App& app, const std::string& shell) {
  if (shell == "zsh") return print(zsh_completion(app));
  return print(shell == "fish" ? fish_completion(app) : bash_completion(app));
}

}  // namespace

void add_completion(CLI::App& app, Pipeline& run) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion of a shell");
  describe(*command, {"", {"source <(opguard completion bash)"}});
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
  command->callback(
      [shell, &app, &run] { run = [shell, &app] { return completion(app, *shell); }; });
}

void add_man(CLI::App& app, Pipeline& run) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page");
  describe(*command, {"", {"opguard man | man -l -"}});
  command->callback([&app, &run] { run = [&app] { return print(man_page(app)); }; });
}

}  // namespace opguard
