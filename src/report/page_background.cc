// What the page says of suspects and numbers: at most 8 suspects of 4 lines a side.
//
//   candidate["suspects"][0]   {place "train.py:13", near "its statement", a ["x = f(y)"], b [...]}
//   candidate["numbers"][0]    {title "where dim can come from: ...", ways [{side, changed, ...}]}
//
// All texts come from background_text.h, where they are cut and shown safely. So the page and the
// terminal say the same words.
#include "report/page_background.h"

#include <algorithm>
#include <utility>

#include "nlohmann/json.hpp"

namespace opguard {

void add_background(const Background& known, nlohmann::ordered_json& candidate) {
  using Json = nlohmann::ordered_json;
  constexpr size_t kShown = 8, kLines = 4;
  candidate["numbers"] = Json::array();
  for (const Number& number : known.numbers) {
    Json ways = Json::array();
    for (const NumberWay& way : number.ways) {
      Json steps = Json::array();
      for (const SourceText& step : way.steps) {
        const auto text = shown_lines(step, 1, kLineColumns);
        steps.push_back({place_text(step), text.empty() ? "" : text[0]});
      }
      ways.push_back({{"side", way.side}, {"changed", way.changed}, {"steps", steps}});
    }
    if (!ways.empty())
      candidate["numbers"].push_back({{"title", number_title(number)}, {"ways", std::move(ways)}});
  }
  candidate["suspects"] = Json::array();
  const size_t shown = std::min(known.suspects.size(), kShown);
  for (size_t i = 0; i < shown; ++i) {
    const Suspect& suspect = known.suspects[i];
    candidate["suspects"].push_back({{"place", place_text(suspect)},
                                     {"near", suspect_text(suspect)},
                                     {"a", shown_lines(suspect.sides[0], kLines, kLineColumns)},
                                     {"b", shown_lines(suspect.sides[1], kLines, kLineColumns)}});
  }
  // Those left out here, and those find_backgrounds() left out before.
  candidate["more_suspects"] = known.more + known.suspects.size() - shown;
}

}  // namespace opguard
