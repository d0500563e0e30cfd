#include "report/background_json.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

Json source_text_json(const SourceText& text) {
  if (text.file.empty() && text.path.empty()) return nullptr;
  return {{"file", text.file},       {"first", text.lines.first}, {"last", text.lines.last},
          {"package", text.package}, {"path", text.path},         {"text", text.text}};
}

}  // namespace

nlohmann::ordered_json suspects_json(const Background& background) {
  Json list = Json::array();
  for (const Suspect& suspect : background.suspects)
    list.push_back({{"nearness", nearness_name(suspect.nearness)},
                    {"a", source_text_json(suspect.sides[0])},
                    {"b", source_text_json(suspect.sides[1])},
                    {"whole_file", suspect.whole},
                    {"agrees", suspect.agrees()}});
  return list;
}

nlohmann::ordered_json numbers_json(const Background& background) {
  Json list = Json::array();
  for (const Number& number : background.numbers) {
    Json ways = Json::array();
    for (const NumberWay& way : number.ways) {
      Json steps = Json::array();
      for (const SourceText& step : way.steps) steps.push_back(source_text_json(step));
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
