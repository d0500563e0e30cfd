#include "suspects/programs.h"

namespace opguard {
namespace {

constexpr size_t kMostLines = 6;  // of a hunk, shown

std::vector<std::string> first_lines(const SourceFile& source, const LineSpan& lines) {
  std::vector<std::string> found;
  for (uint32_t line = lines.first; line <= lines.last && found.size() < kMostLines; ++line)
    found.emplace_back(source.line_text(line));
  return found;
}

}  // namespace

SourceText text_of(const Programs& programs, const Hunk& hunk, int side) {
  const auto file = programs.pairs[hunk.pair].file[side];
  if (!file) return {};
  const SourceFile& source = *programs.code[side]->files()[*file].source;
  SourceText text{source.package, source.name, source.path, hunk.lines[side], {}};
  if (!hunk.whole && !hunk.lines[side].empty()) text.text = first_lines(source, hunk.lines[side]);
  return text;
}

SourceText text_of(const TextPair& pair, int side, uint32_t first, uint32_t count) {
  if (pair.path[side].empty()) return {};
  const SourceFile source = make_source("", pair.name, pair.path[side], pair.text[side]);
  SourceText text{"", pair.name, pair.path[side], {}, {}};
  if (count > 0) {
    text.lines = {first, first + count - 1};
    text.text = first_lines(source, text.lines);
  }
  return text;
}

}  // namespace opguard
