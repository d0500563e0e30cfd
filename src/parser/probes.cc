// Finds our probes in a parsed file, undoes them, and tells which site each stands at.
//
//   y = og("attn.mul:a1", q) * k      delete `og("attn.mul:a1", ` and `)`
//   x = og.name("add:o5", x).iadd(y)  put back `x += y`
//   y = q * k                         parsed again: the site with operand q
//
// Every probe gives the ranges to delete. They are applied at once, from the front, and Undone says
// where an offset of the old text has come to lie. So the operand's place in the plain text is
// known without a search.
//
// Counterexample: to look for `og(` in the text. It may stand in a string, or be a function of the
// user's. A probe is a call of the name that our import line binds, with a string and an operand.
//
// The cost: two parses and two walks of a file that has probes; of another, a search for the line.
#include "parser/probes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "parser/comment_lines.h"
#include "parser/import_line.h"
#include "parser/probe_text.h"
#include "parser/tree.h"
#include "parser/walker.h"

namespace opguard {
namespace {

using Range = Probe::Range;

// A probe in an instrumented text, before its site is known.
struct Found {
  std::string boundary, variant;
  Range operand;  // in the instrumented text
  bool augment = false;
  std::vector<Range> undo;
};

class Finder {
 public:
  Finder(const SourceFile& source, std::string name) : text_(source.text), name_(std::move(name)) {}

  // An augmented name is an assignment and a call; as the first of them it is taken whole.
  void visit(Node node, std::vector<Found>& found) {
    if (node.kind() == Kind::assignment && find_name_augment(node, found)) return;
    if (node.kind() == Kind::call) find_wrap(node, found);
    for (Node child : node.named_children()) visit(child, found);
  }

 private:
  std::string_view text(Node node) const {
    return text_.substr(node.start(), node.end() - node.start());
  }

  struct Call {
    Node operand;
    std::string boundary, variant;
    bool aug;
  };

  // og("<id>", operand), og.name("<id>", operand), og.aug("<id>", operand), og.writes("<id>", ...
  std::optional<Call> probe_call(Node node) const {
    if (!node || node.kind() != Kind::call) return std::nullopt;
    Node function = node.field(Field::function), list = node.field(Field::arguments);
    // In `*og("id", x)[0]` the grammar gives the star to the name.
    if (function.kind() == Kind::list_splat && !function.named_children().empty())
      function = function.named_children().front();
    bool aug = false;
    std::string_view variant;
    if (function.kind() == Kind::attribute && is_name(function.field(Field::object))) {
      std::string_view attribute = text(function.field(Field::attribute));
      aug = attribute == "aug";
      const bool name = attribute == kNameProbe.substr(1);
      for (std::string_view known : kVariants)
        if (attribute == known.substr(1)) variant = known;
      if (!aug && !name && variant.empty()) return std::nullopt;
    } else if (!is_name(function)) {
      return std::nullopt;
    }
    if (list.kind() != Kind::argument_list) return std::nullopt;
    std::vector<Node> arguments = list.named_children();
    if (arguments.size() != 2 || arguments[0].kind() != Kind::string) return std::nullopt;
    std::string_view id = text(arguments[0]);
    if (id.size() < 2 || (id[0] != '"' && id[0] != '\'')) return std::nullopt;
    return Call{arguments[1], std::string(id.substr(1, id.size() - 2)), std::string(variant), aug};
  }

  // In `*og.step("id", x)` the star may belong to the name.
  bool is_name(Node node) const {
    if (node.kind() == Kind::list_splat && !node.named_children().empty())
      node = node.named_children().front();
    return node.kind() == Kind::identifier && text(node) == name_;
  }

  void find_wrap(Node node, std::vector<Found>& found) const {
    std::optional<Call> call = probe_call(node);
    if (!call) return;
    Node operand = call->operand;
    found.push_back(
        {call->boundary,
         call->variant,
         {operand.start(), operand.end(), ""},
         call->aug,
         {{expression_start(node), operand.start(), ""}, {operand.end(), node.end(), ""}}});
  }

  // x = og.name("<id>", x).iadd(value), and og("<id>", x).iadd(value) of trees patched before
  bool find_name_augment(Node node, std::vector<Found>& found) {
    Node left = node.field(Field::left), right = node.field(Field::right);
    if (!left || !right || left.kind() != Kind::identifier || right.kind() != Kind::call)
      return false;
    Node function = right.field(Field::function), list = right.field(Field::arguments);
    if (function.kind() != Kind::attribute) return false;
    std::optional<Call> call = probe_call(function.field(Field::object));
    if (!call || call->aug || text(call->operand) != text(left)) return false;
    std::string_view op = augment_operator(text(function.field(Field::attribute)));
    if (op.empty()) return false;
    Node equals;
    for (Node child : node.children())
      if (text(child) == "=") equals = child;
    // A generator's own parentheses are the call's too where it is the only argument.
    std::vector<Node> values = list.named_children();
    if (!equals || list.kind() != Kind::argument_list || values.size() != 1) return false;
    Node value = values[0];
    found.push_back({call->boundary,
                     call->variant,
                     {left.start(), left.end(), ""},
                     true,
                     {{equals.start(), equals.end(), std::string(op)},
                      {right.start(), value.start(), ""},
                      {value.end(), right.end(), ""}}});
    visit(value, found);
    return true;
  }

