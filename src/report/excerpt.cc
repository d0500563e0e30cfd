#include "report/excerpt.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "report/text.h"

namespace opguard {
namespace {

// The 1-based line of a file, "" if there is none.
std::string read_line(const std::string& path, uint32_t line) {
  if (path.empty() || line == 0) return "";
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return "";
  llvm::StringRef rest = (*buffer)->getBuffer();
  for (; line > 1; --line) rest = rest.split('\n').second;
  return rest.split('\n').first.rtrim('\r').str();
}

size_t characters(llvm::StringRef text) { return shown_chars({text.data(), text.size()}).size(); }

}  // namespace

Excerpt read_excerpt(const Location& location) {
  const std::string line = read_line(location.path, location.line);
  const llvm::StringRef text = llvm::StringRef(location.text).split('\n').first.rtrim('\r');
  if (text.empty()) return {line, 0, 0};
  const llvm::StringRef source(line);
  // The expression may occur more than once in its line: the one at its column is meant.
  size_t at = llvm::StringRef::npos;
  for (size_t next = source.find(text); next != llvm::StringRef::npos;
       next = source.find(text, next + 1)) {
    if (at == llvm::StringRef::npos) at = next;
    if (characters(source.take_front(next)) == location.column) at = next;
  }
  if (at == llvm::StringRef::npos) return {text.str(), 0, characters(text)};
  const size_t from = characters(source.take_front(at));
  return {line, from, from + characters(text)};
}

}  // namespace opguard
