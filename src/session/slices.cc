// One text for one run. Its order is fixed, by sets and maps, since its digest stands in the
// reference's log. By it report_tolerance() sees whether the reference was recorded for this
// candidate.
//
//   a candidate of one process    "world 1", and its types: it has no pieces
//   of two ranks                  "world 2", its types, its shapes, then parts and parameters
//   a port of one process         its shapes as `exchange` lines: dimensions may be exchanged
//
// The cost: one pass over the events for the types, one over the results for the shapes
// (held_shapes.h).
#include "session/slices.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "align/pair/run.h"
#include "align/tolerance/noise_level.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CRC.h"
#include "session/held_shapes.h"
#include "support/write_file.h"

namespace opguard {

namespace {

// Of a model under autocast a good part stays float32.
constexpr uint64_t kNarrowPart = 4;

}  // namespace

// "" for a run in float32: only where more than a quarter of the floating results are of one narrow
// type is rounding that coarse. Narrower is what has a larger unit roundoff than float32.
std::string types_of(const Run& candidate) {
  std::map<std::string, std::map<std::string, uint64_t>> boundaries;
  std::map<std::string, uint64_t> all;
  uint64_t floating = 0;
  for (const ProcessLog& log : candidate.processes)
    for (uint64_t i = 0; i < log.events.size(); ++i) {
      const EventKind kind = log.events.kind(i);
      if (kind != EventKind::op && kind != EventKind::node) continue;
      const Event event = log.events[i];
      for (const Slot& slot : log.slots_of(event)) {
        if (slot.kind == SlotKind::in || slot.meta == kNone) continue;
        const std::string& type = log.metas[slot.meta].dtype;
        if (unit_roundoff(type) == 0) continue;
        ++floating;
        ++all[type];
        ++boundaries[log.text(event.boundary)][type];
      }
    }
  const auto by_times = [](const auto& x, const auto& y) { return x.second < y.second; };
  const auto is_narrow = [](const std::string& type) {
    return unit_roundoff(type) > unit_roundoff("float32");
  };
  std::erase_if(all, [&](const auto& type) { return !is_narrow(type.first); });
  const auto most = std::max_element(all.begin(), all.end(), by_times);
  if (most == all.end() || most->second * kNarrowPart <= floating) return "";
  std::string text;
  for (const auto& [boundary, types] : boundaries) {
    const auto of = std::max_element(types.begin(), types.end(), by_times);
    text += "type " + boundary + " " + of->first + "\n";
  }
  return text + "type * " + most->first + "\n";
}

namespace {

// In the order python/opguard reads them: the world first.
std::string shape_lines(const Run& candidate, bool port) {
  std::set<int32_t> ranks;
  std::set<std::vector<int64_t>> shapes;
  for (const ProcessLog& log : candidate.processes) {
    ranks.insert(log.rank);
    for (const Meta& meta : log.metas)
      if (!meta.shape.empty()) shapes.insert(meta.shape);
  }
  std::string text = "world " + std::to_string(std::max<size_t>(ranks.size(), 1)) + "\n";
  text += types_of(candidate);
  if (ranks.size() < 2 && !port) return text;
  for (const auto& shape : shapes) {
    if (ranks.size() < 2 && shape.size() < 2) continue;
    text += ranks.size() < 2 ? "exchange" : "shape";
    for (const int64_t n : shape) text += " " + std::to_string(n);
    text += "\n";
  }
  return text;
}

std::string numbers_text(const std::vector<int64_t>& numbers, char between) {
  std::string text;
  for (const int64_t n : numbers)
    text += (text.empty() ? "" : std::string(1, between)) + std::to_string(n);
  return text;
}

}  // namespace

std::string slices_of(const Run& candidate, bool port) {
  std::string text = shape_lines(candidate, port);
  const HeldShapes held = held_shapes(candidate);
  for (const auto& sizes : held.parts) text += "parts " + numbers_text(sizes, ' ') + "\n";
  for (const auto& [name, shape] : held.parameters)
    if (!shape.empty()) text += "parameter " + numbers_text(shape, 'x') + " " + name + "\n";
  return text;
}

std::string even_slices_of(const Run& candidate) { return shape_lines(candidate, /*port=*/false); }

std::string pads_of(const Run& reference, const Run& candidate) {
  std::string text;
  for (const PaddedDim& dim : padded_dims(reference, candidate))
    text += "pad " + std::to_string(dim.whole) + " " + std::to_string(dim.local) + "\n";
  return text.empty() ? text : "world 1\n" + text;
}

// 8 hexadecimal digits of a CRC-32: enough to tell that another text was used, not who changed it.
std::string slices_digest(const std::string& text) {
  char digest[9];
  const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  std::snprintf(digest, sizeof digest, "%08x", llvm::crc32(bytes));
  return digest;
}

llvm::Expected<std::string> slices_file(const std::string& given, const std::string& file) {
  if (!std::filesystem::is_directory(given)) return std::filesystem::absolute(given).string();
  auto run = load_run(given);
  if (!run) return run.takeError();
  if (auto error = write_file(file, slices_of(*run, /*port=*/true))) return error;
  return file;
}

}  // namespace opguard
