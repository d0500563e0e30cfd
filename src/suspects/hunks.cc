// A hunk is lines that differ and whose tokens do. Lines are compared first, since that is how git
// tells it.
//
//   tokens of   x = f(1,     the same as of  x = f(1, 2)     # another layout
//                 2)
//   each with the nesting of the statement that it begins: `step()` in a loop 2, behind the loop 1
//
// Without nesting a line that left a loop would be the same tokens.
//
// The cost: of each changed stretch once over the items of its file.
#include "suspects/hunks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "patcher/line_diff.h"

namespace opguard {
namespace {

// One leaf of the tree, with how deep its statement is nested where it begins one.
struct Token {
  std::string_view text;
  uint32_t nesting = 0;
  bool operator==(const Token&) const = default;
};

struct CodeLines {
  std::vector<Token> tokens;
  LineSpan lines;  // of the tokens, cut to those asked for
};

// 0 where the item begins no statement, else one more than the blocks around it. Several nodes
// begin at one byte: any of them may be the statement.
uint32_t nesting_of(const CodeFile& file, uint32_t item) {
  const std::vector<TreeItem>& items = file.tree->items();
  const uint32_t start = items[item].start;
  uint32_t blocks = 0;
  bool begins = false;
  for (uint32_t at = item; at != 0; at = items[at].parent) {
    begins |= items[at].start == start && is_statement(file.node(at));
    blocks += items[at].kind == Kind::block;
  }
  return begins ? blocks + 1 : 0;
}

CodeLines code_in(const CodeFile& file, uint32_t first, uint32_t count) {
  CodeLines found;
  if (count == 0) return found;
  const uint32_t last = first + count - 1;
  const std::vector<TreeItem>& items = file.tree->items();
  for (uint32_t i = 0; i < items.size(); ++i) {
    // Leaves alone: an item that ends where the next one begins has none inside.
    if (items[i].after != i + 1 || !is_code(file, i)) continue;
    const LineSpan at = file.lines(i);
    if (at.last < first || at.first > last) continue;
    found.tokens.push_back({file.text(i), nesting_of(file, i)});
    if (found.lines.empty()) found.lines.first = std::max(at.first, first);
    found.lines.last = std::max(found.lines.last, std::min(at.last, last));
  }
  return found;
}

// A file of one side: all its code.
void add_whole(const CodeFile& file, uint32_t pair, int side, std::vector<Hunk>& hunks) {
  if (!file.tree) return;
  Hunk hunk;
  hunk.pair = pair;
  hunk.whole = true;
  hunk.lines[side] = code_in(file, 1, uint32_t(file.source->line_starts.size())).lines;
  if (!hunk.lines[side].empty()) hunks.push_back(hunk);
}

void add_changes(const CodeFile& a, const CodeFile& b, uint32_t pair, std::vector<Hunk>& hunks) {
  if (!a.tree || !b.tree || a.source->text == b.source->text) return;
  for (const LineChange& change : changed_lines(a.source->text, b.source->text)) {
    const CodeLines in_a = code_in(a, change.first_a, change.count_a);
    const CodeLines in_b = code_in(b, change.first_b, change.count_b);
    // Only the layout differs, or what is no code.
    if (in_a.tokens == in_b.tokens) continue;
    hunks.push_back({pair, {in_a.lines, in_b.lines}, false});
  }
}

}  // namespace

bool same_code(const CodeFile& a, const LineSpan& in_a, const CodeFile& b, const LineSpan& in_b) {
  if (!a.tree || !b.tree) return false;
  auto count = [](const LineSpan& lines) {
    return lines.empty() ? 0 : lines.last - lines.first + 1;
  };
  return code_in(a, in_a.first, count(in_a)).tokens == code_in(b, in_b.first, count(in_b)).tokens;
}

std::vector<FilePair> pair_files(const Code& a, const Code& b,
                                 const std::unordered_map<std::string, std::string>& renamed) {
  using Name = std::pair<std::string_view, std::string_view>;
  std::map<Name, FilePair> pairs;
  const Code* sides[2] = {&a, &b};
  for (int side : {0, 1})
    for (uint32_t i = 0; i < sides[side]->files().size(); ++i) {
      const SourceFile& source = *sides[side]->files()[i].source;
      pairs[{source.package, source.name}].file[side] = i;
    }
  std::vector<FilePair> all;
  for (const auto& [name, pair] : pairs) all.push_back(pair);
  // What is left over on both sides: a file of b alone takes the file of a alone that it was called
  // before.
  for (FilePair& of_b : all) {
    if (of_b.file[0] || !of_b.file[1]) continue;
    const auto known = renamed.find(b.files()[*of_b.file[1]].source->path);
    if (known == renamed.end()) continue;
    for (FilePair& of_a : all)
      if (of_a.file[0] && !of_a.file[1] && a.files()[*of_a.file[0]].source->path == known->second) {
        of_b.file[0] = of_a.file[0];
        of_a.file[0].reset();
        break;
      }
  }
  std::erase_if(all, [](const FilePair& pair) { return !pair.file[0] && !pair.file[1]; });
  return all;
}

std::vector<Hunk> find_hunks(const Code& a, const Code& b, const std::vector<FilePair>& pairs) {
  std::vector<Hunk> hunks;
  for (uint32_t i = 0; i < pairs.size(); ++i) {
    const FilePair& pair = pairs[i];
    if (pair.file[0] && pair.file[1])
      add_changes(a.files()[*pair.file[0]], b.files()[*pair.file[1]], i, hunks);
    else if (pair.file[0])
      add_whole(a.files()[*pair.file[0]], i, 0, hunks);
    else
      add_whole(b.files()[*pair.file[1]], i, 1, hunks);
  }
  return hunks;
}

}  // namespace opguard
