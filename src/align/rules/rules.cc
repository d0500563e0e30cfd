// A rule is read once, and turned into readings of each boundary of a log.
//
//   rule        loader.item:in/arg0
//   readings    boundary "loader.item:in/arg0"     slot ""         a boundary id has a colon, too
//               boundary "loader.item"             slot "in/arg0"  cut at the colon
//
// Which was meant shows where a boundary of the log matches. Globs are held against texts once a
// boundary. What depends on the event (occurrence, step, phase) is asked at each.
#include "align/rules/rules.h"

#include <algorithm>
#include <array>

#include "align/judge/pivot_view.h"
#include "llvm/ADT/StringRef.h"
#include "record/selection_text.h"
#include "support/nearest.h"

namespace opguard {
namespace {

constexpr std::string_view kEnd = " -- ";
constexpr std::string_view kWhy = "why:";
constexpr std::array<std::string_view, 10> kKeys = {
    "kind", "phase", "node", "rank", "step", "operator", "file", "function", "dtype", "shape"};

std::string_view trimmed(std::string_view text) {
  const llvm::StringRef trimmed = llvm::StringRef(text.data(), text.size()).trim();
  return {trimmed.data(), trimmed.size()};
}

// "[4, *]" and "[4,*]" are one.
std::string without_spaces(std::string_view text) {
  std::string result;
  for (char c : text)
    if (c != ' ') result += c;
  return result;
}

// One line as a rule.
class Parser {
 public:
  Parser(std::string_view line, const std::string& file, uint32_t number, Diagnostics& diags)
      : line_(line), file_(file), number_(number), diags_(diags) {}

  bool parse(Rule& rule) {
    const size_t end = line_.find(kEnd);
    if (end == line_.npos)
      return fault(line_.size(), line_.size(), "the reason is missing: RULE -- why: REASON");
    std::string_view why = trimmed(line_.substr(end + kEnd.size()));
    const size_t why_at = end + kEnd.size();
    if (!why.starts_with(kWhy))
      return fault(why_at, line_.size(), "expected 'why: REASON' after '--'");
    why = trimmed(why.substr(kWhy.size()));
    if (why.empty()) return fault(why_at, line_.size(), "the reason after 'why:' is empty");
    const std::string_view selection = trimmed(line_.substr(0, end));
    if (selection.empty())
      return fault(0, end, "expected BOUNDARY[@OCCURRENCE][:SLOT][,KEY=VALUE...]");
    rule.text = selection;
    rule.why = why;
    return parse_selection(selection, size_t(selection.data() - line_.data()), rule);
  }

 private:
  bool fault(size_t from, size_t to, const std::string& message, const std::string& hint = "") {
    Diagnostic d;
    d.file = file_;
    d.line = number_;
    d.column = characters(line_.substr(0, from));
    d.length = characters(line_.substr(from, to - from));
    d.message = message;
    d.line_text = line_;
    diags_.add(d);
    if (!hint.empty()) {
      d.severity = Severity::note;
      d.message = "did you mean '" + hint + "'?";
      diags_.add(d);
    }
    return false;
  }

