// Finds the site of an instruction by what CPython tells of its place, a way for each kind.
//
//   find_exact       start and end are the site's       a + b, x[i], -x
//   find_ending      the end alone                      a call or attribute over several lines
//   find_operand     the operand is the span            if x:, with f():  (3.12 and later)
//   find_beginning   the start alone                    the same in 3.11: the whole statement
//   find_innermost   the smallest site around it        an instruction without a rule
//
//   for t in zip(a, b):      FOR_ITER at `zip(a, b)` in 3.12, at the whole statement in 3.11
//
// Counterexample: the operands of `if a and (b or c)`. The jumps of a later one carry the span of
// the first, so all operands of that test are given. Too many sites do no harm: a probe that never
// fires costs nothing, and one that is missing loses an operator.
#include "preflight/attribute.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "preflight/called_as.h"
#include "preflight/opcode_rules.h"

namespace opguard {

namespace {

// Before 3.13 the span of an instruction may be its whole statement.
// "for" of `for x in y` and of `async for x in y`, and not of `format(x)`.
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
    if (found == by_name.end()) continue;
    found->second->sites.push_back(i);
    found->second->by_end.emplace(sites[i].end, i);
    found->second->by_operand.emplace(sites[i].operand_end, i);
  }
}

std::vector<uint32_t> Attributor::find_exact(const FileSites& in, Span span, Form form,
                                             const char* callee) const {
  Found found;
  auto [first, last] = in.by_end.equal_range(span.end);
  for (auto it = first; it != last; ++it) {
    const Site& s = sites_[it->second];
    if (s.form == form && s.start == span.start && (!callee || s.callee == callee))
      found.push_back(it->second);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// For an attribute over several lines CPython moves the start to its name.
std::vector<uint32_t> Attributor::find_ending(const FileSites& in, Span span, Form form) const {
  Found found;
  auto [first, last] = in.by_end.equal_range(span.end);
  for (auto it = first; it != last; ++it) {
    const Site& s = sites_[it->second];
    if (s.form == form && s.start <= span.start && span.start < s.end) found.push_back(it->second);
  }
  return found;
}

// Of `t[i] += v` the item's reading and writing.
std::vector<uint32_t> Attributor::find_augment(const FileSites& in, Span span) const {
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.form == Form::augment && s.start == span.start && s.operand_end < span.end &&
        span.end < s.end)
      return {i};
  }
  return {};
}

std::vector<uint32_t> Attributor::find_operand(const FileSites& in, Span span, Form form) const {
  Found found;
  auto [first, last] = in.by_operand.equal_range(span.end);
  for (auto it = first; it != last; ++it) {
    const Site& s = sites_[it->second];
    if (s.form == form && s.operand_start == span.start) found.push_back(it->second);
  }
  return found;
}

// All that begin where the statement does, which is all that 3.11 tells.
std::vector<uint32_t> Attributor::find_beginning(const FileSites& in, Span span, Form form) const {
  Found found;
  for (uint32_t i : in.sites)
    if (sites_[i].form == form && sites_[i].start == span.start && sites_[i].end <= span.end)
      found.push_back(i);
  return found;
}

// A call ends with its own ')', so its end tells it. Its start does not: for a method call over
// several lines CPython moves it to the method's name. A decorator is called where it ends, too.
std::vector<uint32_t> Attributor::find_call(const FileSites& in, Span span) const {
  return find_ending(in, span, Form::call);
}

// 3.12+: the span is the iterable. 3.11: the whole `for` statement or comprehension.
std::vector<uint32_t> Attributor::find_loop(const FileSites& in, Span span) const {
  auto found = [](int64_t i) { return i < 0 ? Found() : Found{static_cast<uint32_t>(i)}; };
  int64_t whole = -1, first = -1;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.form != Form::iterate || s.callee == kUnpack) continue;
    if (s.operand_start == span.start && s.operand_end == span.end) return {i};
    if (whole < 0 && s.start == span.start && s.end == span.end) whole = i;
    bool inside = span.start <= s.operand_start && s.operand_end <= span.end;
    // Of loops within loops the outermost has its iterable first.
    if (inside && (first < 0 || s.operand_start < sites_[static_cast<size_t>(first)].operand_start))
      first = i;
  }
  if (whole >= 0) return found(whole);
  bool statement = begins_with(*in.file, span.start, "for") ||
                   begins_with(*in.file, span.start, "yield") ||
                   begins_with(*in.file, span.start, "await");
  if (statement || first < 0) return found(first);
  // A comprehension: the outermost `for`; one inside its element stands in brackets of its own.
  int64_t best = -1;
  int depth_best = 0;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.form != Form::iterate || s.callee == kUnpack || s.operand_start < span.start ||
        s.operand_end > span.end)
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
  return found(best);
}

