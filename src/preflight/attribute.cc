#include "preflight/attribute.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "matcher/names.h"

namespace opguard {

// What an instruction is in source.
enum class Use : uint8_t {
  call,
  operation,  // BINARY_OP: a binary operator, an augmented assignment, from 3.14 on a subscript
  unary,
  compare,
  subscript_read,
  subscript_write,
  loop,       // for, comprehension, yield from, await
  condition,  // truth of an expression
  nothing,    // no form of ours: `what` says why it cannot be wrapped
};

struct OpcodeRule {
  std::string_view opcode;  // '*' at the end: any instruction that begins so
  Use use;
  const char* what;  // the reason given where no site is found
};

namespace {

// First match wins. CPython 3.8 to 3.14; specialised and instrumented names never reach the tracer.
constexpr OpcodeRule kRules[] = {
    {"CALL_INTRINSIC*", Use::nothing, "internal instruction"},
    {"CALL*", Use::call, "call without a site"},
    {"PRECALL", Use::call, "call without a site"},
    {"BINARY_SUBSCR", Use::subscript_read, "subscript without a site"},
    {"BINARY_SLICE", Use::subscript_read, "subscript without a site"},
    {"STORE_SUBSCR", Use::subscript_write, "subscript without a site"},
    {"STORE_SLICE", Use::subscript_write, "subscript without a site"},
    {"DELETE_SUBSCR", Use::nothing, "del"},
    {"BINARY_*", Use::operation, "operator without a site"},
    {"INPLACE_*", Use::operation, "operator without a site"},
    {"UNARY_NOT", Use::condition, "truth test"},
    {"UNARY_*", Use::unary, "operator without a site"},
    {"COMPARE_OP", Use::compare, "comparison without a site"},
    {"CONTAINS_OP", Use::nothing, "in test"},
    {"IS_OP", Use::nothing, "is test"},
    {"FOR_ITER", Use::loop, "loop without a site"},
    {"GET_ITER", Use::loop, "loop without a site"},
    {"GET_AITER", Use::loop, "loop without a site"},
    {"GET_YIELD_FROM_ITER", Use::loop, "loop without a site"},
    {"YIELD_FROM", Use::loop, "loop without a site"},
    {"SEND", Use::loop, "await"},
    {"POP_JUMP_*", Use::condition, "truth test"},
    {"JUMP_IF_*", Use::condition, "truth test"},
    {"TO_BOOL", Use::condition, "truth test"},
    {"BEFORE_WITH", Use::nothing, "with item"},
    {"BEFORE_ASYNC_WITH", Use::nothing, "with item"},
    {"SETUP_WITH", Use::nothing, "with item"},
    {"SETUP_ASYNC_WITH", Use::nothing, "with item"},
    {"WITH_*", Use::nothing, "with item"},
    {"LOAD_SPECIAL", Use::nothing, "with item"},
    {"LOAD_SUPER_ATTR", Use::nothing, "attribute read"},
    {"LOAD_ATTR", Use::nothing, "attribute read"},
    {"LOAD_METHOD", Use::nothing, "attribute read"},
    {"STORE_ATTR", Use::nothing, "attribute write"},
    {"DELETE_ATTR", Use::nothing, "del"},
    {"IMPORT_*", Use::nothing, "import"},
    {"FORMAT_*", Use::nothing, "formatting"},
    {"CONVERT_VALUE", Use::nothing, "formatting"},
    {"BUILD_*", Use::nothing, "building a container"},
    {"UNPACK_*", Use::nothing, "unpacking"},
    {"LIST_*", Use::nothing, "unpacking"},
    {"SET_UPDATE", Use::nothing, "unpacking"},
    {"DICT_*", Use::nothing, "unpacking"},
    {"MATCH_*", Use::nothing, "match pattern"},
    {"RAISE_VARARGS", Use::nothing, "raise"},
};

// Names ATen gives what Python writes as an operator; for interpreters that say no more than a
// line.
struct AtenName {
  std::string_view aten, name;  // name: operator_name of a site
};
constexpr AtenName kAtenNames[] = {
    {"add", "add"},
    {"sub", "sub"},
    {"rsub", "sub"},
    {"mul", "mul"},
    {"div", "div"},
    {"reciprocal", "div"},
    {"floor_divide", "floordiv"},
    {"remainder", "mod"},
    {"pow", "pow"},
    {"matmul", "matmul"},
    {"mm", "matmul"},
    {"bmm", "matmul"},
    {"neg", "neg"},
    {"bitwise_not", "invert"},
    {"lt", "lt"},
    {"le", "le"},
    {"gt", "gt"},
    {"ge", "ge"},
    {"eq", "eq"},
    {"ne", "ne"},
    {"bitwise_and", "and"},
    {"bitwise_or", "or"},
    {"bitwise_xor", "xor"},
    {"select", "getitem"},
    {"slice", "getitem"},
    {"index", "getitem"},
    {"index_put", "setitem"},
    {"copy", "setitem"},
    {"fill", "setitem"},
    {"unbind", "iter"},
};

const OpcodeRule* rule_of(std::string_view opcode) {
  for (const OpcodeRule& rule : kRules) {
    std::string_view pattern = rule.opcode;
    bool prefix = pattern.back() == '*';
    if (prefix) pattern.remove_suffix(1);
    if (prefix ? opcode.substr(0, pattern.size()) == pattern : opcode == pattern) return &rule;
  }
  return nullptr;
}

bool may_be(const Site& site, Use use) {
  switch (use) {
    case Use::call:
      return site.form == Form::call;
    case Use::operation:
      return site.form == Form::binary || site.form == Form::augment;
    case Use::unary:
      return site.form == Form::unary;
    case Use::compare:
      return site.form == Form::compare;
    case Use::subscript_read:
    case Use::subscript_write:
      return site.form == Form::subscript || site.form == Form::augment;
    case Use::loop:
      return site.form == Form::iterate;
    case Use::condition:
      return true;
    case Use::nothing:
      return false;
  }
  return false;
}

// Before 3.13 the span of an instruction may be its whole statement.
bool begins_with(const SourceFile& file, uint32_t at, std::string_view keyword) {
  std::string_view text = std::string_view(file.text).substr(at);
  constexpr std::string_view kAsync = "async";
  if (text.substr(0, kAsync.size()) == kAsync) {
    text.remove_prefix(kAsync.size());
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  }
  if (text.substr(0, keyword.size()) != keyword) return false;
  char next = text.size() > keyword.size() ? text[keyword.size()] : ' ';
  return !(next == '_' || (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
           (next >= '0' && next <= '9'));
}

std::string_view last_scope(std::string_view scope) {
  size_t dot = scope.rfind('.');
  return dot == std::string_view::npos ? scope : scope.substr(dot + 1);
}

bool is_comprehension(std::string_view scope) {
  return scope == "<listcomp>" || scope == "<setcomp>" || scope == "<dictcomp>" ||
         scope == "<genexpr>";
}

// "aten::mul_.Tensor" -> "mul"; a Python function's name stays.
std::string base_name(std::string_view callee) {
  constexpr std::string_view kAten = "aten::";
  if (callee.substr(0, kAten.size()) == kAten) {
    callee.remove_prefix(kAten.size());
    callee = callee.substr(0, callee.find('.'));
  }
  while (!callee.empty() && callee.back() == '_') callee.remove_suffix(1);
  return std::string(callee);
}

bool is_called(const Site& site, const std::string& callee) {
  std::string name = operator_name(site);
  if (name == callee) return true;
  std::string base = base_name(callee);
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (base.empty()) return false;
  if (name == base) return true;
  for (const AtenName& known : kAtenNames)
    if (known.aten == base && known.name == name) return true;
  return false;
}

}  // namespace

Attributor::Attributor(const SourceSet& sources, const std::vector<Site>& sites) : sites_(sites) {
  std::map<std::pair<std::string_view, std::string_view>, FileSites*> by_name;
  for (const SourceFile& file : sources.files) {
    FileSites& in = by_path_[file.path];
    in.file = &file;
    by_name[{file.package, file.name}] = &in;
  }
  for (uint32_t i = 0; i < sites.size(); ++i) {
    auto found = by_name.find({sites[i].package, sites[i].file});
    if (found != by_name.end()) found->second->sites.push_back(i);
  }
}

int64_t Attributor::find_exact(const FileSites& in, Span span, Form form,
                               const char* callee) const {
  int64_t found = -1;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.form != form || s.start != span.start || s.end != span.end) continue;
    if (!callee || s.callee == callee) return i;
    found = i;
  }
  return found;
}

