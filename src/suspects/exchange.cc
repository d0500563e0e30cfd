#include "suspects/exchange.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <numeric>
#include <regex>
#include <set>
#include <string_view>
#include <tuple>

#include "suspects/code.h"
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

bool is_of(const ExchangePart& part, const Suspect& suspect) {
  if (suspect.whole || suspect.nearness == Nearness::unseen) return false;
  for (int side : {0, 1})
    if (part.file[side]->path != suspect.sides[side].path) return false;
  return suspect.sides[0].lines.meets(span_of(part, 0)) ||
         suspect.sides[1].lines.meets(span_of(part, 1));
}

class Union {
 public:
  explicit Union(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t i, size_t k) {
    parent_[std::max(find(i), find(k))] = std::min(find(i), find(k));
  }

 private:
  std::vector<size_t> parent_;
};

// Changes of layout, comments, docstrings and annotations.
void leave_out_same_code(const Code (&code)[2], std::vector<ExchangePart>& parts) {
  std::erase_if(parts, [&](const ExchangePart& part) {
    const auto a = code[0].find(part.file[0]->path), b = code[1].find(part.file[1]->path);
    return a && b &&
           same_code(code[0].files()[*a], span_of(part, 0), code[1].files()[*b], span_of(part, 1));
  });
}

// Joins the changes that use a name which one program alone has. In its own file first; a file
// that does not make the name has it from those that do.
void join_by_names(const std::vector<ExchangePart>& changes, int side, const SharedImports& imports,
                   Union& groups) {
  Words there;
  for (const ExchangePart& change : changes) there.merge(words_of(change.file[1 - side]->text));
  using Uses = std::map<const SourceFile*, std::vector<size_t>>;
  std::map<std::string, Uses> uses;
  std::map<std::string, std::set<const SourceFile*>> makers;
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::string text = text_of(changes[i], side);
    for (const std::string& word : words_of(text))
      if (!there.contains(word) && !changes[i].renamed.contains(word) &&
          !imports.has(side, changes[i].file[side], word))
        uses[word][changes[i].file[side]].push_back(i);
    for (const std::string& word : made_in(text))
      if (!there.contains(word)) makers[word].insert(changes[i].file[side]);
  }
  for (const auto& [word, files] : uses)
    for (const auto& [file, all] : files) {
      for (size_t i : all) groups.join(all.front(), i);
      const auto& made = makers[word];
      if (made.contains(file)) continue;
      for (const SourceFile* maker : made)
        for (size_t i : files.at(maker)) groups.join(all.front(), i);
    }
}

// Joins the changes of a function that make and use a local name which the other program's function
// has not, wherever else it has it.
//   a  total = x + y        b  return x + y
//      return total
void join_by_locals(const std::vector<ExchangePart>& changes, int side, const Code (&code)[2],
                    const SharedImports& imports, Union& groups) {
  struct Local {
    std::vector<size_t> uses;
    bool made = false;
  };
  std::map<std::tuple<const SourceFile*, uint32_t, std::string>, Local> locals;
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::string text = text_of(changes[i], side);
    if (text.empty()) continue;
    const uint32_t around = names_around(code[side], changes[i], side).first;
    const Words there = words_of(text_around(code[1 - side], changes[i], 1 - side));
    const Words made = made_in(text);
    for (const std::string& word : words_of(text)) {
      if (there.contains(word) || changes[i].renamed.contains(word) ||
          imports.has(side, changes[i].file[side], word))
        continue;
      Local& local = locals[{changes[i].file[side], around, word}];
      local.uses.push_back(i);
      local.made |= made.contains(word);
    }
  }
  for (const auto& [name, local] : locals)
    if (local.made)
      for (size_t i : local.uses) groups.join(local.uses.front(), i);
}

// A name that b's program gets in another place (a statement that moved): taken back in the one
// place alone it would be missing.
void join_moved(const std::vector<ExchangePart>& changes, Union& groups) {
  std::map<std::pair<const SourceFile*, std::string>, std::vector<size_t>> makers[2];
  for (size_t i = 0; i < changes.size(); ++i) {
    Words made[2];
    for (int side : {0, 1}) made[side] = made_in(text_of(changes[i], side));
    for (int side : {0, 1})
      for (const std::string& name : made[side])
        if (!made[1 - side].contains(name)) makers[side][{changes[i].file[1], name}].push_back(i);
  }
  for (const auto& [name, there] : makers[1]) {
    for (size_t i : there) groups.join(there.front(), i);
    if (const auto at = makers[0].find(name); at != makers[0].end())
      for (size_t i : at->second) groups.join(there.front(), i);
  }
}

