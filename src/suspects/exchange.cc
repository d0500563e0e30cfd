// From changes to groups: what is left out, what goes together, how likely each group is.
//
//   exchange_parts       every change of the changed files, cut small
//   leave out            the same code, definitions that b alone has
//   undo_renames         a's text in b's names
//   take_imports         import lines, which are had from both
//   join_changes         groups
//   likelihood           of the nearest suspect in it; an eighth where it was reworded or agrees
//
// Changes that are no suspects are cut too: a group may need the definition that nobody ran.
//
// Counterexample: a group of such changes alone. It is left out, as nothing says that it ran.
//
// The cost: the changed files are parsed once more; words of each part's function are collected for
// each part.
#include "suspects/exchange.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string_view>

#include "suspects/bindings.h"
#include "suspects/code.h"
#include "suspects/exchange_joins.h"
#include "suspects/hunks.h"
#include "suspects/imports.h"
#include "suspects/renames.h"
#include "suspects/words.h"

namespace opguard {
namespace {

constexpr double kReworded = 8;  // so much less likely is a change that uses the same names
constexpr double kAgrees = 8;    // and one that was measured and agrees

std::string text_around(const Code& code, const ExchangePart& part, int side) {
  const LineSpan lines = names_around(code, part, side);
  return lines_of(*part.file[side], lines.first, lines.last - lines.first + 1);
}

// On one side at least: a deletion has no lines on the other.
bool is_of(const ExchangePart& part, const Suspect& suspect) {
  if (suspect.whole || suspect.nearness == Nearness::unseen) return false;
  for (int side : {0, 1})
    if (part.file[side]->path != suspect.sides[side].path) return false;
  return suspect.sides[0].lines.meets(span_of(part, 0)) ||
         suspect.sides[1].lines.meets(span_of(part, 1));
}

// Changes of layout, comments, docstrings and annotations.
void leave_out_same_code(const Code (&code)[2], std::vector<ExchangePart>& parts) {
  std::erase_if(parts, [&](const ExchangePart& part) {
    const auto a = code[0].find(part.file[0]->path), b = code[1].find(part.file[1]->path);
    return a && b &&
           same_code(code[0].files()[*a], span_of(part, 0), code[1].files()[*b], span_of(part, 1));
  });
}

FileBindings bindings_of(const Code (&code)[2], const std::vector<ExchangePart>& parts) {
  FileBindings bindings;
  for (const ExchangePart& part : parts)
    for (int side : {0, 1}) {
      static const CodeFile kUnread;
      const auto file = code[side].find(part.file[side]->path);
      if (!bindings.contains(part.file[side]))
        bindings.emplace(part.file[side], Bindings(file ? code[side].files()[*file] : kUnread));
    }
  return bindings;
}

// Functions and classes of the module in these lines, whole, which nothing decorates and whose
// names the other program's file has nowhere.
std::vector<LineSpan> added_definitions(const CodeFile& file, const LineSpan& lines,
                                        const Words& there) {
  std::vector<LineSpan> found;
  if (lines.empty() || !file.tree) return found;
  file.node(0).each_named_child([&](const Node& statement) {
    const LineSpan at = file.lines(statement.index());
    const bool definition =
        statement.kind() == Kind::function_definition || statement.kind() == Kind::class_definition;
    if (definition && lines.first <= at.first && at.last <= lines.last &&
        !there.contains(file.text(statement.field(Field::name).index())))
      found.push_back(at);
  });
  return found;
}

// Lines of comments and blanks between two definitions are no change.
bool has_code(const SourceFile& file, uint32_t first, uint32_t count) {
  for (uint32_t line = first; line < first + count; ++line) {
    const std::string_view text = file.line_text(line);
    const size_t at = text.find_first_not_of(" \t\r\n");
    if (at != text.npos && text[at] != '#') return true;
  }
  return false;
}

// Functions and classes that b alone has stay. To have them changes nothing, and what stays in b
// may need them (an annotation, a file that b alone has). Their uses are changes of their own.
void leave_out_definitions(const Code (&code)[2], std::vector<ExchangePart>& parts) {
  std::map<const SourceFile*, Words> words;
  std::vector<ExchangePart> kept;
  for (const ExchangePart& part : parts) {
    const auto file = code[1].find(part.file[1]->path);
    auto [there, fresh] = words.try_emplace(part.file[0]);
    if (fresh) there->second = words_of(part.file[0]->text);
    std::vector<LineSpan> added;
    if (file) added = added_definitions(code[1].files()[*file], span_of(part, 1), there->second);
    if (added.empty()) {
      kept.push_back(part);
      continue;
    }
    // What lies before, between and behind them; a's lines come in the place of the first.
    ExchangePart piece = part;
    const uint32_t end = part.first[1] + part.count[1];
    added.push_back({end, end});
    for (const LineSpan& definition : added) {
      piece.count[1] = definition.first - piece.first[1];
      if (piece.count[0] > 0 || has_code(*piece.file[1], piece.first[1], piece.count[1]))
        kept.push_back(piece);
      piece.first[0] += piece.count[0];
      piece.count[0] = 0;
      piece.first[1] = definition.last + 1;
    }
  }
  parts = std::move(kept);
}

// What a text gets from elsewhere by name: attributes, and functions that it does not make itself.
Words taken_in(const std::string& text) {
  static const std::regex kTaken(R"((\.\s*(\w+))|((\w+)\s*\())");
  const Words made = made_in(text);
  Words names;
  for (std::sregex_iterator it(text.begin(), text.end(), kTaken), end; it != end; ++it) {
    const std::string name = (*it)[(*it)[1].matched ? 2 : 4].str();
    if ((*it)[1].matched || !made.contains(name)) names.insert(name);
  }
  return names;
}

// What a text computes with, but for names of its own: `y = _helper(x)` and
// `def _helper(v): return v * 2` have {y, x, *, 2}, as `y = x * 2`; `x.float()` has {x, float}.
Words means_of(const std::string& text, const Words& there) {
  // Moving a term into a helper brings these, and no other mathematics.
  static const Words kGlue = {"def", "return", "lambda", "self", "cls"};
  const Words taken = taken_in(text);
  Words means;
  for (const std::string& word : words_of(text))
    if ((there.contains(word) || taken.contains(word)) && !kGlue.contains(word)) means.insert(word);
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::string_view("+-*/%@<>!&|^~").find(text[i]) != std::string_view::npos) {
      size_t end = i;
      while (end < text.size() &&
             std::string_view("+-*/%@<>!=&|^~").find(text[end]) != std::string_view::npos)
        ++end;
      means.insert(text.substr(i, end - i));
      i = end - 1;
    } else if (std::isdigit(static_cast<unsigned char>(text[i])) &&
               (i == 0 || !is_word(text[i - 1]))) {
      size_t end = i;
      while (end < text.size() && (is_word(text[end]) || text[end] == '.')) ++end;
      means.insert(text.substr(i, end - i));
      i = end - 1;
    }
  }
  return means;
}

