// logs_from_json FILE DIR: writes operators described in JSON as a log of the runtime's own writer.
//
// {"rank": 0, "world": 1, "strings": [text...], "metas": [[dtype, device, [sizes]]...],
//  "events": [[boundary, kind, phase, step, micro_batch, occurrence, scalars, results, start_ns,
//              end_ns, [[kind, index, name, meta, flags, version, storage, h, m, flat, address,
//                        size_bytes]...]]...]}
// Strings and metas by index, null for none; kinds and phases by number, in the order of record.h.
#include <cstdio>
#include <fstream>

#include "nlohmann/json.hpp"
#include "record/writer.h"

using opguard::Event;
using opguard::Slot;
using Json = nlohmann::json;

namespace {

Slot slot_of(const Json& json, const std::vector<uint32_t>& strings,
             const std::vector<uint32_t>& metas) {
  Slot slot;
  slot.kind = static_cast<opguard::SlotKind>(json[0].get<int>());
  slot.index = json[1];
  slot.name = strings[json[2].get<size_t>()];
  slot.meta = metas[json[3].get<size_t>()];
  slot.flags = json[4];
  slot.version = json[5];
  slot.storage = json[6];
  slot.value = {json[7], json[8]};
  slot.flat = json[9];
  slot.address = json[10];
  slot.size_bytes = json[11];
  return slot;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: logs_from_json FILE DIR\n", stderr), 2;
  std::ifstream file(argv[1]);
  if (!file) return std::fprintf(stderr, "%s: cannot be read\n", argv[1]), 2;
  const Json json = Json::parse(file);
  opguard::LogWriter writer;
  const int32_t rank = json.at("rank");
  if (!writer.open(argv[2], rank, json.at("world"), 100 + rank, 1))
    return std::fprintf(stderr, "%s\n", writer.error().c_str()), 2;
  std::vector<uint32_t> strings, metas;
  for (const Json& text : json.at("strings"))
    strings.push_back(writer.string(text.get<std::string>()));
  for (const Json& meta : json.at("metas"))
    metas.push_back(writer.meta({meta[0], meta[1], meta[2].get<std::vector<int64_t>>()}));
  uint32_t index = 0;
  for (const Json& e : json.at("events")) {
    auto optional = [&](const Json& text) {
      return text.is_null() ? opguard::kNone : strings[text.get<size_t>()];
    };
    Event event;
    event.boundary = strings[e[0].get<size_t>()];
    event.kind = static_cast<opguard::EventKind>(e[1].get<int>());
    event.phase = static_cast<opguard::Phase>(e[2].get<int>());
    event.step = e[3];
    event.micro_batch = e[4];
    event.occurrence = e[5];
    event.scalars = optional(e[6]);
    event.results = optional(e[7]);
    event.start_ns = e[8];
    event.end_ns = e[9];
    event.begin = index++;
    std::vector<Slot> slots;
    for (const Json& slot : e[10]) slots.push_back(slot_of(slot, strings, metas));
    writer.add(event, slots);
  }
  if (writer.close()) return 0;
  return std::fprintf(stderr, "%s\n", writer.error().c_str()), 2;
}
