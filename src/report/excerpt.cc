// Finds an expression's lines in its file, as they were when it ran, or shows what was recorded.
//
//   model.py:12 still has `softmax(x)` at its column     lines 9 to 15, `softmax(x)` marked
//   the line has it twice                                the one at the column is meant
//   the line was edited since                            the recorded text alone, at its number
//
// Counterexample: to show line 12 of the file, whatever is there. An edit above it would put
// another expression under the pivot's name.
//
// Columns count characters, and the marks are drawn by width. Of an expression over pages 12 lines
// are shown. Pipes, devices and files above 64 MiB are not read.
#include "report/excerpt.h"

#include <algorithm>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "support/text.h"

namespace opguard {
namespace {

// Of an expression: a table of data that runs over pages says no more by its later lines.
constexpr size_t kLinesShown = 12;
// A source file is small; what is larger or no regular file (a pipe, a device) is not read.
constexpr uint64_t kFileSize = 64u << 20;

size_t characters(llvm::StringRef text) { return shown_chars({text.data(), text.size()}).size(); }

// Where in `source`, the expression's first line in the file, its text begins; npos: it is gone.
size_t find_expression(llvm::StringRef source, llvm::StringRef text, uint32_t column) {
  // The expression may occur more than once in its line: the one at its column is meant. Where none
  // stands there, the first is taken: the line was indented otherwise.
  //   y = f(x) + f(x)      column 11: the second
  size_t at = llvm::StringRef::npos;
  for (size_t next = source.find(text); next != llvm::StringRef::npos;
       next = source.find(text, next + 1)) {
    if (at == llvm::StringRef::npos) at = next;
    if (characters(source.take_front(next)) == column) at = next;
  }
  return at;
}

// Bytes in, characters out: the mark is drawn under characters.
Excerpt marked(llvm::StringRef line, size_t from_byte, size_t to_byte) {
  const size_t from = characters(line.take_front(from_byte));
  return {line.str(), from, from + characters(line.slice(from_byte, to_byte))};
}

}  // namespace

SourceFiles::SourceFiles() = default;
SourceFiles::~SourceFiles() = default;

const SourceFiles::File& SourceFiles::file(const std::string& path) {
  const auto [at, fresh] = files_.try_emplace(path);
  File& file = at->second;
  if (!fresh || path.empty()) return file;
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status) ||
      status.type() != llvm::sys::fs::file_type::regular_file || status.getSize() > kFileSize)
    return file;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return file;
  file.buffer = std::move(*buffer);
  const llvm::StringRef text = file.buffer->getBuffer();
  file.starts.push_back(0);
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') file.starts.push_back(i + 1);
  return file;
}

// Lines of the file where it still holds the text, else the text alone. `at`: the byte in the first
// of them where the text begins; npos: the file has something else there.
//
// A further line need only begin as the recorded one does, since the statement may go on behind the
// expression. Before it something may stand too, so in the first line the text is looked for.
//
// A place without a text (the runtime knows lines alone) has the file's lines, and no mark.
std::vector<ContextLine> SourceFiles::excerpt(const Location& location, uint32_t context) {
  const File& source = file(location.path);
  auto line_at = [&](size_t number) -> llvm::StringRef {  // from 1
    const llvm::StringRef rest = source.buffer->getBuffer().drop_front(source.starts[number - 1]);
    return rest.split('\n').first.rtrim('\r');
  };
  llvm::SmallVector<llvm::StringRef, 8> text;
  llvm::StringRef(location.text).split(text, '\n');
  for (llvm::StringRef& line : text) line = line.rtrim('\r');

  const size_t count = source.starts.size();
  const bool there = location.line > 0 && location.line <= count;
  size_t at = llvm::StringRef::npos;
  if (there) at = find_expression(line_at(location.line), text[0], location.column);
  for (size_t i = 1; i < text.size() && at != llvm::StringRef::npos; ++i)
    if (location.line + i > count || !line_at(location.line + i).starts_with(text[i]))
      at = llvm::StringRef::npos;

  std::vector<ContextLine> lines;
  const size_t shown = std::min(text.size(), kLinesShown);
  if (at == llvm::StringRef::npos && !location.text.empty()) {
    for (size_t i = 0; i < shown; ++i) {
      const size_t indent = i == 0 ? 0 : std::min(text[i].find_first_not_of(" \t"), text[i].size());
      lines.push_back({uint32_t(location.line + i), marked(text[i], indent, text[i].size())});
    }
    return lines;
  }
  if (!there) return lines;
  const size_t first = location.line - std::min<size_t>(location.line - 1, context);
  const size_t last = std::min(count, location.line + shown - 1 + context);
  for (size_t number = first; number <= last; ++number) {
    const llvm::StringRef line = line_at(number);
    // The end of the file's last line is no line.
    if (number == count && number > location.line && line.empty()) break;
    const size_t i = number - location.line;  // large before the expression
    size_t from = 0, to = 0;
    if (number >= location.line && i < shown && !location.text.empty()) {
      from = i == 0 ? at : std::min(line.find_first_not_of(" \t"), line.size());
      to = i == 0 ? at + text[0].size() : text[i].size();
    }
    lines.push_back({uint32_t(number), marked(line, from, std::max(from, to))});
  }
  // Empty lines at the ends are no context.
  auto empty = [&](const ContextLine& line) {
    const bool outside = line.number < location.line || line.number >= location.line + shown;
    return outside && line.text.line.find_first_not_of(" \t") == std::string::npos;
  };
  while (empty(lines.back())) lines.pop_back();
  while (empty(lines.front())) lines.erase(lines.begin());
  return lines;
}

// Opens the file for one line. Who shows many lines keeps a SourceFiles.
Excerpt read_excerpt(const Location& location) {
  for (const ContextLine& line : SourceFiles().excerpt(location, 0))
    if (line.number == location.line) return line.text;
  return {};
}

}  // namespace opguard
