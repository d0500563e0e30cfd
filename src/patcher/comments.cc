// Words for an operator, and the line above which they go.
//
//   x + self.attn(q, k)       "x + self.attn(q, k)"
//   f(a long list of things)  "f(...)": only a short argument list is shown
//   for b in loader:          "each item of loader"
//   if x > 0:                 "whether x > 0 is true"
//
// A text is cut at its first line end, `#` or byte beyond ASCII. Cut inside a bracket, it ends with
// that bracket closed: "f(...)" and not "f(a, (b".
//
// Counterexample: a line inside a string, or behind a backslash. A comment there would be text, or
// an error. So it goes above the nearest line before it that may have one, and comments of several
// sites share that line. A file that has such comments of its own gets none: ours could not be
// taken out.
#include "patcher/comments.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "parser/comment_lines.h"
#include "parser/probe_text.h"
#include "parser/tree.h"

namespace opguard {
namespace {

constexpr size_t kLineBytes = 100;    // longer comments go on in a line of their own
constexpr size_t kOperandBytes = 40;  // of an operand's text, and of what stands behind it
constexpr size_t kRestBytes = 28;
constexpr std::string_view kMore = "...";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f' || c == '\r' || c == '\n'; }

// The outermost bracket that is still open at the end; npos: none is.
size_t open_bracket(std::string_view text) {
  std::vector<size_t> open;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') open.push_back(i);
    if ((text[i] == ')' || text[i] == ']' || text[i] == '}') && !open.empty()) open.pop_back();
  }
  return open.empty() ? std::string_view::npos : open.front();
}

// The text up to its first line end, '#' or byte beyond ASCII, and at most so many bytes: "f(...)",
// "a + b...".
std::string cut(std::string_view text, size_t most) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  size_t end = 0;
  while (end < text.size() && text[end] != '\n' && text[end] != '\r' && text[end] != '#' &&
         (text[end] == '\t' || (text[end] >= ' ' && text[end] < 0x7f)))
    ++end;
  if (end == text.size() && end <= most) return std::string(text);
  end = std::min(end, most);
  while (end > 0 && (is_blank(text[end - 1]) || text[end - 1] == '\\')) --end;
  const size_t bracket = open_bracket(text.substr(0, end));
  if (bracket == std::string_view::npos) return std::string(text.substr(0, end)).append(kMore);
  const char closing = text[bracket] == '(' ? ')' : text[bracket] == '[' ? ']' : '}';
  return std::string(text.substr(0, bracket + 1)).append(kMore) + closing;
}

// "self.attn(...)"; of a chain its last link, ".view(2, -1)". A short argument list is shown.
std::string call_text(std::string_view operand, std::string_view rest, const Site& site) {
  if (site.callee.starts_with('@')) return "@" + cut(operand, kOperandBytes);
  const bool named = !site.callee.empty() &&
                     operand.find_first_of(site.callee.starts_with('.') ? "([{\r\n" : "\r\n") !=
                         std::string_view::npos;
  const std::string callee = cut(named ? site.callee : operand, kOperandBytes);
  const std::string arguments = cut(rest, kRestBytes);
  return callee + (arguments == rest ? arguments : "(...)");
}

// Behind what may part two tokens: blanks, joined lines, comments.
std::string_view next_token(std::string_view text) {
  while (!text.empty() && (is_blank(text.front()) || text.front() == '\\' || text.front() == '#'))
    text.remove_prefix(text.front() == '#' ? std::min(text.find_first_of("\r\n"), text.size()) : 1);
  return text;
}

// "x + self.attn(...)".
std::string binary_text(std::string_view operand, std::string_view rest, const Site& site) {
  std::string shown = cut(operand, kOperandBytes) + " " + site.callee + " ";
  rest = next_token(rest);
  if (!rest.starts_with(site.callee)) return shown.append(kMore);
  return shown + cut(next_token(rest.substr(site.callee.size())), kRestBytes);
}

