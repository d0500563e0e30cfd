// suspects/hunks.h: where the sources of two programs differ, comments aside.
//
//   a  return base_lr * (it + 1) / warmup     # linear
//   b  return base_lr * it / warmup           # linear warmup
//
// is a hunk. A line of which only the comment differs is none. Nor is a docstring, an annotation, a
// blank line, or an expression broken over its lines in another way. A line moved out of a loop is
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "suspects/code.h"

namespace opguard {

// The same file in both programs, or one that only one of them loaded.
struct FilePair {
  std::optional<uint32_t> file[2];  // index in Code::files of a, of b
};

// By package and name. What is left over is paired by `renamed`, the path in a of a path in b.
std::vector<FilePair> pair_files(const Code& a, const Code& b,
                                 const std::unordered_map<std::string, std::string>& renamed);

struct Hunk {
  uint32_t pair = 0;   // index of its FilePair
  LineSpan lines[2];   // of each side, those with code; empty where it has none
  bool whole = false;  // a file of one side alone
};

// In the order of the pairs, then of the lines.
std::vector<Hunk> find_hunks(const Code& a, const Code& b, const std::vector<FilePair>& pairs);

// Two stretches of lines hold the same code: they differ in layout, comments, docstrings and
// annotations at most.
bool same_code(const CodeFile& a, const LineSpan& in_a, const CodeFile& b, const LineSpan& in_b);

// Another text that both programs have (a settings file), and how it differs.
struct TextPair {
  std::string name;     // below the tree
  std::string path[2];  // "" on a side that has none
  std::string text[2];
};

}  // namespace opguard
