// Reads a plan field by field, with a complaint at the place of the first one that is wrong.
//
//   "id": "attention.Softmax"     error: a boundary id has only the characters a-z 0-9 _ . :
//   "forn": "call"                error: unknown field 'forn'; note: did you mean 'form'?
//   the same id a second time     error: boundary '...' is given twice
//
// A field that came later may be missing, and reads as its default: a plan is committed, and
// outlives the opguard that wrote it. Counterexample: a field that is not known is refused, not
// skipped. A newer opguard wrote it, and what it asks for would silently not be done.
#include "plan/plan.h"

#include <charconv>
#include <cstdio>
#include <optional>
#include <sstream>
#include <system_error>
#include <tuple>

#include "plan/json_text.h"
#include "plan/plan_text.h"
#include "support/nearest.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

using Kind = JsonValue::Kind;

std::optional<Form> form_of(const std::string& name) {
  for (Form form : kForms)
    if (name == form_name(form)) return form;
  return std::nullopt;
}

// `call` after a fault: nobody looks at it then.
Form read_form(JsonText& json, const JsonValue& value) {
  std::vector<std::string> names;
  for (Form form : kForms) names.push_back(form_name(form));
  if (value.kind != Kind::string) {
    json.fault(value, "'form' must be a string");
  } else if (std::optional<Form> form = form_of(value.string)) {
    return *form;
  } else {
    json.fault(value, "unknown form '" + value.string + "'", nearest(value.string, names));
  }
  return Form::call;
}