// The lines of the statements of several lines; of a compound one those of its header.
std::vector<LineSpan> long_statements(const CodeFile& file) {
  std::vector<LineSpan> spans;
  if (!file.tree) return spans;
  for (uint32_t i = 0; i < file.tree->items().size(); ++i) {
    if (!is_statement(file.node(i))) continue;
    const LineSpan span = file.statement_lines(i);
    if (span.last > span.first) spans.push_back(span);
  }
  return spans;
}

// A side without lines stands before its `first`.
bool inside(const ExchangePart& part, int side, const LineSpan& statement) {
  return part.count[side] > 0
             ? statement.meets(span_of(part, side))
             : statement.first < part.first[side] && part.first[side] <= statement.last;
}

// Has one of two changes of a statement what the other one misses?
//   a  f(query,        b  f(query,        `key,` left one place and came to another: in one alone
//        key,               value,        the call has it twice, or not at all
//        value)             key)
bool need_each_other(const ExchangePart& x, const ExchangePart& y) {
  auto of_one_side = [](const ExchangePart& part, int side) { return part.count[1 - side] == 0; };
  if (of_one_side(x, 0) && of_one_side(y, 1)) return true;
  if (of_one_side(x, 1) && of_one_side(y, 0)) return true;
  auto gives = [](const ExchangePart& from, const ExchangePart& to) {
    const Words lost = words_of(text_of(from, 0)), kept = words_of(text_of(from, 1));
    const Words had = words_of(text_of(to, 0)), gained = words_of(text_of(to, 1));
    return std::any_of(lost.begin(), lost.end(), [&](const std::string& word) {
      return !kept.contains(word) && gained.contains(word) && !had.contains(word);
    });
  };
  return gives(x, y) || gives(y, x);
}

void join_in_statements(const std::vector<ExchangePart>& changes, const Code (&code)[2],
                        Union& groups) {
  for (int side : {0, 1}) {
    std::map<const SourceFile*, std::vector<size_t>> of_file;
    for (size_t i = 0; i < changes.size(); ++i) of_file[changes[i].file[side]].push_back(i);
    for (const auto& [source, all] : of_file) {
      const auto file = code[side].find(source->path);
      if (all.size() < 2 || !file) continue;
      for (const LineSpan& statement : long_statements(code[side].files()[*file])) {
        std::vector<size_t> held;
        for (size_t i : all)
          if (inside(changes[i], side, statement)) held.push_back(i);
        for (size_t i = 0; i < held.size(); ++i)
          for (size_t k = i + 1; k < held.size(); ++k)
            if (need_each_other(changes[held[i]], changes[held[k]])) groups.join(held[i], held[k]);
      }
    }
  }
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
  undo_renames(code, parts);
  const SharedImports imports = take_imports(code, parts);
  Union joined(parts.size());
  for (int side : {0, 1}) {
    join_by_names(parts, side, imports, joined);
    join_by_locals(parts, side, code, imports, joined);
  }
  join_moved(parts, joined);
  join_in_statements(parts, code, joined);
  struct Found {
    std::vector<std::pair<size_t, size_t>> order;  // suspect, part
    std::string text[2];
    Words around[2];
    bool agrees = true;  // every part
  };
  std::map<size_t, Found> found;  // by a group's first part
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t of = 0;
    while (of < suspects.size() && !is_of(parts[i], suspects[of])) ++of;
    parts[i].suspect = of < suspects.size();
    Found& group = found[joined.find(i)];
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
    for (const ExchangePart& lines : imports.parts)
      if (std::any_of(made.parts.begin(), made.parts.end(),
                      [&](const ExchangePart& part) { return part.file[1] == lines.file[1]; }))
        made.imports.push_back(lines);
    // A definition is seldom what is to be told; a line that both programs have is.
    std::stable_partition(made.parts.begin(), made.parts.end(), [](const ExchangePart& part) {
      return part.suspect && part.count[0] > 0 && part.count[1] > 0;
    });
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& x, const auto& y) { return x.likelihood > y.likelihood; });
  return groups;
}

std::map<std::string, std::string> exchange_text(const std::vector<ExchangeGroup>& groups) {
  // By the lines they stand at; one without lines of b's before the one behind it.
  using Order = std::pair<uint32_t, uint32_t>;
  std::map<const SourceFile*, std::map<Order, const ExchangePart*>> edits;
  auto add = [&](const std::vector<ExchangePart>& parts) {
    for (const ExchangePart& part : parts)
      edits[part.file[1]][{part.first[1], part.first[0]}] = &part;
  };
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
