#include "support/diagnostics.h"

#include <algorithm>

#include "llvm/Support/Error.h"
#include "support/text.h"

namespace opguard {
namespace {

// A line of a minified file may have megabytes.
constexpr uint32_t kMostColumns = 200;

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

}  // namespace

std::string format(const Diagnostic& diagnostic) {
  std::string out = shown(diagnostic.file);
  if (diagnostic.line != 0)
    out.append(":")
        .append(std::to_string(diagnostic.line))
        .append(":")
        .append(std::to_string(diagnostic.column + 1));
  if (!out.empty()) out += ": ";
  out.append(severity_name(diagnostic.severity)).append(": ").append(shown(diagnostic.message));
  out += "\n";
  if (diagnostic.line == 0 || diagnostic.line_text.empty()) return out;

  const std::vector<ShownChar> chars = shown_chars(diagnostic.line_text);
  const size_t column = std::min<size_t>(diagnostic.column, chars.size());
  size_t first = 0, last = chars.size();
  clip(chars, column, kMostColumns, first, last);
  std::string text = first > 0 ? "..." : "";
  const size_t indent = text.size() + width_of(chars, first, column);
  for (size_t i = first; i < last; ++i) text += chars[i].text;
  if (last < chars.size()) text += "...";
  const uint32_t width =
      width_of(chars, column, std::min<size_t>(column + diagnostic.length, last));
  return out + text + "\n" + std::string(indent, ' ') + underline(std::max(width, 1u)) + "\n";
}

bool Diagnostics::has_errors() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string Diagnostics::text() const {
  std::string out;
  for (const Diagnostic& item : items_) out += format(item);
  return out;
}

llvm::Error make_error(const std::string& message) {
  return llvm::make_error<llvm::StringError>(message, llvm::inconvertibleErrorCode());
}

std::string first_line(llvm::Error error) {
  const std::string text = llvm::toString(std::move(error));
  return text.substr(0, text.find('\n'));
}

}  // namespace opguard