// All fields but those that are asked for with find() must be there.
Boundary read_boundary(JsonText& json, const JsonValue& value) {
  Boundary b;
  if (value.kind != Kind::object) {
    json.fault(value, "a boundary must be an object");
    return b;
  }
  json.only(value,
            {"id",         "form",          "callee",      "receiver",   "package",    "file",
             "scope",      "line",          "column",      "end_line",   "end_column", "start",
             "end",        "operand_start", "operand_end", "targets",    "arguments",  "text",
             "site_order", "template",      "tags",        "activities", "backward",   "phases",
             "order",      "calls",         "writes",      "mark",       "block",      "refusal",
             "kernels",    "transfers"});
  json.read(value, "id", b.id);
  if (!json.failed() &&
      (b.id.empty() ||
       b.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.:") != std::string::npos))
    json.fault(*value.find("id"), "a boundary id has only the characters a-z 0-9 _ . :");
  Site& s = b.site;
  if (const JsonValue* form = json.member(value, "form", Kind::string))
    s.form = read_form(json, *form);
  json.read(value, "callee", s.callee);
  json.read(value, "receiver", s.receiver);
  json.read(value, "package", s.package);
  json.read(value, "file", s.file);
  json.read(value, "scope", s.scope);
  json.read(value, "line", s.line);
  json.read(value, "column", s.column);
  json.read(value, "end_line", s.end_line);
  json.read(value, "end_column", s.end_column);
  json.read(value, "start", s.start);
  json.read(value, "end", s.end);
  json.read(value, "operand_start", s.operand_start);
  json.read(value, "operand_end", s.operand_end);
  json.read(value, "targets", s.targets);
  json.read(value, "arguments", s.arguments);
  json.read(value, "text", b.text);
  json.read(value, "site_order", s.order);
  json.read(value, "template", b.templ);
  if (const JsonValue* tags = json.member(value, "tags", Kind::array))
    for (const JsonValue& tag : tags->items) {
      if (tag.kind != Kind::array || tag.items.size() != 2 || tag.items[0].kind != Kind::string ||
          (tag.items[1].kind != Kind::real && tag.items[1].kind != Kind::integer)) {
        json.fault(tag, "a tag must be [\"name\", weight]");
        break;
      }
      // A weight may be written as `1`: of integers `real` is set too.
      b.tags.push_back({tag.items[0].string, tag.items[1].real});
    }
  json.read(value, "activities", b.activities);
  if (value.find("backward")) json.read(value, "backward", b.backward);
  json.read(value, "phases", b.phases);
  json.read(value, "order", b.order);
  json.read(value, "calls", b.calls);
  if (value.find("block")) json.read(value, "block", s.block);
  if (value.find("refusal")) json.read(value, "refusal", s.refusal);
  if (value.find("writes")) json.read(value, "writes", b.writes);
  if (value.find("kernels")) json.read(value, "kernels", b.kernels);
  if (value.find("transfers")) json.read(value, "transfers", b.transfers);
  if (const JsonValue* mark = value.find("mark")) {
    json.read(value, "mark", b.mark);
    if (!json.failed() && b.mark != "step" && b.mark != "micro_batch")
      json.fault(*mark, "unknown mark '" + b.mark + "'", nearest(b.mark, {"step", "micro_batch"}));
  }
  return b;
}

// A scope's other sites: [order, start, end, form, callee, receiver, [arguments], [targets],
// block], the block only where there is one.
void read_context(JsonText& json, const JsonValue& value, std::vector<Site>& context) {
  if (value.kind != Kind::object) return json.fault(value, "a scope must be an object");
  json.only(value, {"package", "file", "scope", "sites"});
  Site scope;
  json.read(value, "package", scope.package);
  json.read(value, "file", scope.file);
  json.read(value, "scope", scope.scope);
  const JsonValue* sites = json.member(value, "sites", Kind::array);
  if (!sites) return;
  constexpr int64_t kMax = UINT32_MAX;
  for (const JsonValue& item : sites->items) {
    const auto& f = item.items;
    if (item.kind != Kind::array || f.size() < 8 || f.size() > 9 || f[4].kind != Kind::string ||
        f[5].kind != Kind::string || f[6].kind != Kind::array || f[7].kind != Kind::array ||
        (f.size() == 9 && f[8].kind != Kind::string))
      return json.fault(item,
                        "a site of a scope must be [order, start, end, form, callee, "
                        "receiver, [arguments], [targets], \"block\"]");
    Site site = scope;
    site.order = static_cast<uint32_t>(json.number(f[0], "order", 0, kMax));
    site.start = static_cast<uint32_t>(json.number(f[1], "start", 0, kMax));
    site.end = static_cast<uint32_t>(json.number(f[2], "end", 0, kMax));
    site.form = read_form(json, f[3]);
    site.callee = f[4].string;
    site.receiver = f[5].string;
    json.read_strings(f[6], site.arguments);
    json.read_strings(f[7], site.targets);
    if (f.size() == 9) site.block = f[8].string;
    context.push_back(std::move(site));
  }
}

// Lines of keys: eight hexadecimal digits each, parted by single spaces, in ascending order.
void read_elsewhere(JsonText& json, const JsonValue& value, std::vector<uint32_t>& keys) {
  std::vector<std::string> lines;
  json.read_strings(value, lines);
  if (json.failed()) return;
  for (size_t k = 0; k < lines.size(); ++k) {
    for (std::string_view rest = lines[k];; rest.remove_prefix(9)) {
      const std::string_view word = rest.substr(0, 8);
      uint32_t key = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), key, 16);
      const bool last = rest.size() == 8;
      // Ascending over all lines, since who reads the plan looks keys up by halving.
      if (word.size() < 8 || error != std::errc() || end != word.data() + 8 ||
          (!last && (rest.size() < 9 || rest[8] != ' ')) || (!keys.empty() && key <= keys.back()))
        return json.fault(value.items[k], "a line must be keys of 8 hexadecimal digits, ascending");
      keys.push_back(key);
      if (last) break;
    }
  }
}

// {"activities": all phases, "attributed": ..., "phases": {"forward": {...}}}
void read_coverage(JsonText& json, const JsonValue& root,
                   std::map<std::string, PhaseCoverage>& out) {
  const JsonValue* coverage = json.member(root, "coverage", Kind::object);
  if (!coverage) return;
  json.only(*coverage, {"activities", "attributed", "phases"});
  const JsonValue* phases = json.member(*coverage, "phases", Kind::object);
  if (!phases) return;
  for (const auto& [name, value] : phases->members) {
    PhaseCoverage& phase = out[name.string];
    if (!json.member(*phases, name.string.c_str(), Kind::object)) return;
    json.only(value, {"activities", "attributed", "accumulated"});
    json.read(value, "activities", phase.activities);
    json.read(value, "attributed", phase.attributed);
    json.read(value, "accumulated", phase.accumulated);
  }
}

