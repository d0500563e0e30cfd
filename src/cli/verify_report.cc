// cli/verify_report.cc: a Verification as text and as JSON.
#include <string>

#include "cli/verify.h"
#include "nlohmann/json.hpp"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

const char* verdict_name(Verification::Verdict verdict) {
  switch (verdict) {
    case Verification::Verdict::equal:
      return "equal";
    case Verification::Verdict::different:
      return "different";
    case Verification::Verdict::inconclusive:
      return "inconclusive";
  }
  return "";
}

std::string site_text(const SourceSet& sources, const Site& site) {
  const SourceFile* file = sources.find(site.package, site.file);
  if (!file || site.end > file->text.size()) return site.callee;
  std::string text = file->text.substr(site.start, site.end - site.start);
  size_t line_end = text.find('\n');
  return line_end == std::string::npos ? text : text.substr(0, line_end) + " ...";
}

std::string place(const Site& site) {
  return site.file + ":" + std::to_string(site.line) + ":" + std::to_string(site.column + 1);
}

std::string described(const SourceSet& sources, const Wrap& wrap) {
  return place(wrap.site) + "  " + site_text(sources, wrap.site) + "  (" + wrap.boundary + ")";
}

std::string counted(uint64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string where(const ValueDifference& d) {
  std::string text = "step " + std::to_string(d.step) + ", micro-batch " +
                     std::to_string(d.micro_batch) + ", rank " + std::to_string(d.rank);
  if (!d.name.empty()) text += ", " + d.name;
  return text;
}

std::string difference_text(const ValueDifference& d, const char* name_a, const char* name_b) {
  std::string text = "  " + where(d) + "\n";
  if (d.place.line > 0) text += "  at " + d.place.file + ":" + std::to_string(d.place.line) + "\n";
  return text + "    " + name_a + "  " + d.a + "\n    " + name_b + "  " + d.b + "\n";
}

std::string count_text(const std::optional<uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

std::string culprit_text(const Verification& found, const SourceSet& sources,
                         const std::vector<Wrap>& wraps) {
  const Culprit& culprit = *found.culprit;
  if (!culprit.found)
    return "  the probe that does it is one of " +
           std::to_string(culprit.last - culprit.first + 1) + ", between\n    " +
           described(sources, wraps[culprit.first]) + "\n    " +
           described(sources, wraps[culprit.last]) + "\n";
  std::string text =
      "  the probe that does it\n    " + described(sources, wraps[culprit.wrap]) + "\n";
  text += culprit.alone ? "    by itself" : "    only together with probes of operators before it";
  return text + (culprit.only ? "; without it nothing changes\n"
                              : "; other probes after it change something as well\n");
}

Json difference_json(const ValueDifference& d) {
  return {{"rank", d.rank},       {"step", d.step}, {"micro_batch", d.micro_batch},
          {"what", d.what},       {"name", d.name}, {"file", d.place.file},
          {"line", d.place.line}, {"bare", d.a},    {"other", d.b}};
}

Json count_json(const std::optional<uint64_t>& count) { return count ? Json(*count) : Json(); }

Json counts_json(const CompileCounts& counts) {
  return {{"graphs", count_json(counts.graphs)},
          {"graph_breaks", count_json(counts.graph_breaks)},
          {"recompiles", count_json(counts.recompiles)}};
}

Json site_json(const SourceSet& sources, const Wrap& wrap) {
  const Site& site = wrap.site;
  return {{"boundary", wrap.boundary}, {"package", site.package},
          {"file", site.file},         {"line", site.line},
          {"column", site.column},     {"text", site_text(sources, site)}};
}

Json culprit_json(const Verification& found, const SourceSet& sources,
                  const std::vector<Wrap>& wraps) {
  const Culprit& culprit = *found.culprit;
  Json json = {{"found", culprit.found},
               {"site", culprit.found ? site_json(sources, wraps[culprit.wrap]) : Json()},
               {"first", site_json(sources, wraps[culprit.first])},
               {"last", site_json(sources, wraps[culprit.last])}};
  json["alone"] = culprit.found ? Json(culprit.alone) : Json();
  json["only"] = culprit.found ? Json(culprit.only) : Json();
  return json;
}

}  // namespace

std::string verification_text(const Verification& found, const SourceSet& sources,
                              const std::vector<Wrap>& wraps) {
  std::string text = std::string(verdict_name(found.verdict)) + ": " + found.why + "\n";
  const Judgement& probed = found.instrumented;
  if (found.noise) {
    text += difference_text(*found.noise, "bare        ", "bare again  ");
  } else if (found.verdict == Verification::Verdict::different) {
    if (probed.change == Change::fails) text += "  it ends with " + probed.failure + "\n";
    if (probed.values.first)
      text += difference_text(*probed.values.first, "bare          ", "instrumented  ");
  }
  if (found.culprit) text += culprit_text(found, sources, wraps);
  const ValueComparison& values = probed.values;
  text += "  equal         " + counted(values.steps, "step") + ": " +
          std::to_string(values.losses) + " losses, " + counted(values.gradients, "gradient") +
          ", " + counted(values.parameters, "parameter") + ", " +
          counted(values.states, "optimizer state") + "\n";
  if (values.unreadable > 0)
    text += "  not readable  " + counted(values.unreadable, "value") + "\n";
  text += "                bare  instrumented\n";
  const std::pair<const char*, std::optional<uint64_t> CompileCounts::*> rows[] = {
      {"graphs      ", &CompileCounts::graphs},
      {"graph breaks", &CompileCounts::graph_breaks},
      {"recompiles  ", &CompileCounts::recompiles}};
  for (const auto& [name, member] : rows) {
    std::string bare = count_text(found.bare.*member);
    text += "  " + std::string(name) + "  " + bare +
            std::string(bare.size() < 6 ? 6 - bare.size() : 1, ' ') +
            count_text(probed.counts.*member) + "\n";
  }
  const LogLoss& log = found.log;
  text += "  log           " + counted(found.boundaries, "probe") + ", " +
          counted(log.events, "event") + ", " + std::to_string(log.lost) + " records lost, " +
          counted(log.faults, "fault") + "\n";
  if (log.unclosed > 0) text += "  cut short     " + counted(log.unclosed, "log") + "\n";
  for (const std::string& unprobed : log.unprobed) text += "  not probed    " + unprobed + "\n";
  return text;
}

std::string verification_json(const Verification& found, const SourceSet& sources,
                              const std::vector<Wrap>& wraps) {
  const Judgement& probed = found.instrumented;
  const LogLoss& log = found.log;
  Json json = {{"verdict", verdict_name(found.verdict)},
               {"why", found.why},
               {"boundaries", found.boundaries},
               {"runs", found.runs},
               {"equal",
                {{"steps", probed.values.steps},
                 {"losses", probed.values.losses},
                 {"gradients", probed.values.gradients},
                 {"parameters", probed.values.parameters},
                 {"states", probed.values.states}}},
               {"unreadable", probed.values.unreadable},
               {"difference", probed.values.first ? difference_json(*probed.values.first) : Json()},
               {"noise", found.noise ? difference_json(*found.noise) : Json()},
               {"failure", probed.failure.empty() ? Json() : Json(probed.failure)},
               {"culprit", found.culprit ? culprit_json(found, sources, wraps) : Json()},
               {"compile",
                {{"bare", counts_json(found.bare)}, {"instrumented", counts_json(probed.counts)}}},
               {"log",
                {{"processes", log.processes},
                 {"events", log.events},
                 {"records", log.records},
                 {"lost_records", log.lost},
                 {"faults", log.faults},
                 {"unclosed", log.unclosed},
                 {"unprobed", log.unprobed}}}};
  // Source text need not be UTF-8; JSON must be.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opguard