// 3.12+: the span is the tested expression. 3.11: the whole statement, conditional expression or
// comprehension, whose tests are then all meant.
std::vector<uint32_t> Attributor::find_truth(const FileSites& in, Span span) const {
  Found found = find_operand(in, span, Form::truth);
  if (found.empty()) found = find_exact(in, span, Form::truth, nullptr);
  for (const char* keyword : {"if", "elif", "while", "assert"})
    if (found.empty() && begins_with(*in.file, span.start, keyword))
      found = find_beginning(in, span, Form::truth);
  return found.empty() ? find_tested_together(in, span) : found;
}

// The test whose expression ends there: of a method call over several lines only the end is told.
std::vector<uint32_t> Attributor::find_tested(const FileSites& in, const TracedSpan& tested) const {
  if (tested.line <= 0 || tested.column < 0 || tested.end_column < 0) return {};
  const Span span{
      in.file->offset_of(static_cast<uint32_t>(tested.line), static_cast<uint32_t>(tested.column)),
      in.file->offset_of(static_cast<uint32_t>(std::max(tested.end_line, 1)),
                         static_cast<uint32_t>(tested.end_column))};
  Found found;
  auto [first, last] = in.by_operand.equal_range(span.end);
  for (auto it = first; it != last; ++it) {
    const Site& s = sites_[it->second];
    if (s.form == Form::truth && s.operand_start <= span.start) found.push_back(it->second);
  }
  return found;
}

// Where `and` and `or` are nested in a test, the jumps of a later operand carry the span of the
// first one. That may be no site: then it is all operands of that test. A span inside an operand is
// another matter.
std::vector<uint32_t> Attributor::find_tested_together(const FileSites& in, Span span) const {
  Found found;
  uint32_t shortest = UINT32_MAX;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    if (s.form != Form::truth || s.start > span.start || span.end > s.end) continue;
    if (s.operand_start <= span.start && span.end <= s.operand_end) return {};
    if (s.end - s.start > shortest) continue;
    if (s.end - s.start < shortest) found.clear();
    shortest = s.end - s.start;
    found.push_back(i);
  }
  return found;
}

// 3.12+: the span is the item's expression. 3.11: the whole statement.
std::vector<uint32_t> Attributor::find_context(const FileSites& in, Span span) const {
  Found found = find_operand(in, span, Form::enter);
  if (found.empty() && begins_with(*in.file, span.start, "with"))
    found = find_beginning(in, span, Form::enter);
  return found;
}

// The span is the target, which stands at the statement's start or between two '='; one inside
// another does not.
std::vector<uint32_t> Attributor::find_unpacking(const FileSites& in, Span span) const {
  size_t after = in.file->text.find_first_not_of(" \t\\\r\n", span.end);
  if (after == std::string::npos || in.file->text[after] != '=') return {};
  size_t before = span.start == 0 ? std::string::npos
                                  : in.file->text.find_last_not_of(" \t\\\r\n", span.start - 1);
  bool chained = before != std::string::npos && in.file->text[before] == '=';
  Found found;
  uint32_t shortest = UINT32_MAX;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    bool around = s.callee == kUnpack && s.form == Form::iterate && s.start <= span.start &&
                  span.end <= s.operand_start && in.file->text[s.start] != '*';
    bool whole = s.start == span.start || chained;
    if (!around || !whole || s.end - s.start >= shortest) continue;
    shortest = s.end - s.start;
    found = {i};
  }
  return found;
}

// The span is the whole display or call: its own stars, not those in brackets inside it.
std::vector<uint32_t> Attributor::find_stars(const FileSites& in, Span span) const {
  Found found;
  int least = INT32_MAX;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    bool inside = s.form == Form::iterate && s.callee == kUnpack && in.file->text[s.start] == '*' &&
                  span.start <= s.start && s.end <= span.end;
    if (!inside) continue;
    // Brackets still open: what is closed before the star is a receiver or another argument.
    int depth = 0;
    for (uint32_t at = span.start; at < s.start; ++at) {
      char c = in.file->text[at];
      depth += c == '(' || c == '[' || c == '{';
      depth -= c == ')' || c == ']' || c == '}';
    }
    if (depth < least) found.clear();
    least = std::min(least, depth);
    if (depth == least) found.push_back(i);
  }
  return found;
}

// Operators alone, and those that can be wrapped: a read or a test around an instruction is not
// what ran.
std::vector<uint32_t> Attributor::find_innermost(const FileSites& in, Span span) const {
  int64_t best = -1;
  for (uint32_t i : in.sites) {
    const Site& s = sites_[i];
    // A loop is applied to its iterable, whatever else its site spans.
    uint32_t start = s.form == Form::iterate ? s.operand_start : s.start;
    uint32_t end = s.form == Form::iterate ? s.operand_end : s.end;
    bool operators = s.form <= Form::augment && s.callee != kUnpack;
    if (!operators || !s.refusal.empty() || start > span.start || end < span.end) continue;
    if (best < 0 || s.end - s.start < sites_[static_cast<size_t>(best)].end -
                                          sites_[static_cast<size_t>(best)].start)
      best = i;
  }
  return best < 0 ? Found() : Found{static_cast<uint32_t>(best)};
}

