// report/excerpt.h: the source lines of a boundary, with the expression marked.
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
  const File& file(const std::string& path);

  std::map<std::string, File> files_;
};

}  // namespace opguard
