// opguard help [TOPIC]: a command's help, or a page of docs/.
//
//   opguard help                  all commands, and the topics
//   opguard help diff             the same as opguard diff --help
//   opguard help determinism      docs/guide/determinism.md, as Markdown
//   opguard help noise            the command first, the page behind it
//
// Pages are part of the program (pages.h), so the help is of the very version that is installed.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/pages.h"
#include "support/nearest.h"

namespace opguard {
namespace {

std::vector<std::string> topics() {
  std::vector<std::string> names;
  for (const Page& page : pages()) names.emplace_back(page.topic);
  return names;
}

// Commas between, two blanks before, at most 100 columns.
std::string list(const std::vector<std::string>& names) {
  constexpr size_t kColumns = 100;
  std::string out, line;
  for (const std::string& name : names) {
    if (line.size() + 2 + name.size() > kColumns) {
      out += line + ",\n";
      line.clear();
    }
    line += (line.empty() ? "  " : ", ") + name;
  }
  return out + line + "\n";
}

void put(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int help(const CLI::App& app, const std::string& topic) {
  if (topic.empty()) {
    put(app.help());
    put("\nTopics:\n" + list(topics()));
    return kYes;
  }
  const CLI::App* command = nullptr;
  std::vector<std::string> known = topics();
  for (const CLI::App* each : app.get_subcommands({})) {
    known.push_back(each->get_name());
    if (each->get_name() == topic) command = each;
  }
  const Page* page = page_of(topic);
  if (!command && !page)
    return fail("no topic '" + topic + "'" + did_you_mean(topic, known) +
                " (opguard help lists them)");
  // What has both, `noise`, is a command first.
  if (command) put(command->help());
  if (command && page) put("\n");
  if (page) put(page->text);
  return kYes;
}

}  // namespace

const Page* page_of(std::string_view topic) {
  auto at = std::find_if(pages().begin(), pages().end(),
                         [&](const Page& page) { return page.topic == topic; });
  return at == pages().end() ? nullptr : &*at;
}

void add_help(CLI::App& app, Pipeline& run) {
  auto topic = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "Print a command's help, or a page on a topic");
  describe(*command, {"", {"opguard help determinism"}});
  command->add_option("TOPIC", *topic, "A command or a topic; without it, all are listed");
  command->callback([topic, &app, &run] { run = [topic, &app] { return help(app, *topic); }; });
}

}  // namespace opguard