// A call ends with its own ')', so its end tells it. Its start does not: for a method call over
// several lines CPython moves it to the method's name.
int64_t Attributor::find_call(const FileSites& in, Span span) const {
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.form == Form::call && s.end == span.end && s.start <= span.start && span.start < s.end)
      return i;
  }
  return -1;
}

// 3.12+: the span is the iterable. 3.11: the whole `for` statement or comprehension.
int64_t Attributor::find_loop(const FileSites& in, Span span) const {
  int64_t whole = -1, first = -1;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.form != Form::iterate) continue;
    if (s.operand_start == span.start && s.operand_end == span.end) return i;
    if (whole < 0 && s.start == span.start && s.end == span.end) whole = i;
    bool inside = span.start <= s.operand_start && s.operand_end <= span.end;
    // Of loops within loops the outermost has its iterable first.
    if (inside && (first < 0 || s.operand_start < sites_[static_cast<size_t>(first)].operand_start))
      first = i;
  }
  if (whole >= 0) return whole;
  bool statement = begins_with(*in.file, span.start, "for") ||
                   begins_with(*in.file, span.start, "yield") ||
                   begins_with(*in.file, span.start, "await");
  if (statement) return first;
  if (first < 0) return -1;
  // A comprehension: the outermost `for`; one inside its element stands in brackets of its own.
  int64_t best = -1;
  int depth_best = 0;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.form != Form::iterate || s.operand_start < span.start || s.operand_end > span.end)
      continue;
    int depth = 0;
    for (uint32_t at = span.start; at < s.operand_start; ++at) {
      char c = in.file->text[at];
      depth += c == '(' || c == '[' || c == '{';
      depth -= c == ')' || c == ']' || c == '}';
    }
    if (best < 0 || depth < depth_best) {
      best = i;
      depth_best = depth;
    }
  }
  return best;
}

