#include "report/uri.h"

#include "llvm/ADT/StringExtras.h"

namespace opguard {

std::string uri(llvm::StringRef path) {
  std::string text;
  // Byte by byte: a letter beyond ASCII is spelled out as each byte of its UTF-8.
  for (const char c : path) {
    if (llvm::isAlnum(c) || llvm::StringRef("/-._~").contains(c)) {
      text += c;
    } else {
      text += '%';
      text += llvm::toHex(llvm::StringRef(&c, 1));
    }
  }
  return text;
}

}  // namespace opguard
