#include "report/background_json.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

Json source_text_json(const Run& run, const SourceText& text) {
  if (text.file.empty() && text.path.empty()) return nullptr;
  return {{"file", text.file},
          {"first", text.lines.first},
          {"last", text.lines.last},
          {"package", text.package},
          {"path", run.provenance->home_path(text.path)},
          {"text", text.text}};
}

}  // namespace

nlohmann::ordered_json suspects_json(const Report& report, const Background& background) {
  Json list = Json::array();
  for (const Suspect& suspect : background.suspects)
    list.push_back({{"nearness", nearness_name(suspect.nearness)},
                    {"a", source_text_json(report.a, suspect.sides[0])},
                    {"b", source_text_json(report.b, suspect.sides[1])},
                    {"whole_file", suspect.whole},
                    {"agrees", suspect.agrees()}});
  return list;
}

nlohmann::ordered_json numbers_json(const Report& report, const Background& background) {
  Json list = Json::array();
  for (const Number& number : background.numbers) {
    Json ways = Json::array();
    for (const NumberWay& way : number.ways) {
      Json steps = Json::array();
      const Run& run = way.side == 0 ? report.a : report.b;
      for (const SourceText& step : way.steps) steps.push_back(source_text_json(run, step));
      ways.push_back(
          {{"side", way.side == 0 ? "a" : "b"}, {"changed", way.changed}, {"steps", steps}});
    }
    list.push_back({{"name", number.name},
                    {"a", number.value[0]},
                    {"b", number.value[1]},
                    {"ways", std::move(ways)}});
  }
  return list;
}

}  // namespace opguard