std::vector<uint32_t> Attributor::find(const FileSites& in, const OpcodeRule& rule, Span span,
                                       const TracedUse& use) const {
  auto first_of = [](std::initializer_list<Found> all) {
    for (const Found& found : all)
      if (!found.empty()) return found;
    return Found();
  };
  switch (rule.use) {
    case Use::call:
      // Leaving a context is a call at its item; iterating a single `*t` happens in the call.
      if (use.callee == "__exit__" || use.callee == "__aexit__")
        if (Found found = find_context(in, span); !found.empty()) return found;
      if (use.callee == "__iter__" && use.opcode == "CALL_FUNCTION_EX")
        if (Found found = find_stars(in, span); !found.empty()) return found;
      return first_of({find_call(in, span), find_context(in, span)});
    case Use::operation:
      return first_of({find_exact(in, span, Form::augment, nullptr),
                       find_exact(in, span, Form::binary, nullptr),
                       find_exact(in, span, Form::subscript, "[]")});
    case Use::unary:
      return find_exact(in, span, Form::unary, nullptr);
    case Use::compare:
      return find_exact(in, span, Form::compare, nullptr);
    case Use::subscript_read:
      return first_of({find_exact(in, span, Form::subscript, "[]"), find_augment(in, span)});
    case Use::subscript_write:
      return first_of({find_exact(in, span, Form::subscript, "[]="), find_augment(in, span)});
    case Use::loop:
      return find_loop(in, span);
    case Use::suspend:
      return first_of({find_exact(in, span, Form::await, nullptr), find_context(in, span),
                       find_loop(in, span)});
    case Use::condition:
      return first_of({find_tested(in, use.tested), find_truth(in, span)});
    case Use::read:
      return first_of({find_ending(in, span, Form::read), find_augment(in, span)});
    case Use::write:
      return first_of({find_ending(in, span, Form::write), find_augment(in, span)});
    case Use::enter:
      return find_context(in, span);
    case Use::contains:
      return find_exact(in, span, Form::contains, nullptr);
    case Use::format: {
      Found found = find_exact(in, span, Form::format, nullptr);
      if (!found.empty()) return found;
      // Up to 3.11 the span is the whole string.
      for (uint32_t i : in.sites)
        if (sites_[i].form == Form::format && span.start <= sites_[i].start &&
            sites_[i].end <= span.end)
          found.push_back(i);
      return only_nth(std::move(found), use);
    }
    case Use::unpack:
      return find_unpacking(in, span);
    case Use::star:
      return find_stars(in, span);
    case Use::nothing:
      return {};
  }
  return {};
}

// Of sites that share a span the one whose turn it was. All are meant where CPython made another
// number of instructions: it copies what a `finally` holds. So they are where a string stands in an
// operand of another.
std::vector<uint32_t> Attributor::only_nth(Found sites, const TracedUse& use) const {
  if (sites.size() < 2 || use.of != sites.size() || use.nth >= use.of) return sites;
  // In `{x:{width}}` width comes first.
  std::sort(sites.begin(), sites.end(),
            [&](uint32_t a, uint32_t b) { return sites_[a].order < sites_[b].order; });
  for (uint32_t a : sites)
    for (uint32_t b : sites)
      if (a != b && sites_[a].operand_start <= sites_[b].start &&
          sites_[b].end <= sites_[a].operand_end)
        return sites;
  return {sites[use.nth]};
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
  // Python before 3.11 tells no columns.
  if (use.column < 0 || use.end_line <= 0) {
    result.sites = by_line(in, use, rule);
    if (result.sites.empty()) result.reason = rule ? rule->what : "no site on its line";
    return result;
  }
  Span span{in.file->offset_of(static_cast<uint32_t>(std::max(use.line, 1)),
                               static_cast<uint32_t>(use.column)),
            in.file->offset_of(static_cast<uint32_t>(use.end_line),
                               static_cast<uint32_t>(std::max(use.end_column, 0)))};
  // An argument is evaluated before the operator around it: what a rule does not find, no other
  // site's probe would see. Instructions without a rule belong to what they stand in.
  Found found_sites = rule ? find(in, *rule, span, use) : find_innermost(in, span);
  for (uint32_t i : found_sites) {
    if (sites_[i].refusal.empty())
      result.sites.push_back(i);
    else
      result.reason = sites_[i].refusal;
  }
  if (!result.sites.empty())
    result.reason.clear();
  else if (result.reason.empty())
    result.reason = rule ? rule->what : "no site at " + use.opcode;
  return result;
}

}  // namespace opguard
