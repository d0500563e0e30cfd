#include "suspects/exchange.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <functional>
#include <numeric>
#include <regex>
#include <set>
#include <string_view>

#include "patcher/line_diff.h"
#include "suspects/code.h"

namespace opguard {
namespace {

using Words = std::set<std::string, std::less<>>;

constexpr double kReworded = 8;  // so much less likely is a change that uses the same names
constexpr double kAgrees = 8;    // and one that was measured and agrees

bool is_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalnum(u) || c == '_' || u >= 0x80;
}

// Of code and strings; a comment names what it likes.
Words words_of(std::string_view text) {
  Words words;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i && !std::isdigit(static_cast<unsigned char>(text[i])))
      words.emplace(text.substr(i, end - i));
    // A '#' in a string cuts its line short: words are missed, none is invented.
    if (end == i && text[i] == '#') end = std::min(text.find('\n', i), text.size());
    i = std::max(end, i + 1);
  }
  return words;
}

// Names that the text gives a value: `def f`, `class C`, `x =`, `x: int =`.
Words made_in(const std::string& text) {
  static const std::regex kMade(R"((?:\b(?:def|class)\s+(\w+))|(?:(\w+)\s*(?::[^=\n]*)?=(?!=)))");
  Words names;
  for (std::sregex_iterator it(text.begin(), text.end(), kMade), end; it != end; ++it)
    names.insert((*it)[(*it)[1].matched ? 1 : 2].str());
  return names;
}

const SourceFile* file_of(const SourceSet& sources, const SourceText& text) {
  const SourceFile* file = sources.find(text.package, text.file);
  return file && file->path == text.path ? file : nullptr;
}

std::string lines_of(const SourceFile& file, uint32_t first, uint32_t count) {
  if (count == 0) return "";
  const size_t lines = file.line_starts.size();
  const size_t from = file.line_starts[first - 1];
  const size_t to =
      first - 1 + count < lines ? file.line_starts[first - 1 + count] : file.text.size();
  return file.text.substr(from, to - from);
}

bool covers(const LineSpan& span, uint32_t first, uint32_t count) {
  return count > 0 && span.meets({first, first + count - 1});
}

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
      return {first};
    const bool goes_on = line > first && file.line_text(line - 1).ends_with('\\');
    if (open == 0 && !goes_on && indent_of(text) < text.size()) found.push_back(line);
    for (char c : text)
      open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
  }
  return found;
}

