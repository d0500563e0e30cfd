// support/diagnostics.h: errors in the shape of LLVM's SourceMgr, for any text with positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

enum class Severity : uint8_t { error, warning, note };

// "file:line:column: error: message", the source line and a caret under it. The caret survives
// lines with characters beyond ASCII.
struct Diagnostic {
  Severity severity = Severity::error;
  std::string file;
  uint32_t line = 0;    // 1-based; 0: no position is printed
  uint32_t column = 0;  // 0-based character; printed 1-based
  uint32_t length = 0;  // characters to underline; 0: the caret alone
  std::string message;
  std::string line_text;  // "" : no excerpt

  bool operator==(const Diagnostic&) const = default;
};

std::string format(const Diagnostic& diagnostic);

// Collects what a stage has to say; stages never print.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic) { items_.push_back(std::move(diagnostic)); }
  const std::vector<Diagnostic>& items() const { return items_; }
  bool has_errors() const;
  std::string text() const;  // every item, formatted

 private:
  std::vector<Diagnostic> items_;
};

// An error that is only a sentence; main prints it as "opguard: error: <message>".
llvm::Error make_error(const std::string& message);
// An error's message up to its first line break.
std::string first_line(llvm::Error error);

}  // namespace opguard
