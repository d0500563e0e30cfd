#include "align/rules/rules.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "align/judge/pivot_view.h"
#include "llvm/ADT/StringRef.h"
#include "support/nearest.h"

namespace opguard {
namespace {

constexpr std::string_view kEnd = " -- ";
constexpr std::string_view kWhy = "why:";
constexpr std::array<std::string_view, 10> kKeys = {
    "kind", "phase", "node", "rank", "step", "operator", "file", "function", "dtype", "shape"};
constexpr std::array<std::string_view, 7> kKinds = {"op",        "node",       "accumulate", "loss",
                                                    "optimizer", "collective", "state"};
constexpr std::array<std::string_view, 4> kPhases = {"forward", "recompute", "backward",
                                                     "optimizer"};

std::string_view trimmed(std::string_view text) {
  const llvm::StringRef trimmed = llvm::StringRef(text.data(), text.size()).trim();
  return {trimmed.data(), trimmed.size()};
}

template <typename T>
bool number(std::string_view text, std::optional<T>& value) {
  T read{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return false;
  value = read;
  return true;
}

template <size_t N>
std::string nearest(std::string_view word, const std::array<std::string_view, N>& words) {
  return opguard::nearest(word, std::vector<std::string>(words.begin(), words.end()));
}

bool key_character(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

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

  // Where ",word=" begins at or behind `from`.
  static size_t next_key(std::string_view text, size_t from) {
    for (size_t at = text.find(',', from); at != text.npos; at = text.find(',', at + 1)) {
      size_t end = at + 1;
      while (end < text.size() && key_character(text[end])) ++end;
      if (end > at + 1 && end < text.size() && text[end] == '=') return at;
    }
    return text.npos;
  }

  bool parse_selection(std::string_view text, size_t offset, Rule& rule) {
    size_t at = next_key(text, 0);
    const std::string_view what = text.substr(0, at);
    while (at != text.npos) {
      const size_t next = next_key(text, at + 1);
      const std::string_view item = text.substr(at + 1, next == text.npos ? next : next - at - 1);
      if (!set_key(item, offset + at + 1, rule)) return false;
      at = next;
    }
    return parse_what(what, offset, rule);
  }

  bool set_key(std::string_view item, size_t at, Rule& rule) {
    const size_t equal = item.find('=');
    const std::string_view key = item.substr(0, equal), value = item.substr(equal + 1);
    const size_t value_at = at + equal + 1;
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
      return fault(at, at + equal, "unknown key '" + std::string(key) + "'", nearest(key, kKeys));
    auto wrong = [&](const std::string& hint = "") {
      return fault(value_at, at + item.size(),
                   std::string(key) + " cannot be '" + std::string(value) + "'", hint);
    };
    if (value.empty()) return wrong();
    if (key == "rank") return number(value, rule.rank) || wrong();
    if (key == "step") return number(value, rule.step) || wrong();
    if (key == "kind" && std::find(kKinds.begin(), kKinds.end(), value) == kKinds.end())
      return wrong(nearest(value, kKinds));
    if (key == "phase" && std::find(kPhases.begin(), kPhases.end(), value) == kPhases.end())
      return wrong(nearest(value, kPhases));
    std::string& field = key == "kind"       ? rule.kind
                         : key == "phase"    ? rule.phase
                         : key == "node"     ? rule.node
                         : key == "operator" ? rule.op
                         : key == "file"     ? rule.file
                         : key == "function" ? rule.function
                         : key == "dtype"    ? rule.dtype
                                             : rule.shape;
    field = key == "shape" ? without_spaces(value) : std::string(value);
    return true;
  }

  // BOUNDARY[@OCCURRENCE][:SLOT]
  bool parse_what(std::string_view what, size_t offset, Rule& rule) {
    for (size_t at = what.find('@'); at != what.npos; at = what.find('@', at + 1)) {
      size_t end = at + 1;
      if (end < what.size() && what[end] == '*')
        ++end;
      else
        while (end < what.size() && what[end] >= '0' && what[end] <= '9') ++end;
      if (end == at + 1 || (end != what.size() && what[end] != ':')) continue;
      rule.boundary = what.substr(0, at);
      if (rule.boundary.empty()) break;
      if (what[at + 1] != '*' && !number(what.substr(at + 1, end - at - 1), rule.occurrence))
        return fault(offset + at + 1, offset + end, "no such occurrence");
      if (end == what.size()) return true;
      rule.slot = what.substr(end + 1);
      return !rule.slot.empty() ||
             fault(offset + end, offset + what.size(), "the slot is missing after ':'");
    }
    rule.boundary = what;
    rule.slot_in_boundary = true;
    return !rule.boundary.empty() ||
           fault(offset, offset + what.size(), "the boundary is missing; '*' is any");
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

bool glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = pattern.npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

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

std::vector<uint32_t> RuleMatcher::whole(const Event& event) const {
  std::vector<uint32_t> found;
  for (const auto& [index, slot] : of(event))
    if (slot.empty() && rules_[index].dtype.empty() && rules_[index].shape.empty() &&
        means(rules_[index], event))
      found.push_back(index);
  return found;
}

}  // namespace opguard
