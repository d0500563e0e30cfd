#include <string>

#include "nlohmann/json.hpp"
#include "report/identity.h"
#include "report/verification.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

Json difference_json(const ValueDifference& d) {
  return {{"rank", d.rank},
          {"step", d.step},
          {"micro_batch", d.micro_batch},
          {"what", value_kind_name(d.kind)},
          {"name", d.name},
          {"file", d.place.file},
          {"line", d.place.line},
          {"bare", side_text(d, d.a)},
          {"other", side_text(d, d.b)}};
}

// null where the log does not say.
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

// Where the runs were spent, `first` and `last` bound it, and what it would do by itself is null.
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

std::string verification_json(const Verification& found, const SourceSet& sources,
                              const std::vector<Wrap>& wraps) {
  const Judgement& probed = found.instrumented;
  const LogLoss& log = found.log;
  const std::optional<ValueDifference> noise =
      found.repeated ? found.repeated->values.first : std::nullopt;
  Json json = identity_json(identity_now());
  json.update({{"verdict", verdict_name(found.verdict)},
               {"why", words(found)},
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
               {"noise", noise ? difference_json(*noise) : Json()},
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
                 {"unprobed", log.unprobed}}}});
  // Source text need not be UTF-8; JSON must be.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opguard
