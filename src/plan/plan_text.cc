// The writer's fields in the order of docs/formats/plan-format.md. What plan.cc reads must be the
// same list.
//
//   {"opguard_plan": 2, ...
//   "boundaries": [
//    {"id": "rope.mul:q7k2", "form": "binary", ...},
//    {"id": "rope.add:a1b2", "form": "binary", ...}
//   ],
//
// Fields that most boundaries have empty (kernels, writes, mark and others) are left out there. All
// others always stand.
//
// Counterexample: text that is no UTF-8. It is replaced, so a plan that is read again may differ in
// it from the one that was written.
//
// The cost: the whole text is made in memory, then written.
#include "plan/plan_text.h"

#include <cstdio>
#include <sstream>
#include <tuple>
#include <vector>

#include "nlohmann/json.hpp"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;  // fields stay in the order of docs/formats/plan-format.md

Json json_of(const Boundary& b) {
  const Site& s = b.site;
  Json tags = Json::array();
  for (const Tag& tag : b.tags) tags.push_back(Json::array({tag.name, tag.weight}));
  Json json = {{"id", b.id},
               {"form", form_name(s.form)},
               {"callee", s.callee},
               {"receiver", s.receiver},
               {"package", s.package},
               {"file", s.file},
               {"scope", s.scope},
               {"line", s.line},
               {"column", s.column},
               {"end_line", s.end_line},
               {"end_column", s.end_column},
               {"start", s.start},
               {"end", s.end},
               {"operand_start", s.operand_start},
               {"operand_end", s.operand_end},
               {"targets", s.targets},
               {"arguments", s.arguments},
               {"text", b.text},
               {"site_order", s.order},
               {"template", b.templ},
               {"tags", tags},
               {"activities", b.activities}};
  if (!b.backward.empty()) json["backward"] = b.backward;
  json["phases"] = b.phases;
  if (!b.kernels.empty()) json["kernels"] = b.kernels;
  if (!b.transfers.empty()) json["transfers"] = b.transfers;
  json["order"] = b.order;
  json["calls"] = b.calls;
  if (!s.block.empty()) json["block"] = s.block;
  if (!s.refusal.empty()) json["refusal"] = s.refusal;
  if (!b.writes.empty()) json["writes"] = b.writes;
  if (!b.mark.empty()) json["mark"] = b.mark;
  return json;
}

Json json_of(const Unwrapped& u) {
  return {{"package", u.package}, {"file", u.file},   {"line", u.line},
          {"what", u.what},       {"phase", u.phase}, {"activities", u.activities}};
}

Json json_of(const Foreign& f) {
  return {{"phase", f.phase}, {"activity", f.activity}, {"count", f.count}};
}

Json coverage_json(const Plan& plan) {
  Json phases = Json::object();
  for (const auto& [name, phase] : plan.coverage)
    phases[name] = {{"activities", phase.activities},
                    {"attributed", phase.attributed},
                    {"accumulated", phase.accumulated}};
  return {{"activities", plan.activities()}, {"attributed", plan.attributed()}, {"phases", phases}};
}

Json json_of(const KernelCoverage& c) {
  return {{"sources", c.sources},
          {"kernels", c.kernels},
          {"attributed", c.attributed},
          {"dropped", c.dropped},
          {"rest", c.rest}};
}

std::vector<Json> context_json(const Plan& plan) {
  std::vector<Json> scopes;
  const Site* last = nullptr;
  for (const Site& s : plan.context) {
    // Sites come by scope: a new scope begins where one of the three differs.
    if (!last ||
        std::tie(last->package, last->file, last->scope) != std::tie(s.package, s.file, s.scope))
      scopes.push_back(
          {{"package", s.package}, {"file", s.file}, {"scope", s.scope}, {"sites", Json::array()}});
    last = &s;
    Json& sites = scopes.back()["sites"];
    sites.push_back(Json::array({s.order, s.start, s.end, form_name(s.form), s.callee, s.receiver,
                                 s.arguments, s.targets}));
    if (!s.block.empty()) sites.back().push_back(s.block);
  }
  return scopes;
}

// "0a1c22e9 3f2a9c01 77aa0e12": sixteen keys a line, so a key more changes the lines behind it
// alone.
std::vector<std::string> elsewhere_lines(const Plan& plan) {
  constexpr size_t kOfALine = 16;
  std::vector<std::string> lines;
  char word[10];
  for (size_t k = 0; k < plan.elsewhere.size(); ++k) {
    if (k % kOfALine == 0) lines.emplace_back();
    std::snprintf(word, sizeof word, k % kOfALine == 0 ? "%08x" : " %08x", plan.elsewhere[k]);
    lines.back() += word;
  }
  return lines;
}

// Source text need not be UTF-8; what is not becomes U+FFFD, for a plan is read by people.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One item a line, the brackets on lines of their own.
template <typename Items, typename ToJson>
void write_lines(std::ostream& out, const char* key, const Items& items, ToJson to_json) {
  out << ",\n\"" << key << "\": [";
  const char* separator = "\n ";
  for (const auto& item : items) {
    out << separator << text_of(to_json(item));
    separator = ",\n ";
  }
  out << (items.empty() ? "]" : "\n]");
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::ostringstream out;
  out << "{\"opguard_plan\": " << plan.version << ",\n\"opguard\": " << text_of(plan.opguard)
      << ",\n\"python\": " << text_of(plan.python) << ",\n\"torch\": " << text_of(plan.torch)
      << ",\n\"command\": " << text_of(plan.command)
      << ",\n\"packages\": " << text_of(plan.packages)
      << ",\n\"coverage\": " << text_of(coverage_json(plan));
  if (!plan.devices.sources.empty()) out << ",\n\"devices\": " << text_of(json_of(plan.devices));
  write_lines(out, "boundaries", plan.boundaries, [](const Boundary& b) { return json_of(b); });
  write_lines(out, "context", context_json(plan), [](const Json& scope) { return scope; });
  if (!plan.elsewhere.empty())
    write_lines(out, "elsewhere", elsewhere_lines(plan),
                [](const std::string& line) { return Json(line); });
  write_lines(out, "unwrapped", plan.unwrapped, [](const Unwrapped& u) { return json_of(u); });
  write_lines(out, "foreign", plan.foreign, [](const Foreign& f) { return json_of(f); });
  out << "}\n";
  return out.str();
}

}  // namespace opguard
