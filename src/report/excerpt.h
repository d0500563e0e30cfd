// report/excerpt.h: the source lines of a boundary, with the expression marked.
//
//   Location   /data/good/model.py, line 12, column 11, text "softmax(x, -1)"
//   Excerpt    line "    return softmax(x, -1) * v", from 11, to 25: characters, not bytes
//
// Counterexample: a byte offset. A name with an umlaut before the expression would move the mark.
//
// The cost: SourceFiles reads each file once and holds it, with eight bytes a line.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "record/record.h"

namespace llvm {
class MemoryBuffer;
}

namespace opguard {

struct Excerpt {
  std::string line;         // as in the file, without its line ending; "" if unknown
  size_t from = 0, to = 0;  // characters of the expression within `line`; equal: not known
};

// Reads the line from Location::path if that file still holds the expression there. A tree may have
// gone or changed since the run, and then the recorded text is what ran.
Excerpt read_excerpt(const Location& location);

// A line around or of an expression: `number` counts from 1.
struct ContextLine {
  uint32_t number = 0;
  Excerpt text;
};

// The files of many boundaries, each read once.
// Not for several threads: excerpt() fills it.
class SourceFiles {
 public:
  SourceFiles();
  ~SourceFiles();

  // The lines of the whole expression, `context` lines before and after it. Where the file no
  // longer holds it, the recorded text alone.
  std::vector<ContextLine> excerpt(const Location& location, uint32_t context);

 private:
  struct File {
    std::unique_ptr<llvm::MemoryBuffer> buffer;  // nullptr: cannot be read
    std::vector<size_t> starts;                  // of each line
  };
  // An entry without a buffer is kept too: a file that cannot be read is tried once.
  const File& file(const std::string& path);

  std::map<std::string, File> files_;
};

}  // namespace opguard