// Weights of a search: they decide how many runs it takes, and never what is proven.
double likelihood_of(Nearness nearness) {
  switch (nearness) {
    case Nearness::statement:
    case Nearness::origin:
      return 16;
    case Nearness::function:
      return 8;
    case Nearness::decides:
      return 8;
    case Nearness::trail:
      return 4;
    case Nearness::file:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

std::vector<ExchangeGroup> exchange_groups(const ProgramTexts& texts,
                                           const std::vector<Suspect>& suspects) {
  std::vector<ExchangePart> parts = exchange_parts(texts, suspects);
  const Code code[2] = {Code(texts.sources[0]), Code(texts.sources[1])};
  leave_out_same_code(code, parts);
  leave_out_definitions(code, parts);
  const FileBindings bindings = bindings_of(code, parts);
  undo_renames(code, bindings, parts);
  const SharedImports imports = take_imports(code, parts);
  const std::vector<size_t> joined = join_changes(parts, code, bindings, imports);
  struct Found {
    std::vector<std::pair<size_t, size_t>> order;  // suspect, part
    std::string text[2];
    Words around[2];
    bool agrees = true;  // every part
  };
  std::map<size_t, Found> found;  // by a group's first part
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t of = 0;
    // The nearest suspect that it belongs to: they come in that order.
    while (of < suspects.size() && !is_of(parts[i], suspects[of])) ++of;
    parts[i].suspect = of < suspects.size();
    if (parts[i].suspect) parts[i].likelihood = likelihood_of(suspects[of].nearness);
    Found& group = found[joined[i]];
    group.agrees &=
        parts[i].suspect && suspects[of].agrees(span_of(parts[i], 0), span_of(parts[i], 1));
    group.order.emplace_back(of, i);
    for (int side : {0, 1}) {
      group.text[side] += text_of(parts[i], side);
      group.around[side].merge(words_of(text_around(code[side], parts[i], side)));
    }
    group.around[0].insert(parts[i].renamed.begin(), parts[i].renamed.end());
  }
  std::vector<ExchangeGroup> groups;
  for (auto& [first, group] : found) {
    std::sort(group.order.begin(), group.order.end());
    const size_t suspect = group.order.front().first;
    if (suspect == suspects.size()) continue;
    ExchangeGroup& made = groups.emplace_back();
    made.likelihood = likelihood_of(suspects[suspect].nearness);
    made.reworded =
        means_of(group.text[0], group.around[1]) == means_of(group.text[1], group.around[0]);
    if (made.reworded) made.likelihood /= kReworded;
    if (group.agrees) made.likelihood /= kAgrees;
    // The order among equals: the nearer one first.
    made.likelihood *= 1 - 1e-3 * static_cast<double>(suspect);
    for (const auto& [of, part] : group.order) made.parts.push_back(parts[part]);
    // Whichever group is exchanged in a file, its lines find their imports.
    for (const ExchangePart& lines : imports.parts)
      if (std::any_of(made.parts.begin(), made.parts.end(),
                      [&](const ExchangePart& part) { return part.file[1] == lines.file[1]; }))
        made.imports.push_back(lines);
    // A definition is seldom what is to be told; a line that both programs have is.
    auto of_both = [](const ExchangePart& part) { return part.count[0] > 0 && part.count[1] > 0; };
    std::stable_sort(
        made.parts.begin(), made.parts.end(), [&](const ExchangePart& x, const ExchangePart& y) {
          return std::pair(x.likelihood, of_both(x)) > std::pair(y.likelihood, of_both(y));
        });
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& x, const auto& y) { return x.likelihood > y.likelihood; });
  return groups;
}