void read_kernel_coverage(JsonText& json, const JsonValue& root, KernelCoverage& out) {
  const JsonValue* devices = json.member(root, "devices", Kind::object);
  if (!devices) return;
  json.only(*devices, {"sources", "kernels", "attributed", "dropped", "rest"});
  json.read(*devices, "sources", out.sources);
  json.read(*devices, "kernels", out.kernels);
  json.read(*devices, "attributed", out.attributed);
  json.read(*devices, "dropped", out.dropped);
  json.read(*devices, "rest", out.rest);
}

Plan read_plan_values(JsonText& json, const JsonValue& root) {
  Plan plan;
  json.only(root, {"opguard_plan", "opguard", "python", "torch", "command", "packages", "coverage",
                   "devices", "boundaries", "context", "elsewhere", "unwrapped", "foreign"});
  json.read(root, "opguard", plan.opguard);
  json.read(root, "python", plan.python);
  json.read(root, "torch", plan.torch);
  json.read(root, "command", plan.command);
  json.read(root, "packages", plan.packages);
  read_coverage(json, root, plan.coverage);
  if (root.find("devices")) read_kernel_coverage(json, root, plan.devices);
  std::map<std::string, bool> ids;
  if (const JsonValue* boundaries = json.member(root, "boundaries", Kind::array))
    for (const JsonValue& item : boundaries->items) {
      plan.boundaries.push_back(read_boundary(json, item));
      const std::string& id = plan.boundaries.back().id;
      if (!json.failed() && !ids.emplace(id, true).second)
        json.fault(*item.find("id"), "boundary '" + id + "' is given twice");
    }
  if (const JsonValue* context = json.member(root, "context", Kind::array))
    for (const JsonValue& item : context->items) read_context(json, item, plan.context);
  if (const JsonValue* lines = root.find("elsewhere")) read_elsewhere(json, *lines, plan.elsewhere);
  if (const JsonValue* unwrapped = json.member(root, "unwrapped", Kind::array))
    for (const JsonValue& item : unwrapped->items) {
      Unwrapped& u = plan.unwrapped.emplace_back();
      if (item.kind == Kind::object)
        json.only(item, {"package", "file", "line", "what", "phase", "activities"});
      json.read(item, "package", u.package);
      json.read(item, "file", u.file);
      json.read(item, "line", u.line);
      json.read(item, "what", u.what);
      json.read(item, "phase", u.phase);
      json.read(item, "activities", u.activities);
    }
  if (const JsonValue* foreign = json.member(root, "foreign", Kind::array))
    for (const JsonValue& item : foreign->items) {
      Foreign& f = plan.foreign.emplace_back();
      if (item.kind == Kind::object) json.only(item, {"phase", "activity", "count"});
      json.read(item, "phase", f.phase);
      json.read(item, "activity", f.activity);
      json.read(item, "count", f.count);
    }
  return plan;
}

}  // namespace

// What runs while modules are imported belongs to no step.
uint64_t Plan::activities() const {
  uint64_t sum = 0;
  for (const auto& [name, phase] : coverage)
    if (name != kImportPhase) sum += phase.activities;
  return sum;
}

uint64_t Plan::attributed() const {
  uint64_t sum = 0;
  for (const auto& [name, phase] : coverage)
    if (name != kImportPhase) sum += phase.attributed;
  return sum;
}

// "" of most: `og("id", f)`; ".writes", ".step", ".micro_batch": `og.step("id", f)`. A mark goes
// first.
std::string probe_variant(const Boundary& boundary) {
  if (!boundary.mark.empty()) return "." + boundary.mark;
  return boundary.writes.empty() ? "" : ".writes";
}

