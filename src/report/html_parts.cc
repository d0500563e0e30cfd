// Markup is made as text, so every text of unknown origin passes escaped() or element() on its way.
//
//   element("td", "unlike", "a<b")     <td class="unlike">a&lt;b</td>
//   escaped("\x1b[31m")                \x1b[31m: no control character reaches the page
//
// Tags and classes are the program's own words and are not escaped. A page has no script, so its
// policy admits its style alone.
#include "report/html_parts.h"

#include <algorithm>

#include "report/html.h"
#include "report/page.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr uint32_t kLinesAround = 3;

}  // namespace

std::string escaped(std::string_view text) { return escape_markup(shown(text)); }

std::string element(std::string_view tag, std::string_view kind, std::string_view text) {
  std::string open = "<" + std::string(tag);
  if (!kind.empty()) open += " class=\"" + std::string(kind) + "\"";
  return open + ">" + escaped(text) + "</" + std::string(tag) + ">";
}

// The marked line is known as a whole, not its expression: the mark begins behind the indent.
std::string source_block(const Location& at, SourceFiles& files, std::string_view title) {
  if (!at.line) return "";
  std::string html =
      "<div class=\"source\"><div class=\"place\">" +
      element("span", "path",
              (at.file.empty() ? at.path : at.file) + ":" + std::to_string(at.line)) +
      element("span", "in", title) + "</div><pre>";
  for (const ContextLine& line : files.excerpt(at, kLinesAround)) {
    const bool marked = line.number == at.line;
    html += "<div><span class=\"number\">" + std::to_string(line.number) + "</span>";
    const std::string& text = line.text.line;
    const size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
    html += marked ? "<span>" + escaped(text.substr(0, indent)) + "<mark>" +
                         escaped(text.substr(indent)) + "</mark></span>"
                   : element("span", "other", text);
    html += "</div>";
  }
  return html + "</pre></div>";
}

// The digest is of the style as it is written into the page: a byte between <style> and it would
// make the page bare.
std::string html_page(std::string_view title, std::string_view own_style, std::string_view body) {
  const std::string style = std::string(page::css()) + std::string(own_style);
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src " +
         policy_digest(style) +
         "; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
         "content=\"light dark\">\n" +
         element("title", "", title) + "\n<style>" + style + "</style>\n</head>\n<body>\n" +
         std::string(body) + "</body>\n</html>\n";
}

}  // namespace opguard