// Parts do not overlap. What stands between two of them is b's, byte for byte.
std::map<std::string, std::string> exchange_text(const std::vector<ExchangeGroup>& groups) {
  // By the lines they stand at; one without lines of b's before the one behind it.
  using Order = std::pair<uint32_t, uint32_t>;
  std::map<const SourceFile*, std::map<Order, const ExchangePart*>> edits;
  auto add = [&](const std::vector<ExchangePart>& parts) {
    for (const ExchangePart& part : parts)
      edits[part.file[1]][{part.first[1], part.first[0]}] = &part;
  };
  // First, so that a group which asks for import lines themselves has the last word.
  for (const ExchangeGroup& group : groups) add(group.imports);
  for (const ExchangeGroup& group : groups) add(group.parts);
  std::map<std::string, std::string> out;
  for (const auto& [file, parts] : edits) {
    const auto lines = static_cast<uint32_t>(file->line_starts.size());
    std::string text;
    uint32_t next = 1;
    for (const auto& [order, part] : parts) {
      text += lines_of(*file, next, part->first[1] - next) + text_of(*part, 0);
      next = part->first[1] + part->count[1];
    }
    if (next <= lines) text += lines_of(*file, next, lines - next + 1);
    out[file->path] = std::move(text);
  }
  return out;
}

}  // namespace opguard
