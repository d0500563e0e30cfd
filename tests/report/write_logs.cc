// write_logs: logs for the tests of the report that run the tool itself, and for
// bench/report_html.py.
//
//   write_logs SPEC.json DIR          one run, as the specification has it
//   (tests/python/report_logs.py) write_logs --pairs N RANKS A B    two runs of a made-up training
//   program, N pairs of events a rank
#include <cstdio>
#include <fstream>
#include <random>
#include <string>

#include "nlohmann/json.hpp"
#include "record/writer.h"

namespace opguard {
namespace {

using Json = nlohmann::json;

// A string, or {"hex": "..."} for bytes that are no text.
std::string text(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  std::string bytes;
  const std::string hex = json.at("hex");
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(char(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string text(const Json& json, const char* key) {
  return json.contains(key) ? text(json.at(key)) : "";
}

uint32_t optional(LogWriter& writer, const Json& json, const char* key) {
  return json.contains(key) ? writer.string(text(json.at(key))) : kNone;
}

Slot slot_of(LogWriter& writer, const Json& json) {
  Slot slot;
  slot.kind = SlotKind(json.at("kind").get<int>());
  slot.name = writer.string(text(json, "name"));
  slot.meta = writer.meta({json.value("dtype", "float32"), json.value("device", "cpu"),
                           json.value("shape", std::vector<int64_t>{4, 8})});
  slot.flags = json.value("flags", 0);
  slot.value = {json.at("value").get<uint64_t>() * 0x9e3779b97f4a7c15,
                json.value("m", json.at("value").get<uint64_t>())};
  slot.flat = slot.value.h;
  return slot;
}

bool write_process(const std::string& dir, const Json& json) {
  LogWriter writer;
  if (!writer.open(dir, json.value("rank", 0), json.value("world", 1), 100 + json.value("rank", 0),
                   7))
    return false;
  if (json.contains("settings")) {
    std::map<std::string, std::string> settings;
    for (const Json& pair : json.at("settings")) settings[text(pair.at(0))] = text(pair.at(1));
    writer.set(settings);
  }
  for (const Json& at : json.at("locations")) {
    Location location;
    location.package = text(at, "package"), location.file = text(at, "file"),
    location.path = text(at, "path");
    location.line = at.value("line", 0);
    location.end_line = at.value("end_line", 0), location.end_column = at.value("end_column", 0);
    location.column = at.value("column", 0);
    location.text = text(at, "text"), location.callee = text(at, "callee"),
    location.function = text(at, "function");
    writer.locate(text(at, "boundary"), location);
  }
  uint64_t clock = 1'000'000'000;
  for (const Json& e : json.at("events")) {
    Event event;
    event.boundary = writer.string(text(e, "boundary"));
    event.kind = EventKind(e.value("kind", 0));
    event.phase = Phase(e.value("phase", 0));
    event.flags = e.value("flags", 0);
    event.step = e.value("step", 0), event.micro_batch = e.value("micro_batch", 0);
    event.occurrence = e.value("occurrence", 0);
    event.begin = writer.events() - e.value("inside", 0);
    event.node = optional(writer, e, "node");
    event.scalars = optional(writer, e, "scalars"), event.results = optional(writer, e, "results");
    event.group = optional(writer, e, "group"), event.sequence = e.value("sequence", 0);
    event.start_ns = clock += 1000, event.end_ns = clock += 5000;
    std::vector<Slot> slots;
    uint16_t index[3] = {};
    for (const Json& s : e.at("slots")) {
      slots.push_back(slot_of(writer, s));
      slots.back().index = index[int(slots.back().kind)]++;
    }
    writer.add(event, slots);
  }
  return writer.close();
}

// Layers of operators, forward and backward, an optimizer step at the end. Side b holds other
// values from two fifths on, and now and then an operator more.
bool write_training(const std::string& dir, int32_t rank, int32_t world, uint64_t pairs, bool b) {
  LogWriter writer;
  if (!writer.open(dir, rank, world, 100 + rank, 7)) return false;
  constexpr uint32_t kSites = 60, kLayers = 12;
  const char* const kCallees[] = {"torch.matmul", "+", "torch.softmax", ".view",
                                  "F.layer_norm", "*"};
  std::vector<uint32_t> boundaries, nodes;
  for (uint32_t i = 0; i < kSites; ++i) {
    const std::string id = "block.op" + std::to_string(i) + ":aa" + std::to_string(10 + i);
    Location at;
    at.file = "model/block" + std::to_string(i / 10) + ".py", at.path = "/nowhere/" + at.file;
    at.line = at.end_line = 10 + i % 10 * 4, at.column = 8;
    at.callee = kCallees[i % 6], at.text = at.callee + "(x)", at.function = "Block.forward";
    writer.locate(id, at);
    boundaries.push_back(writer.string(id));
    nodes.push_back(writer.string("Node" + std::to_string(i % 6) + "Backward0"));
  }
  const uint32_t extra = writer.string("block.extra:bbbb"), in = writer.string("self"),
                 out = writer.string("out0");
  const uint32_t scalars = writer.string("dim=-1"),
                 meta = writer.meta({"float32", "cpu", {8, 128, 768}});
  const uint32_t step_boundary = writer.string("train.step:cccc"),
                 loss_boundary = writer.string("train.backward:dddd");
  const uint64_t parts = pairs * 2 / 5;
  std::mt19937_64 extras(5);
  uint64_t value = uint64_t(rank) << 40, clock = 1'000'000'000;
  std::vector<uint32_t> occurrences(2 * kSites + 2);
  Event event;
  auto add = [&](uint64_t read, uint64_t left, uint8_t flags) {
    auto slot = [&](SlotKind kind, uint64_t v) {
      Slot s;
      s.kind = kind, s.name = kind == SlotKind::in ? in : out, s.meta = meta, s.flags = flags;
      s.value = {v * 0x9e3779b97f4a7c15, v * 0xd6e8feb86659fd93}, s.flat = s.value.h;
      return s;
    };
    event.start_ns = clock += 900, event.end_ns = clock += 7300, event.begin = writer.events();
    writer.add(event, {slot(SlotKind::in, read), slot(SlotKind::in, read ^ 0x5555),
                       slot(SlotKind::out, left)});
  };
  const uint64_t in_step = 2 * kSites * kLayers + 2;
  for (uint64_t i = 0; i < pairs; ++i) {
    const uint64_t at = i % in_step;
    const uint64_t other = b && i >= parts ? 1ull << 60 : 0;
    const uint64_t read = ++value | (b && i > parts ? 1ull << 60 : 0);
    event = {};
    event.step = uint32_t(i / in_step);
    if (at < kSites * kLayers) {
      event.boundary = boundaries[at % kSites], event.scalars = at % 3 == 0 ? scalars : kNone;
      event.occurrence = occurrences[at % kSites]++;
      add(read, (value + 1) | other, 0);
    } else if (at == kSites * kLayers) {
      event.boundary = loss_boundary, event.kind = EventKind::loss;
      event.occurrence = occurrences[2 * kSites]++;
      add(read, (value + 1) | other, kModelValue);
    } else if (at + 1 < in_step) {
      const uint32_t site = kSites - 1 - (at - kSites * kLayers - 1) % kSites;
      event.boundary = boundaries[site], event.kind = EventKind::node,
      event.phase = Phase::backward;
      event.micro_batch = 1, event.node = nodes[site];
      event.occurrence = occurrences[kSites + site]++;
      add(read, (value + 1) | other, 0);
    } else {
      event.boundary = step_boundary, event.kind = EventKind::optimizer,
      event.phase = Phase::optimizer;
      event.micro_batch = 1, event.occurrence = occurrences[2 * kSites + 1]++;
      add(read, (value + 1) | other, kModelValue);
    }
    if (extras() % 2000 == 0 && b) {
      event = {};
      event.step = uint32_t(i / in_step), event.boundary = extra;
      add(value, value | 1ull << 59, 0);
    }
  }
  return writer.close();
}

int main_of(int argc, char** argv) {
  if (argc == 6 && std::string(argv[1]) == "--pairs") {
    const uint64_t pairs = std::stoull(argv[2]);
    const int32_t ranks = std::stoi(argv[3]);
    for (int32_t rank = 0; rank < ranks; ++rank)
      for (int side : {0, 1})
        if (!write_training(argv[4 + side], rank, ranks, pairs, side == 1)) return 1;
    return 0;
  }
  if (argc != 3) {
    std::fputs("usage: write_logs SPEC.json DIR | --pairs N RANKS A B\n", stderr);
    return 2;
  }
  const Json spec = Json::parse(std::ifstream(argv[1]));
  for (const Json& process : spec.at("processes"))
    if (!write_process(argv[2], process)) return 1;
  return 0;
}

}  // namespace
}  // namespace opguard

int main(int argc, char** argv) { return opguard::main_of(argc, argv); }