// The site whose result is tested. 3.12+: it ends where the span ends. 3.11: the span is the whole
// statement; the condition is what stands before its ':'.
int64_t Attributor::find_condition(const FileSites& in, Span span) const {
  int64_t best = -1;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.end != span.end || s.start < span.start || s.form == Form::iterate) continue;
    if (best < 0 || s.start < sites_[static_cast<size_t>(best)].start) best = i;
  }
  bool statement = false;
  for (const char* keyword : {"if", "elif", "while", "assert"})
    statement = statement || begins_with(*in.file, span.start, keyword);
  if (!statement) return best;
  best = -1;
  uint32_t line = in.file->line_of(span.start);
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.start < span.start || s.end > span.end || s.line != line || s.form == Form::iterate)
      continue;
    size_t after = in.file->text.find_first_not_of(" \t)", s.end);
    if (after == std::string::npos || in.file->text[after] != ':') continue;
    if (best < 0 || s.end > sites_[static_cast<size_t>(best)].end ||
        (s.end == sites_[static_cast<size_t>(best)].end &&
         s.start < sites_[static_cast<size_t>(best)].start))
      best = i;
  }
  return best;
}

int64_t Attributor::find_innermost(const FileSites& in, Span span) const {
  int64_t best = -1;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    // A loop is applied to its iterable, whatever else its site spans.
    uint32_t start = s.form == Form::iterate ? s.operand_start : s.start;
    uint32_t end = s.form == Form::iterate ? s.operand_end : s.end;
    if (!s.refusal.empty() || start > span.start || end < span.end) continue;
    if (best < 0 || s.end - s.start < sites_[static_cast<size_t>(best)].end -
                                          sites_[static_cast<size_t>(best)].start)
      best = i;
  }
  return best;
}

