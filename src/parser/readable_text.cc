#include "parser/readable_text.h"

#include <cstdint>
#include <cstring>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Regex.h"

namespace opguard {
namespace {

// PEP 263: a comment on the first or second line that names the encoding.
bool names_other_encoding(const SourceFile& source) {
  static const llvm::Regex coding("^[ \t\f]*#.*coding[:=][ \t]*([-_.a-zA-Z0-9]+)");
  for (uint32_t line = 1; line <= 2; ++line) {
    llvm::StringRef text(source.line_text(line));
    llvm::SmallVector<llvm::StringRef, 2> groups;
    if (coding.match(text, &groups)) {
      std::string name = groups[1].lower();
      return name != "utf-8" && name != "utf8" && name != "utf_8";
    }
    llvm::StringRef rest = text.ltrim(" \t\f");
    if (!rest.empty() && !rest.starts_with("#")) return false;  // a statement ends the search
  }
  return false;
}

// How many bytes at the front are ASCII.
size_t ascii_prefix(std::string_view text) {
  size_t i = 0;
  for (uint64_t word = 0; i + sizeof word <= text.size(); i += sizeof word) {
    std::memcpy(&word, text.data() + i, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

// Where the text is not UTF-8. Most of it is ASCII, which is passed eight bytes at a time.
std::optional<size_t> utf8_fault(std::string_view text) {
  const auto* bytes = reinterpret_cast<const llvm::UTF8*>(text.data());
  for (size_t i = 0; (i += ascii_prefix(text.substr(i))) < text.size();) {
    if (!llvm::isLegalUTF8Sequence(bytes + i, bytes + text.size())) return i;
    i += llvm::getNumBytesForUTF8(bytes[i]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> readable(const SourceFile& source, Diagnostics& diags) {
  std::string text = source.text;
  size_t nul = text.find('\0');
  if (nul != std::string::npos) {
    diags.add(diagnostic_at(source, nul, 0, "a null byte is not Python source"));
    return std::nullopt;
  }
  if (std::optional<size_t> fault = utf8_fault(text)) {
    if (!names_other_encoding(source)) {
      diags.add(diagnostic_at(source, static_cast<uint32_t>(*fault), 0,
                              "not UTF-8, and no coding line names another encoding"));
      return std::nullopt;
    }
    // What the bytes mean is the interpreter's matter: to the grammar each is one letter.
    for (char& c : text)
      if (static_cast<unsigned char>(c) >= 0x80) c = 'x';
  }
  // A lone carriage return ends a line for CPython, not for the grammar.
  for (size_t i = text.find('\r'); i != text.npos; i = text.find('\r', i + 1))
    if ((i + 1 == text.size() || text[i + 1] != '\n')) text[i] = '\n';
  return text;
}

}  // namespace opguard
