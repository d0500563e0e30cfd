#include "support/diagnostics.h"

#include <algorithm>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/Unicode.h"

namespace opguard {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// One character of a line as it is shown: what would drive the terminal, or is no UTF-8, is
// replaced.
struct ShownChar {
  std::string text;
  int width;  // terminal columns
};

std::vector<ShownChar> shown_chars(std::string_view line) {
  std::vector<ShownChar> chars;
  for (size_t i = 0; i < line.size();) {
    const auto* p = reinterpret_cast<const llvm::UTF8*>(line.data() + i);
    size_t size = llvm::getNumBytesForUTF8(*p);
    bool valid = size <= line.size() - i && llvm::isLegalUTF8Sequence(p, p + size);
    if (!valid) size = 1;
    std::string text(line.substr(i, size));
    int width = text == "\t" ? 1 : llvm::sys::unicode::columnWidthUTF8(text);
    if (!valid || (text != "\t" && width < 0))
      chars.push_back({std::string(kReplacement), 1});
    else
      chars.push_back({text, width});
    i += size;
  }
  return chars;
}

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
  std::string out = diagnostic.file;
  if (diagnostic.line != 0)
    out.append(":")
        .append(std::to_string(diagnostic.line))
        .append(":")
        .append(std::to_string(diagnostic.column + 1));
  if (!out.empty()) out += ": ";
  out.append(severity_name(diagnostic.severity)).append(": ").append(diagnostic.message);
  out += "\n";
  if (diagnostic.line == 0 || diagnostic.line_text.empty()) return out;

  std::vector<ShownChar> chars = shown_chars(diagnostic.line_text);
  for (const ShownChar& c : chars) out += c.text;
  out += "\n";
  // Tabs are kept, so the caret stands right whatever a terminal makes of them.
  size_t column = std::min<size_t>(diagnostic.column, chars.size());
  for (size_t i = 0; i < column; ++i)
    out += chars[i].text == "\t" ? "\t" : std::string(chars[i].width, ' ');
  out += "^";
  int tildes = -1;  // the caret stands for the first
  for (size_t i = column; i < std::min<size_t>(column + diagnostic.length, chars.size()); ++i)
    tildes += chars[i].width;
  if (tildes > 0) out += std::string(tildes, '~');
  return out + "\n";
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

}  // namespace opguard