int64_t Attributor::find(const FileSites& in, const OpcodeRule& rule, Span span) const {
  int64_t found = -1;
  switch (rule.use) {
    case Use::call:
      return find_call(in, span);
    case Use::operation:
      found = find_exact(in, span, Form::augment, nullptr);
      if (found < 0) found = find_exact(in, span, Form::binary, nullptr);
      if (found < 0) found = find_exact(in, span, Form::subscript, "[]");
      return found;
    case Use::unary:
      return find_exact(in, span, Form::unary, nullptr);
    case Use::compare:
      return find_exact(in, span, Form::compare, nullptr);
    case Use::subscript_read:
      return find_exact(in, span, Form::subscript, "[]");
    case Use::subscript_write:
      return find_exact(in, span, Form::subscript, "[]=");
    case Use::loop:
      return find_loop(in, span);
    case Use::condition:
      return find_condition(in, span);
    case Use::nothing:
      return -1;
  }
  return -1;
}

// Sites of the use's line and scope; the callee's name decides where it can. Too many do no harm: a
// probe that never fires costs nothing.
std::vector<uint32_t> Attributor::by_line(const FileSites& in, const TracedUse& use,
                                          const OpcodeRule* rule) const {
  std::vector<uint32_t> candidates, named, scoped;
  auto line = static_cast<uint32_t>(use.line);
  std::string_view scope = last_scope(use.scope);
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (!s.refusal.empty() || line < s.line || line > s.end_line) continue;
    if (rule ? !may_be(s, rule->use) : false) continue;
    candidates.push_back(i);
  }
  // A comprehension has a scope of its own in bytecode, not in the parser's eyes.
  if (!is_comprehension(scope))
    for (uint32_t i : candidates)
      if (last_scope(sites_[i].scope) == scope) scoped.push_back(i);
  if (!scoped.empty()) candidates = scoped;
  for (uint32_t i : candidates)
    if (is_called(sites_[i], use.callee)) named.push_back(i);
  return named.empty() ? candidates : named;
}

Attribution Attributor::attribute(const TracedUse& use) const {
  Attribution result;
  auto found = by_path_.find(use.path);
  if (found == by_path_.end()) {
    result.reason = "source not read";
    return result;
  }
  const FileSites& in = found->second;
  result.file = in.file;
  const OpcodeRule* rule = rule_of(use.opcode);
  if (rule && rule->use == Use::nothing) {
    result.reason = rule->what;
    return result;
  }
  if (use.column < 0 || use.end_line <= 0) {
    result.sites = by_line(in, use, rule);
    if (result.sites.empty()) result.reason = rule ? rule->what : "no site on its line";
    return result;
  }
  Span span{in.file->offset_of(static_cast<uint32_t>(std::max(use.line, 1)),
                               static_cast<uint32_t>(use.column)),
            in.file->offset_of(static_cast<uint32_t>(use.end_line),
                               static_cast<uint32_t>(std::max(use.end_column, 0)))};
  // Leaving a `with` block is a call whose span is the statement, up to 3.11.
  if (rule && rule->use == Use::call && begins_with(*in.file, span.start, "with")) {
    result.reason = "with item";
    return result;
  }
  int64_t site = rule ? find(in, *rule, span) : -1;
  if (site >= 0 && !sites_[static_cast<size_t>(site)].refusal.empty()) {
    result.reason = sites_[static_cast<size_t>(site)].refusal;
    return result;
  }
  if (site < 0) site = find_innermost(in, span);
  if (site >= 0)
    result.sites.push_back(static_cast<uint32_t>(site));
  else
    result.reason = rule ? rule->what : "no site at " + use.opcode;
  return result;
}

}  // namespace opguard
