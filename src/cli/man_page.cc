// Everything that comes from the App passes roff(). A sentence may begin with a dot, and hyphens of
// options must stay hyphens when they are copied from the page.
#include "cli/man_page.h"

#include <string_view>

#include "cli/help_text.h"
#include "cli/pages.h"
#include "support/version.h"

namespace opguard {
namespace {

// Plain text as roff: no character of it is a request.
std::string roff(std::string_view text) {
  std::string out;
  bool begins = true;
  for (char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    begins = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

// A term, and what it means below it.
std::string man_entry(const std::string& term, const std::string& text) {
  return ".TP\n" + term + "\n" + roff(text) + "\n";
}

std::string option_entry(const OptionText& option) {
  std::string term;
  for (const std::string& name : option.names)
    term += (term.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  if (!option.value.empty()) term += " \\fI" + roff(option.value) + "\\fR";
  return man_entry(term, option.text + (option.required ? " (required)." : "."));
}

// Groups of options are one list here; the terminal's help shows them apart.
std::string command_section(const CLI::App& command) {
  const std::string usage = usage_of(command);
  std::string out = ".SS " + roff(full_name(command)) + "\n.B " +
                    roff(usage.substr(usage.find(' ') + 1)) + "\n.PP\n" +
                    roff(command.get_description()) + ".\n";
  for (const OptionText& positional : positionals_of(command))
    out += man_entry("\\fI" + roff(positional.names[0]) + "\\fR", positional.text + ".");
  for (const std::string& group : groups_of(command))
    for (const OptionText& option : options_of(command, group)) out += option_entry(option);
  for (const std::string& example : help_text_of(command).examples)
    out += ".PP\n.nf\n.RS\n" + roff(example) + "\n.RE\n.fi\n";
  if (!command.get_footer().empty()) out += ".PP\n" + roff(command.get_footer()) + "\n";
  return out;
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string out = ".TH OPGUARD 1 \"\" \"opguard " + roff(version()) +
                    "\"\n.SH NAME\nopguard \\- " +
                    roff("names the first operator where two training runs part") +
                    "\n.SH SYNOPSIS\n.B opguard\n.I COMMAND\n.RI [ OPTIONS ]\n" +
                    "\\&... [\\-\\- \\fICMD\\fR]\n.SH DESCRIPTION\n" + roff(app.get_description()) +
                    "\n" + roff(app.get_footer()) + "\n.SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands({})) out += command_section(*command);
  out +=
      ".SH FILES\n.TP\n.B pyproject.toml\nThe table [tool.opguard] gives options a value of "
      "their own; so does opguard.toml.\n";
  out += ".SH SEE ALSO\n.B opguard help\n.I TOPIC\nprints a page. The topics are ";
  for (size_t i = 0; i < pages().size(); ++i) out += (i == 0 ? "" : ", ") + roff(pages()[i].topic);
  return out + ".\n";
}

}  // namespace opguard
