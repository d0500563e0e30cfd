// record/sample.h: a small log with every kind of chunk, and a folder to write it in.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "record/writer.h"

namespace opguard {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "opguard-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Event `i` of the sample: all fields depend on i, so that a mixed-up field shows.
inline Event sample_event(LogWriter& writer, uint32_t i) {
  Event e;
  e.boundary = writer.string("attention.softmax:q7k" + std::to_string(i % 3));
  e.kind = static_cast<EventKind>(i % 5);
  e.phase = static_cast<Phase>(i % 4);
  e.flags = static_cast<uint8_t>(i % 4);
  e.step = i / 3;
  e.micro_batch = i % 2;
  e.occurrence = i;
  e.thread = i % 2;
  e.begin = i / 2;
  e.forward = i % 2 == 1 ? i / 2 : kNone;
  e.node = i % 2 == 1 ? writer.string("MulBackward0") : kNone;
  e.scalars = i % 3 == 0 ? writer.string("dim=-" + std::to_string(i)) : kNone;
  if (e.flags & kCollective) {
    e.group = i % 4 == 3 ? writer.string("0-" + std::to_string(i)) : kNone;
    e.sequence = i;
  }
  e.results = i % 4 == 0 ? writer.string("out1=\"\n\x1b[31m\"") : kNone;
  e.start_ns = 1000000000ull * i;
  e.end_ns = e.start_ns + 17 * i;
  if (i % 5 == 4) {
    e.flags |= kOnDevice;
    e.stream = 1 + i % 2;
    e.device_start_ns = 7000000000000ull - 1000 * i;
    e.device_end_ns = e.device_start_ns + i;
  }
  return e;
}

inline std::vector<Slot> sample_slots(LogWriter& writer, uint32_t i) {
  std::vector<Slot> slots(i % 4);
  for (uint32_t s = 0; s < slots.size(); ++s) {
    Slot& slot = slots[s];
    slot.kind = static_cast<SlotKind>(s % 3);
    slot.flags = static_cast<uint8_t>((i + 8 * s) % 64);
    slot.index = static_cast<uint16_t>(s);
    slot.name = writer.string("arg" + std::to_string(s));
    slot.meta = writer.meta({"float32", "cpu", {int64_t{i}, 0, 7}});
    slot.version = i;
    slot.storage = (i * 7 + s) % 5;
    if (!(slot.flags & kUnreadable)) {
      slot.value = {0x0123456789abcdefu * (i + 1), ~uint64_t{s}};
      slot.has_digest = i % 5 != 1;
      if (slot.has_digest) slot.digest = 0xfedcba9876543210u + s;
      slot.flat = i % 3 == 0 ? slot.value.h + 1 : slot.value.h;
      if (slot.flags & kMask) slot.pattern = 77 + i;
    }
    slot.address = 0x7fff00000000u - 64 * i + s;
    slot.size_bytes = 4096u * i;
  }
  return slots;
}

// Writes `count` events; a flush after every `chunk` of them. Returns what a reader should find.
inline ProcessLog write_sample(LogWriter& writer, const std::string& dir, uint32_t count,
                               uint32_t chunk) {
  ProcessLog expected;
  writer.open(dir, 3, 8, 4711, 1763700000000000000);
  expected.rank = 3;
  expected.world = 8;
  expected.pid = 4711;
  expected.start_ns = 1763700000000000000;
  expected.settings = {{"seed", "7"}, {"torch", "2.13.0"}};
  writer.set(expected.settings);
  Location at{"timm", "timm/a.py", "/x/timm/a.py", 3, 4, 3, 9, "x + y", "+", "Block.forward"};
  expected.locations["a.add:k1l2"] = at;
  writer.locate("a.add:k1l2", at);
  for (uint32_t i = 0; i < count; ++i) {
    Event e = sample_event(writer, i);
    std::vector<Slot> slots = sample_slots(writer, i);
    writer.add(e, slots);
    e.first_slot = expected.slots.size();
    e.slot_count = static_cast<uint32_t>(slots.size());
    expected.events.edit().push_back(e);
    expected.slots.edit().insert(expected.slots.edit().end(), slots.begin(), slots.end());
    if (i % chunk == chunk - 1) writer.flush();
  }
  return expected;
}

}  // namespace opguard