std::string operator_text(const std::string& text, const Site& site) {
  const std::string_view whole(text);
  const std::string_view operand =
      whole.substr(site.operand_start, site.operand_end - site.operand_start);
  const std::string_view rest = site.operand_end < site.end
                                    ? whole.substr(site.operand_end, site.end - site.operand_end)
                                    : std::string_view();
  const std::string shown = cut(operand, kOperandBytes);
  switch (site.form) {
    case Form::call:
      return call_text(operand, rest, site);
    case Form::binary:
    case Form::compare:
      return binary_text(operand, rest, site);
    case Form::iterate:
      return "each item of " + shown;
    case Form::enter:
      return "entering and leaving " + shown;
    case Form::truth:
      return "whether " + shown + " is true";
    case Form::format:
      return "the text of " + shown;
    case Form::read:
      return shown + cut(site.callee, kRestBytes);
    case Form::write:
      return shown + cut(site.callee.substr(0, site.callee.size() - 1), kRestBytes) + " = ...";
    case Form::subscript:
      return shown + cut(rest, kRestBytes) + (site.callee == "[]=" ? " = ..." : "");
    case Form::contains:
      return "... in " + shown;
    case Form::unary:
    case Form::augment:
    case Form::await:
      return cut(whole.substr(site.start, site.end - site.start), kOperandBytes + kRestBytes);
  }
  return shown;
}

std::string_view meaning_of(std::string_view variant) {
  if (variant == ".writes") return " and what it writes into its arguments";
  if (variant == ".step") return ", with which a training step ends";
  if (variant == ".micro_batch") return ", with which a micro-batch ends";
  return "";
}

// The lines that say it all, behind these blanks.
std::string comment_text(std::string_view blanks, const std::vector<std::string>& items,
                         const std::string& newline) {
  const std::string begin = std::string(blanks).append(kCommentMark) + "records ";
  std::string text, line;
  for (const std::string& item : items) {
    const bool full = !line.empty() && line.size() + 2 + item.size() > kLineBytes;
    if (full) text += line + newline;
    if (full || line.empty())
      line = begin + item;
    else
      line += ", " + item;
  }
  return text + line + newline;
}

// What the name in the source is, for who never saw it: below the import line.
std::string preface(const ImportPlace& place) {
  const std::string mark(kCommentMark);
  return mark + place.name +
         "(\"<id>\", x) stands in for x: it records what the one operator that" + place.newline +
         mark + "is applied to it takes and returns, and changes nothing." + place.newline;
}

}  // namespace

std::string recorded_text(const std::string& text, const Wrap& wrap) {
  return operator_text(text, wrap.site).append(meaning_of(wrap.variant));
}

std::vector<Edit> comment_edits(const SourceFile& plain, const std::vector<Wrap>& wraps,
                                const ImportPlace& place, Diagnostics& diags) {
  std::optional<Tree> tree = parse_tree(plain, diags);
  if (!tree) return {};
  if (const std::vector<uint32_t> own = comment_lines(plain, *tree); !own.empty()) {
    Diagnostic note = diagnostic_at(plain, plain.offset_of(own[0], 0), 0,
                                    "reads like a comment of the tool's own: the file's probes "
                                    "get no comments");
    note.severity = Severity::note;
    diags.add(std::move(note));
    return {};
  }
  const std::vector<bool> open = lines_open_to_comments(plain, *tree);
  std::vector<const Wrap*> in_order;
  for (const Wrap& wrap : wraps) in_order.push_back(&wrap);
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const Wrap* a, const Wrap* b) { return a->site.order < b->site.order; });
  std::map<uint32_t, std::vector<std::string>> items;  // by 1-based line
  for (const Wrap* wrap : in_order) {
    uint32_t line = plain.line_of(wrap->site.operand_start);
    while (line > 1 && !open[line - 1]) --line;
    std::vector<std::string>& above = items[line];
    std::string item = recorded_text(plain.text, *wrap);
    if (std::find(above.begin(), above.end(), item) == above.end())
      above.push_back(std::move(item));
  }
  std::vector<Edit> edits = {{place.offset, 0, preface(place), kPrefaceNesting}};
  for (const auto& [line, above] : items) {
    const uint32_t start = plain.offset_of(line, 0);
    if (start < place.offset) continue;  // above our import line
    std::string_view text = plain.line_text(line);
    edits.push_back(
        {start, 0,
         comment_text(text.substr(0, text.find_first_not_of(kBlanks)), above, place.newline),
         kCommentNesting});
  }
  return edits;
}

}  // namespace opguard