  static uint32_t characters(std::string_view text) {
    return uint32_t(std::count_if(text.begin(), text.end(),
                                  [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
  }

  // offset: of the text in its line, for a fault's column.
  bool parse_selection(std::string_view text, size_t offset, Rule& rule) {
    SelectionText read;
    if (const auto wrong = read_selection(text, kKeys, read))
      return fault(offset + wrong->from, offset + wrong->to, wrong->message,
                   nearest(wrong->word, wrong->known));
    rule.boundary = read.boundary;
    rule.slot_in_boundary = read.slot_in_boundary;
    rule.occurrence = read.occurrence;
    rule.slot = read.slot;
    read_number(read.value_of("rank"), rule.rank);
    read_number(read.value_of("step"), rule.step);
    rule.kind = read.value_of("kind");
    rule.phase = read.value_of("phase");
    rule.node = read.value_of("node");
    rule.op = read.value_of("operator");
    rule.file = read.value_of("file");
    rule.function = read.value_of("function");
    rule.dtype = read.value_of("dtype");
    rule.shape = without_spaces(read.value_of("shape"));
    return true;
  }

  std::string_view line_;
  const std::string& file_;
  uint32_t number_;
  Diagnostics& diags_;
};

std::string_view kind_word(RecordPart::Kind kind) {
  static constexpr std::array<std::string_view, 5> kWords = {"in", "out", "written", "scalar",
                                                             "result"};
  return kWords[size_t(kind)];
}

// "", "in", "in0", "arg*", "in/arg0".
bool part_meant(std::string_view slot, const RecordPart& part) {
  const std::string_view kind = kind_word(part.kind);
  if (slot.empty() || slot == kind || glob(slot, part.name)) return true;
  if (!slot.starts_with(kind)) return false;
  const std::string_view rest = slot.substr(kind.size());
  return (rest.starts_with("/") && glob(rest.substr(1), part.name)) ||
         rest == std::to_string(part.index);
}

std::string sizes_text(const Meta& meta) {
  std::string text = "[";
  for (int64_t size : meta.shape) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + "]";
}

}  // namespace

bool parse_rules(const std::string& text, const std::string& name, std::vector<Rule>& rules,
                 Diagnostics& diags) {
  bool good = true;
  uint32_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view content = trimmed(line);
    if (content.empty() || content[0] == '#') continue;
    Rule rule;
    rule.place = name == "--ignore" ? name : name + ":" + std::to_string(number);
    if (Parser(line, name, number, diags).parse(rule))
      rules.push_back(std::move(rule));
    else
      good = false;
  }
  return good;
}

RuleMatcher::RuleMatcher(const std::vector<Rule>& rules, const ProcessLog& log)
    : rules_(rules), log_(log), readings_(rules.empty() ? 0 : log.strings.size()) {
  for (size_t s = 0; s < readings_.size(); ++s) {
    const std::string& boundary = log.strings[s];
    for (uint32_t r = 0; r < rules.size(); ++r) {
      const Rule& rule = rules[r];
      const std::string_view pattern = rule.boundary;
      if (glob(pattern, boundary)) readings_[s].push_back({r, rule.slot});
      if (!rule.slot_in_boundary) continue;
      for (size_t at = pattern.find(':'); at != pattern.npos; at = pattern.find(':', at + 1))
        if (at + 1 < pattern.size() && glob(pattern.substr(0, at), boundary))
          readings_[s].push_back({r, pattern.substr(at + 1)});
    }
  }
}

const std::vector<RuleMatcher::Reading>& RuleMatcher::of(const Event& event) const {
  static const std::vector<Reading> kNoReadings;
  return event.boundary < readings_.size() ? readings_[event.boundary] : kNoReadings;
}

// All but boundary and slot, which of() and part_meant() have told.
bool RuleMatcher::means(const Rule& rule, const Event& event) const {
  if ((rule.occurrence && *rule.occurrence != event.occurrence) ||
      (rule.rank && *rule.rank != log_.rank) || (rule.step && *rule.step != event.step))
    return false;
  if (!rule.kind.empty() && rule.kind != kind_name(event.kind)) return false;
  if (!rule.phase.empty() && rule.phase != phase_name(event.phase)) return false;
  if (!rule.node.empty() && !glob(rule.node, log_.text(event.node))) return false;
  if (rule.op.empty() && rule.file.empty() && rule.function.empty()) return true;
  const auto at = log_.locations.find(log_.text(event.boundary));
  if (at == log_.locations.end()) return false;
  const Location& place = at->second;
  return (rule.op.empty() || glob(rule.op, place.callee)) &&
         (rule.file.empty() || glob(rule.file, place.file)) &&
         (rule.function.empty() || glob(rule.function, place.function));
}

// In the order of the rules, each once though several readings of it fit.
std::vector<uint32_t> RuleMatcher::rules_of(const Event& event, const RecordPart& part) const {
  std::vector<uint32_t> found;
  for (const auto& [index, slot] : of(event)) {
    const Rule& rule = rules_[index];
    if (!found.empty() && found.back() == index) continue;
    if (!part_meant(slot, part) || !means(rule, event)) continue;
    if (!rule.dtype.empty() && (!part.meta || !glob(rule.dtype, part.meta->dtype))) continue;
    if (!rule.shape.empty() && (!part.meta || !glob(rule.shape, sizes_text(*part.meta)))) continue;
    found.push_back(index);
  }
  return found;
}

std::vector<uint32_t> RuleMatcher::rules_of(const Event& event, const Slot& slot) const {
  if (!any(event)) return {};
  const Meta* meta = slot.meta < log_.metas.size() ? &log_.metas[slot.meta] : nullptr;
  return rules_of(event, {RecordPart::Kind(slot.kind), log_.text(slot.name), slot.index, meta});
}

// Those that name all of an event, and so also what is no part of it: that it raised.
std::vector<uint32_t> RuleMatcher::whole(const Event& event) const {
  std::vector<uint32_t> found;
  for (const auto& [index, slot] : of(event))
    if (slot.empty() && rules_[index].dtype.empty() && rules_[index].shape.empty() &&
        means(rules_[index], event))
      found.push_back(index);
  return found;
}

}  // namespace opguard
