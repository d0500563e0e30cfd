// Changes are cut by lines, without a tree: a part must also fit into the other program's lines.
//
//   cuts()         lines at which a statement begins, by brackets, strings and backslashes
//   alike_lines()  of these the pairs that stand for one another: most words in common, in order
//   add_parts()    a part from each pair to the next, and what lies between on both sides
//
// The pairs are found by a table over both sides' statements, as a longest common subsequence is,
// with likeness as weight.
//
// Counterexample: brackets in a string or a comment are counted as any other. There are fewer cuts
// then and larger parts, which can still be exchanged.
#include "suspects/exchange_parts.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "patcher/line_diff.h"
#include "suspects/words.h"

namespace opguard {
namespace {

const SourceFile* file_of(const SourceSet& sources, const SourceText& text) {
  const SourceFile* file = sources.find(text.package, text.file);
  return file && file->path == text.path ? file : nullptr;
}

// In letters; of an empty line its whole length.
size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

// Where a stretch of lines can be cut: before a line that no bracket, string or backslash of the
// lines before it reaches into.
std::vector<uint32_t> cuts(const SourceFile& file, uint32_t first, uint32_t count) {
  std::vector<uint32_t> found;
  int open = 0;
  for (uint32_t line = first; line < first + count; ++line) {
    const std::string_view text = file.line_text(line);
    if (text.find("\"\"\"") != std::string_view::npos || text.find("'''") != std::string_view::npos)
      // A text over several lines: it is not cut at all.
      return {first};
    const bool goes_on = line > first && file.line_text(line - 1).ends_with('\\');
    if (open == 0 && !goes_on && indent_of(text) < text.size()) found.push_back(line);
    for (char c : text)
      open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
  }
  return found;
}

// The share of words that two lines have in common.
double likeness(std::string_view a, std::string_view b) {
  const Words of_a = words_of(a), of_b = words_of(b);
  const auto common = static_cast<double>(std::count_if(
      of_a.begin(), of_a.end(), [&](const auto& word) { return of_b.contains(word); }));
  const double all = static_cast<double>(of_a.size() + of_b.size()) - common;
  return all == 0 ? 0 : common / all;
}

// Statements of both sides that stand for one another, in order: those most alike together.
std::vector<std::pair<uint32_t, uint32_t>> alike_lines(const SourceFile& a, const SourceFile& b,
                                                       const LineChange& change) {
  constexpr double kAlike = 0.4;
  const auto of_a = cuts(a, change.first_a, change.count_a),
             of_b = cuts(b, change.first_b, change.count_b);
  // A rewritten file: the whole change is one part.
  if (of_a.size() * of_b.size() > 1 << 16) return {};
  // best[i][k]: of the lines from i and k on.
  std::vector<std::vector<double>> best(of_a.size() + 1, std::vector<double>(of_b.size() + 1, 0)),
      like = best;
  for (size_t i = of_a.size(); i-- > 0;)
    for (size_t k = of_b.size(); k-- > 0;) {
      const std::string_view x = a.line_text(of_a[i]), y = b.line_text(of_b[k]);
      // Another indentation is another block: the lines do not stand for one another.
      const double alike = indent_of(x) == indent_of(y) ? likeness(x, y) : 0;
      like[i][k] = alike >= kAlike ? alike : 0;
      best[i][k] = std::max(
          {best[i + 1][k], best[i][k + 1], like[i][k] > 0 ? like[i][k] + best[i + 1][k + 1] : 0});
    }
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (size_t i = 0, k = 0; i < of_a.size() && k < of_b.size();) {
    if (like[i][k] > 0 && best[i][k] == like[i][k] + best[i + 1][k + 1])
      pairs.emplace_back(of_a[i++], of_b[k++]);
    else
      best[i][k] == best[i + 1][k] ? ++i : ++k;
  }
  return pairs;
}

// A change, cut where statements of both sides stand for one another. What lies between two such
// pairs on both sides is a part of its own; on one side alone it goes with the pair before.
void add_parts(const SourceFile& a, const SourceFile& b, const LineChange& change,
               std::vector<ExchangePart>& parts) {
  const std::pair<uint32_t, uint32_t> end = {change.first_a + change.count_a,
                                             change.first_b + change.count_b};
  const auto of_a = cuts(a, change.first_a, change.count_a),
             of_b = cuts(b, change.first_b, change.count_b);
  // Where the statement ends that begins at `line`: at the next cut.
  auto behind = [](const std::vector<uint32_t>& of, uint32_t line, uint32_t last) {
    const auto next = std::upper_bound(of.begin(), of.end(), line);
    return next == of.end() ? last : *next;
  };
  const auto alike = alike_lines(a, b, change);
  std::vector<std::pair<uint32_t, uint32_t>> at = {{change.first_a, change.first_b}};
  for (size_t i = 0; i < alike.size(); ++i) {
    // What stands before the first pair, on one side or both, is a part too.
    if (alike[i] != at.back()) at.push_back(alike[i]);
    const auto& next = i + 1 < alike.size() ? alike[i + 1] : end;
    const std::pair<uint32_t, uint32_t> rest = {behind(of_a, alike[i].first, end.first),
                                                behind(of_b, alike[i].second, end.second)};
    if (rest.first < next.first && rest.second < next.second) at.push_back(rest);
  }
  at.push_back(end);
  for (size_t i = 0; i + 1 < at.size(); ++i) {
    ExchangePart part{{&a, &b},
                      {at[i].first, at[i].second},
                      {at[i + 1].first - at[i].first, at[i + 1].second - at[i].second}};
    if (text_of(part, 0) != text_of(part, 1)) parts.push_back(part);
  }
}

}  // namespace

std::string lines_of(const SourceFile& file, uint32_t first, uint32_t count) {
  if (count == 0) return "";
  const size_t lines = file.line_starts.size();
  const size_t from = file.line_starts[first - 1];
  const size_t to =
      first - 1 + count < lines ? file.line_starts[first - 1 + count] : file.text.size();
  return file.text.substr(from, to - from);
}

LineSpan span_of(const ExchangePart& part, int side) {
  if (part.count[side] == 0) return {};
  return {part.first[side], part.first[side] + part.count[side] - 1};
}

std::string text_of(const ExchangePart& part, int side) {
  if (side == 0 && part.given) return *part.given;
  return lines_of(*part.file[side], part.first[side], part.count[side]);
}

std::vector<ExchangePart> exchange_parts(const ProgramTexts& texts,
                                         const std::vector<Suspect>& suspects) {
  std::map<const SourceFile*, const SourceFile*> pairs;  // of b: of a
  for (const Suspect& suspect : suspects) {
    const SourceFile* files[2];
    for (int side : {0, 1}) files[side] = file_of(texts.sources[side], suspect.sides[side]);
    if (files[0] && files[1]) pairs[files[1]] = files[0];
  }
  for (const SourceFile& file : texts.sources[1].files)
    if (const SourceFile* other = texts.sources[0].find(file.package, file.name))
      // A renamed file is known by its suspects; of one name it is the same file.
      pairs.try_emplace(&file, other);
  std::vector<ExchangePart> parts;
  for (const SourceFile& file : texts.sources[1].files)
    if (const auto at = pairs.find(&file); at != pairs.end())
      for (const LineChange& change : changed_lines(at->second->text, file.text))
        add_parts(*at->second, file, change, parts);
  return parts;
}

}  // namespace opguard
