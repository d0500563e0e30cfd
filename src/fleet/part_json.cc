#include "fleet/part_json.h"

#include "llvm/Support/MemoryBuffer.h"
#include "nlohmann/json.hpp"
#include "support/diagnostics.h"

namespace opguard {

// The first one is what an unknown word reads as: `open`, of which nothing can be told.
NLOHMANN_JSON_SERIALIZE_ENUM(RankState, {{RankState::open, "open"},
                                         {RankState::equal, "equal"},
                                         {RankState::differs, "differs"}})

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFinding, kind, boundary, name, file, phase, why, line, step,
                                   micro_batch, occurrence, received, group, sequence, passed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankPart, rank, place, state, why, steps, pairs, records,
                                   certified, unread_steps, findings, groups)

std::string format_part(const Part& part) {
  nlohmann::ordered_json json;
  json["opguard_part"] = kPartVersion;
  json["a"] = part.a;
  json["b"] = part.b;
  json["of"] = part.of;
  json["parts"] = part.parts;
  json["refused"] = part.refused;
  json["ranks"] = nlohmann::json(part.ranks);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

llvm::Expected<Part> read_part(const std::string& path) {
  auto buffer =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return make_error(path + ": " + buffer.getError().message());
  const std::string text = (*buffer)->getBuffer().str();
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const int version = json.at("opguard_part").get<int>();
    if (version != kPartVersion)
      return make_error(path + ": version " + std::to_string(version) +
                        " of a part, this opguard " + "reads " + std::to_string(kPartVersion));
    Part part;
    json.at("a").get_to(part.a);
    json.at("b").get_to(part.b);
    json.at("of").get_to(part.of);
    json.at("parts").get_to(part.parts);
    json.at("refused").get_to(part.refused);
    json.at("ranks").get_to(part.ranks);
    // A part beyond their number is of another comparison, or damaged.
    for (const uint32_t number : part.parts)
      if (number < 1 || number > part.of)
        return make_error(path + ": part " + std::to_string(number) + " of " +
                          std::to_string(part.of));
    return part;
  } catch (const nlohmann::json::exception& e) {
    return make_error(path + ": not a part of a comparison (" + e.what() + ")");
  }
}

}  // namespace opguard