// What can be meant by a name where a side's lines of a part stand: the function around them, all
// of the file outside of any.
std::string text_around(const Code& code, const ExchangePart& part, int side) {
  const SourceFile& source = *part.file[side];
  const std::optional<uint32_t> file = code.find(source.path);
  if (!file) return source.text;
  const std::vector<Scope>& scopes = code.files()[*file].scopes;
  uint32_t at = code.files()[*file].scope_at(part.first[side]);
  while (scopes[at].kind == Scope::Kind::klass) at = scopes[at].parent;
  const LineSpan& lines = scopes[at].lines;
  return lines_of(source, lines.first, lines.last - lines.first + 1);
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
  if (of_a.size() * of_b.size() > 1 << 16) return {};
  // best[i][k]: of the lines from i and k on.
  std::vector<std::vector<double>> best(of_a.size() + 1, std::vector<double>(of_b.size() + 1, 0)),
      like = best;
  for (size_t i = of_a.size(); i-- > 0;)
    for (size_t k = of_b.size(); k-- > 0;) {
      const std::string_view x = a.line_text(of_a[i]), y = b.line_text(of_b[k]);
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
  auto behind = [](const std::vector<uint32_t>& of, uint32_t line, uint32_t last) {
    const auto next = std::upper_bound(of.begin(), of.end(), line);
    return next == of.end() ? last : *next;
  };
  const auto alike = alike_lines(a, b, change);
  std::vector<std::pair<uint32_t, uint32_t>> at = {{change.first_a, change.first_b}};
  for (size_t i = 0; i < alike.size(); ++i) {
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

// Every change of the files that have suspects, and of those that both programs call by one name.
std::vector<ExchangePart> all_parts(const ProgramTexts& texts,
                                    const std::vector<Suspect>& suspects) {
  std::map<const SourceFile*, const SourceFile*> pairs;  // of b: of a
  for (const Suspect& suspect : suspects) {
    const SourceFile* files[2];
    for (int side : {0, 1}) files[side] = file_of(texts.sources[side], suspect.sides[side]);
    if (files[0] && files[1]) pairs[files[1]] = files[0];
  }
  for (const SourceFile& file : texts.sources[1].files)
    if (const SourceFile* other = texts.sources[0].find(file.package, file.name))
      pairs.try_emplace(&file, other);
  std::vector<ExchangePart> parts;
  for (const SourceFile& file : texts.sources[1].files)
    if (const auto at = pairs.find(&file); at != pairs.end())
      for (const LineChange& change : changed_lines(at->second->text, file.text))
        add_parts(*at->second, file, change, parts);
  return parts;
}

bool is_of(const ExchangePart& part, const Suspect& suspect) {
  if (suspect.whole || suspect.nearness == Nearness::unseen) return false;
  for (int side : {0, 1})
    if (part.file[side]->path != suspect.sides[side].path) return false;
  return covers(suspect.sides[0].lines, part.first[0], part.count[0]) ||
         covers(suspect.sides[1].lines, part.first[1], part.count[1]);
}

LineSpan span_of(const ExchangePart& part, int side) {
  if (part.count[side] == 0) return {};
  return {part.first[side], part.first[side] + part.count[side] - 1};
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

// Joins the changes that use a name which one program alone has. In its own file first; a file
// that does not make the name has it from those that do.
void join_by_names(const std::vector<ExchangePart>& changes, int side, Union& groups) {
  Words there;
  for (const ExchangePart& change : changes) there.merge(words_of(change.file[1 - side]->text));
  using Uses = std::map<const SourceFile*, std::vector<size_t>>;
  std::map<std::string, Uses> uses;
  std::map<std::string, std::set<const SourceFile*>> makers;
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::string text = text_of(changes[i], side);
    for (const std::string& word : words_of(text))
      if (!there.contains(word)) uses[word][changes[i].file[side]].push_back(i);
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

std::string text_of(const ExchangePart& part, int side) {
  return lines_of(*part.file[side], part.first[side], part.count[side]);
}

std::vector<ExchangeGroup> exchange_groups(const ProgramTexts& texts,
                                           const std::vector<Suspect>& suspects) {
  std::vector<ExchangePart> parts = all_parts(texts, suspects);
  Union joined(parts.size());
  for (int side : {0, 1}) join_by_names(parts, side, joined);
  join_moved(parts, joined);
  const Code code[2] = {Code(texts.sources[0]), Code(texts.sources[1])};
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
  for (const ExchangeGroup& group : groups)
    for (const ExchangePart& part : group.parts)
      edits[part.file[1]][{part.first[1], part.first[0]}] = &part;
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

ExchangeSearch::ExchangeSearch(std::vector<double> likelihood)
    : likelihood_(std::move(likelihood)), left_(likelihood_.size()) {
  std::iota(left_.begin(), left_.end(), size_t{0});
}

std::vector<size_t> ExchangeSearch::next() const {
  if (left_.empty() || found()) return {};
  if (left_.size() == 1) return left_;
  double all = 0;
  for (size_t i : left_) all += likelihood_[i];
  // Those of the likeliest that come nearest to half of it.
  std::vector<size_t> half;
  double sum = 0;
  for (size_t i : left_) {
    const double more = sum + likelihood_[i];
    if (!half.empty() &&
        (std::abs(more - all / 2) > std::abs(sum - all / 2) || half.size() + 1 == left_.size()))
      break;
    half.push_back(i);
    sum = more;
  }
  return half;
}

double ExchangeSearch::share(const std::vector<size_t>& asked) const {
  double all = 0, some = 0;
  for (size_t i : left_) all += likelihood_[i];
  for (size_t i : asked) some += likelihood_[i];
  return all == 0 ? 0 : some / all;
}

void ExchangeSearch::tell(const std::vector<size_t>& asked, bool healed) {
  if (healed) {
    left_ = asked;
    healed_ = true;
    return;
  }
  std::erase_if(left_,
                [&](size_t i) { return std::find(asked.begin(), asked.end(), i) != asked.end(); });
}

std::optional<size_t> ExchangeSearch::found() const {
  if (!healed_ || left_.size() != 1) return std::nullopt;
  return left_.front();
}

std::vector<size_t> ExchangeSearch::healed() const {
  return healed_ ? left_ : std::vector<size_t>();
}

uint32_t ExchangeSearch::most_runs() const {
  // Each run halves what is left, and one must have been healed.
  return static_cast<uint32_t>(std::bit_width(left_.empty() ? 0 : left_.size() - 1)) + !healed_;
}

}  // namespace opguard
