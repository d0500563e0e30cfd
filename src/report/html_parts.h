// report/html_parts.h: what the pages without a script have in common: `opguard check --html` and
// `opguard prove --html`. Their style is that of src/report/page, and a few rules of their own.
//
//   html_page("opguard check", ".finding { ... }", "<main>" + escaped(name) + "</main>")
#pragma once

#include <string>
#include <string_view>

#include "report/excerpt.h"

namespace opguard {

// A text of unknown origin as part of a page.
std::string escaped(std::string_view text);

// <tag class="kind">text</tag>, the text escaped; `kind` may be "".
std::string element(std::string_view tag, std::string_view kind, std::string_view text);

// A box with some lines around `at`, its own marked. "" for a place that is not known.
std::string source_block(const Location& at, SourceFiles& files, std::string_view title);

// The whole file. It loads nothing: its policy admits its own style alone. `body` is markup.
std::string html_page(std::string_view title, std::string_view own_style, std::string_view body);

}  // namespace opguard