// The error names the plan; `diags` says what is wrong, and where.
llvm::Expected<Plan> read_plan(const std::string& path, Diagnostics& diags) {
  std::string text, error;
  if (!read_file(path, text, error)) return make_error(error);
  JsonText json(path, std::move(text), diags);
  JsonValue root;
  if (json.parse(root) && json.check_version(root, "opguard_plan", kPlanVersion, "a plan")) {
    Plan plan = read_plan_values(json, root);
    if (!json.failed()) return plan;
  }
  return make_error("the plan " + path + " cannot be used");
}

llvm::Error write_plan(const Plan& plan, const std::string& path) {
  return write_file(path, plan_text(plan));
}

// For people: names are shown(), since a plan may come from elsewhere.
std::string dump(const Plan& plan) {
  std::ostringstream out;
  out << "plan version " << plan.version << " opguard " << shown(plan.opguard) << " python "
      << shown(plan.python) << " torch " << shown(plan.torch) << "\ncommand";
  for (const std::string& arg : plan.command) out << " " << shown(arg);
  out << "\npackages";
  for (const std::string& package : plan.packages) out << " " << shown(package);
  out << "\ncoverage " << plan.attributed() << " of " << plan.activities() << " activities\n";
  for (const auto& [name, phase] : plan.coverage)
    out << "coverage of " << shown(name) << " " << phase.attributed << " of " << phase.activities
        << " accumulated " << phase.accumulated << "\n";
  if (!plan.devices.sources.empty())
    out << "kernels " << plan.devices.attributed << " of " << plan.devices.kernels << " dropped "
        << plan.devices.dropped << "\n";
  for (const std::string& source : plan.devices.sources) out << "device " << shown(source) << "\n";
  for (const auto& [name, count] : plan.devices.rest)
    out << "kernel of no boundary " << shown(name) << "=" << count << "\n";
  for (const Boundary& b : plan.boundaries) {
    out << "boundary " << shown(b.id) << " " << form_name(b.site.form) << " "
        << shown(b.site.package.empty() ? "" : b.site.package + ":") << shown(b.site.file) << ":"
        << b.site.line << ":" << b.site.column + 1 << " in " << shown(b.site.scope) << " order "
        << b.order << " calls " << b.calls << shown(b.templ.empty() ? "" : " template " + b.templ)
        << "\n  " << shown(b.text) << "\n ";
    for (const Tag& tag : b.tags) out << " " << shown(tag.name) << "=" << tag.weight;
    out << "\n ";
    for (const auto& [name, count] : b.activities) out << " " << shown(name) << "=" << count;
    if (!b.backward.empty()) out << " backward:";
    for (const auto& [name, count] : b.backward) out << " " << shown(name) << "=" << count;
    if (!b.backward.empty()) out << ";";
    for (const auto& [name, count] : b.phases) out << " " << shown(name) << "=" << count;
    if (!b.kernels.empty() || !b.transfers.empty()) out << " device:";
    for (const auto* names : {&b.kernels, &b.transfers})
      for (const auto& [name, count] : *names) out << " " << shown(name) << "=" << count;
    if (!b.writes.empty()) out << " writes";
    for (const std::string& name : b.writes) out << " " << shown(name);
    if (!b.mark.empty()) out << " mark " << shown(b.mark);
    out << "\n";
  }
  out << "context " << plan.context.size() << " sites\n";
  if (!plan.elsewhere.empty()) out << "elsewhere " << plan.elsewhere.size() << " keys\n";
  for (const Unwrapped& u : plan.unwrapped)
    out << "unwrapped " << (u.package.empty() ? "" : u.package + ":") << u.file << ":" << u.line
        << " " << u.what << (u.phase.empty() ? "" : " " + u.phase) << " activities " << u.activities
        << "\n";
  for (const Foreign& f : plan.foreign)
    out << "foreign " << f.activity << " " << f.phase << " activities " << f.count << "\n";
  return out.str();
}

}  // namespace opguard