  std::string_view text_;
  std::string name_;
};

// Our import line: its name and its bytes with the line ending.
struct ImportLine {
  std::string name;
  Range range;
  bool with_comments = false;
};

uint32_t end_of_line(const SourceFile& source, uint32_t line) {
  return line < source.line_starts.size() ? source.line_starts[line]
                                          : static_cast<uint32_t>(source.text.size());
}

// The mark alone is not enough: a comment of the user's may hold it. It must end an import of ours.
std::optional<ImportLine> find_import(const SourceFile& source, const Tree& tree) {
  for (Node statement : tree.root().named_children()) {
    if (statement.kind() != Kind::import_from_statement) continue;
    uint32_t line = source.line_of(statement.start());
    std::string_view text = source.line_text(line);
    if (text.ends_with(kUnsorted)) text.remove_suffix(kUnsorted.size());
    const bool with_comments = text.ends_with(kWithComments);
    if (with_comments) text.remove_suffix(kWithComments.size());
    if (!text.ends_with(kImportMark)) continue;
    text.remove_suffix(kImportMark.size());
    while (text.ends_with(' ')) text.remove_suffix(1);
    constexpr std::string_view kPlain = "from opguard import og";
    constexpr std::string_view kAs = " as ";
    if (!text.starts_with(kPlain)) continue;
    text.remove_prefix(kPlain.size());
    std::string name(kProbeName);
    if (text.starts_with(kAs)) {
      name = text.substr(kAs.size());
    } else if (!text.empty()) {
      continue;
    }
    return ImportLine{
        name, {source.offset_of(line, 0), end_of_line(source, line), ""}, with_comments};
  }
  return std::nullopt;
}

// Applies deletions and replacements; tells where an offset of the old text comes to lie.
//   text "y = og(\"a1\", q) * k"    ranges [4, 13), [14, 15)    "y = q * k"
//   offset(13) is 4, offset(17) is 7
//
// An offset inside of a range comes to lie at its beginning, behind what replaces it. The cost: a
// sort of the ranges, then a binary search for each offset.
class Undone {
 public:
  Undone(const std::string& text, std::vector<Range> ranges) : ranges_(std::move(ranges)) {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.start < b.start; });
    uint32_t at = 0;
    for (const Range& range : ranges_) {
      if (range.start < at) continue;
      text_.append(text, at, range.start - at).append(range.replacement);
      at = range.end;
    }
    text_.append(text, at);
    int64_t shift = 0;
    for (const Range& range : ranges_) {
      shifts_.push_back(shift);
      shift += static_cast<int64_t>(range.replacement.size()) - (range.end - range.start);
    }
  }
  const std::string& text() const { return text_; }
  uint32_t offset(uint32_t old) const {
    auto behind = std::lower_bound(ranges_.begin(), ranges_.end(), old,
                                   [](const Range& r, uint32_t at) { return r.start < at; });
    if (behind == ranges_.begin()) return old;
    size_t last = static_cast<size_t>(behind - ranges_.begin()) - 1;
    const Range& range = ranges_[last];
    int64_t shift = shifts_[last] + static_cast<int64_t>(range.replacement.size()) -
                    (std::min(range.end, old) - range.start);
    return static_cast<uint32_t>(old + shift);
  }

 private:
  std::vector<Range> ranges_;
  std::vector<int64_t> shifts_;  // of all ranges before each
  std::string text_;
};

struct Instrumented {
  ImportLine import;
  std::vector<Found> found;
  std::vector<Range> comments;
  std::vector<Range> ranges() const {
    std::vector<Range> all = comments;
    all.push_back(import.range);
    for (const Found& f : found) all.insert(all.end(), f.undo.begin(), f.undo.end());
    return all;
  }
};

// Nothing when the file carries no probes, or (with a diagnostic) does not parse.
std::optional<Instrumented> find_probes(const SourceFile& source, Diagnostics& diags) {
  if (source.text.find(kImportMark) == std::string::npos) return std::nullopt;
  std::optional<Tree> tree = parse_tree(source, diags);
  if (!tree) return std::nullopt;
  std::optional<ImportLine> import = find_import(source, *tree);
  if (!import) return std::nullopt;
  Instrumented result{*import, {}, {}};
  Finder(source, import->name).visit(tree->root(), result.found);
  if (import->with_comments)
    for (uint32_t line : comment_lines(source, *tree))
      result.comments.push_back({source.offset_of(line, 0), end_of_line(source, line), ""});
  return result;
}

}  // namespace

std::optional<SourceFile> without_probes(const SourceFile& source, Diagnostics& diags) {
  size_t before = diags.items().size();
  std::optional<Instrumented> instrumented = find_probes(source, diags);
  if (!instrumented) {
    if (diags.items().size() != before) return std::nullopt;
    return source;
  }
  Undone undone(source.text, instrumented->ranges());
  return make_source(source.package, source.name, source.path, undone.text());
}

std::vector<Probe> parse_probes(const SourceFile& source, Probe::Range& import_range,
                                Diagnostics& diags) {
  std::optional<Instrumented> instrumented = find_probes(source, diags);
  if (!instrumented) return {};
  import_range = instrumented->import.range;
  Undone undone(source.text, instrumented->ranges());
  const SourceFile plain = make_source(source.package, source.name, source.path, undone.text());
  std::optional<Tree> tree = parse_tree(plain, diags);
  if (!tree) return {};
  const std::vector<Site> sites = Walker(plain, *tree).run();
  std::vector<Probe> probes;
  std::map<std::tuple<uint32_t, uint32_t, bool>, const Site*> by_operand;
  for (const Site& site : sites)
    by_operand[{site.operand_start, site.operand_end, site.form == Form::augment}] = &site;
  for (Found& found : instrumented->found) {
    Probe probe{std::move(found.boundary), std::move(found.variant), {}, std::move(found.undo)};
    uint32_t start = undone.offset(found.operand.start), end = undone.offset(found.operand.end);
    auto at = by_operand.find({start, end, found.augment});
    if (at != by_operand.end()) probe.site = *at->second;
    probes.push_back(std::move(probe));
  }
  return probes;
}

}  // namespace opguard
