// record/reader.cc: a log file -> ProcessLog. A chunk is believed whole or not at all.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "record/crc.h"
#include "record/format.h"
#include "record/record.h"

namespace opguard {

using namespace format;

const std::string& ProcessLog::text(uint32_t string) const {
  static const std::string kEmpty;
  return string < strings.size() ? strings[string] : kEmpty;
}

uint64_t Run::records() const {
  uint64_t n = 0;
  for (const ProcessLog& p : processes) n += p.slots.size();
  return n;
}

namespace {

uint32_t load_u32(const char* p) {
  const auto* b = reinterpret_cast<const uint8_t*>(p);
  return b[0] | b[1] << 8 | b[2] << 16 | uint32_t{b[3]} << 24;
}

// kNone is stored as 0, an index i as i + 1. False: points outside `size` entries.
bool take_optional(Cursor& in, size_t size, uint32_t& index) {
  uint64_t v = in.varint();
  index = v == 0 ? kNone : static_cast<uint32_t>(v - 1);
  return v <= size;
}

// Each decoder returns "" or what is wrong; the caller then drops what it appended.
std::string take_process(Cursor& in, ProcessLog& log) {
  log.rank = static_cast<int32_t>(in.signed_varint());
  log.world = static_cast<int32_t>(in.signed_varint());
  log.pid = in.signed_varint();
  log.start_ns = in.signed_varint();
  return "";
}

std::string take_settings(Cursor& in, uint32_t count, ProcessLog& log) {
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string key = in.text();
    log.settings[key] = in.text();
  }
  return "";
}

std::string take_strings(Cursor& in, uint32_t count, ProcessLog& log) {
  if (in.varint() != log.strings.size()) return "strings before it are missing";
  for (uint32_t i = 0; i < count && in.ok(); ++i) log.strings.push_back(in.text());
  return "";
}

std::string take_metas(Cursor& in, uint32_t count, ProcessLog& log) {
  if (in.varint() != log.metas.size()) return "metas before it are missing";
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    Meta meta;
    meta.dtype = in.text();
    meta.device = in.text();
    uint64_t dims = in.varint();
    if (dims > in.left()) return "a shape is longer than its chunk";
    for (uint64_t d = 0; d < dims; ++d) meta.shape.push_back(in.signed_varint());
    log.metas.push_back(std::move(meta));
  }
  return "";
}

std::string take_locations(Cursor& in, uint32_t count, ProcessLog& log) {
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string boundary = in.text();
    Location at;
    for (std::string* s : {&at.package, &at.file, &at.path, &at.text, &at.callee, &at.function})
      *s = in.text();
    for (uint32_t* n : {&at.line, &at.column, &at.end_line, &at.end_column}) *n = in.varint32();
    log.locations[boundary] = std::move(at);
  }
  return "";
}

std::string take_events(Cursor& in, uint32_t count, ProcessLog& log) {
  if (in.varint() != log.events.size()) return "events before it are missing";
  uint64_t step = 0, micro_batch = 0, time_ns = 0, address = 0, storage = 0;
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    uint64_t index = log.events.size();
    Event e;
    e.boundary = in.varint32();
    uint8_t kinds = in.byte();
    e.flags = in.byte();
    if ((kinds & 15) > static_cast<uint8_t>(EventKind::state) ||
        (kinds >> 4) > static_cast<uint8_t>(Phase::optimizer))
      return "an event of an unknown kind";
    e.kind = static_cast<EventKind>(kinds & 15);
    e.phase = static_cast<Phase>(kinds >> 4);
    e.step = static_cast<uint32_t>(step += static_cast<uint64_t>(in.signed_varint()));
    e.micro_batch = static_cast<uint32_t>(micro_batch += static_cast<uint64_t>(in.signed_varint()));
    e.occurrence = in.varint32();
    e.thread = in.varint32();
    uint64_t inside = in.varint();
    uint64_t back = in.varint();
    if (inside > index || back > index) return "an event refers to one before the log";
    e.begin = index - inside;
    e.forward = back == 0 ? kNone : static_cast<uint32_t>(index - back);
    bool known = e.boundary < log.strings.size();
    known &= take_optional(in, log.strings.size(), e.node);
    known &= take_optional(in, log.strings.size(), e.scalars);
    known &= take_optional(in, log.strings.size(), e.results);
    if (e.flags & kCollective) {
      known &= take_optional(in, log.strings.size(), e.group);
      e.sequence = in.varint32();
    }
    e.start_ns = time_ns += static_cast<uint64_t>(in.signed_varint());
    e.end_ns = e.start_ns + static_cast<uint64_t>(in.signed_varint());
    e.first_slot = log.slots.size();
    e.slot_count = in.varint32();
    for (uint32_t s = 0; s < e.slot_count && in.ok(); ++s) {
      Slot slot;
      uint64_t kind = in.varint();
      if ((kind & 3) > static_cast<uint8_t>(SlotKind::written)) return "a slot of an unknown kind";
      slot.kind = static_cast<SlotKind>(kind & 3);
      if (kind / kFlagStep > 0xff) return "a slot of unknown flags";
      slot.flags = static_cast<uint8_t>(kind / kFlagStep);
      slot.index = static_cast<uint16_t>(in.varint32());
      slot.name = in.varint32();
      slot.meta = in.varint32();
      slot.version = in.varint32();
      slot.storage = static_cast<uint32_t>(storage += static_cast<uint64_t>(in.signed_varint()));
      slot.address = address += static_cast<uint64_t>(in.signed_varint());
      slot.size_bytes = in.varint();
      if (!(slot.flags & kUnreadable)) {
        slot.value.h = in.u64();
        slot.value.m = in.u64();
        slot.flat = kind & kFlatFollows ? in.u64() : slot.value.h;
        if (slot.flags & kMask) slot.pattern = in.u64();
      }
      known &= slot.name < log.strings.size() && slot.meta < log.metas.size();
      log.slots.push_back(slot);
    }
    if (in.ok() && !known) return "an event refers to a string or shape that is not in the log";
    log.events.push_back(e);
  }
  return "";
}

std::string take_end(Cursor& in, ProcessLog& log) {
  uint64_t events = in.varint(), slots = in.varint();
  log.lost = in.varint();
  if (in.ok() && (events != log.events.size() || slots != log.slots.size()))
    return "it counts other events than the log holds";
  log.closed = true;
  return "";
}

std::string take_chunk(Chunk type, uint32_t count, std::string_view payload, ProcessLog& log) {
  Cursor in(payload);
  std::string wrong;
  switch (type) {
    case Chunk::process:
      wrong = take_process(in, log);
      break;
    case Chunk::settings:
      wrong = take_settings(in, count, log);
      break;
    case Chunk::strings:
      wrong = take_strings(in, count, log);
      break;
    case Chunk::metas:
      wrong = take_metas(in, count, log);
      break;
    case Chunk::locations:
      wrong = take_locations(in, count, log);
      break;
    case Chunk::events:
      wrong = take_events(in, count, log);
      break;
    case Chunk::lost:
      log.lost = in.varint();
      break;
    case Chunk::end:
      wrong = take_end(in, log);
      break;
    default:
      return "its type is unknown";
  }
  if (wrong.empty() && (!in.ok() || in.left() != 0)) wrong = "its length does not fit its content";
  return wrong;
}

// Why the file is no log this reader can read; "" if its header is good.
std::string check_header(std::string_view bytes, bool& cut) {
  size_t n = std::min(bytes.size(), sizeof kMagic);
  cut = bytes.size() < kHeaderSize;
  if (std::memcmp(bytes.data(), kMagic, n) != 0) return "not an opguard log";
  if (cut) return "";
  if (load_u32(bytes.data() + 12) != crc32c(0, bytes.data(), 12))
    return "the header (byte 0) is damaged";
  uint32_t version = load_u32(bytes.data() + 8);
  if (version != kVersion)
    return "log format version " + std::to_string(version) + "; this opguard reads version " +
           std::to_string(kVersion);
  return "";
}

}  // namespace

bool read_log(const std::string& path, ProcessLog& log, std::string& error) {
  log = {};
  log.path = path;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || (text << file.rdbuf(), file.bad())) {
    error = path + ": cannot be read: " + std::strerror(errno);
    return false;
  }
  const std::string bytes = std::move(text).str();
  bool cut = false;
  if (std::string why = check_header(bytes, cut); !why.empty()) {
    error = path + ": " + why;
    return false;
  }
  auto stop = [&](size_t at, const std::string& what) {
    log.damage = "record " + std::to_string(log.slots.size()) + " (byte " + std::to_string(at) +
                 "): " + what;
    return true;
  };
  if (cut) return stop(bytes.size(), "cut short in the header");

  size_t at = kHeaderSize;
  while (!log.closed) {
    std::string_view rest = std::string_view(bytes).substr(at);
    if (rest.empty()) return stop(at, "the log ends here, without having been closed");
    if (rest.size() < kChunkHeaderSize) return stop(at, "cut short in the header of a chunk");
    Chunk type = static_cast<Chunk>(load_u32(rest.data()));
    uint32_t length = load_u32(rest.data() + 4), count = load_u32(rest.data() + 8);
    std::string name = chunk_name(type);
    if (length > rest.size() - kChunkHeaderSize)
      return stop(at, "the chunk of " + name + " is cut short or its length is damaged");
    std::string_view payload = rest.substr(kChunkHeaderSize, length);
    uint32_t crc = crc32c(crc32c(0, rest.data(), 12), payload.data(), payload.size());
    if (crc != load_u32(rest.data() + 12))
      return stop(at, "the chunk of " + name + " is damaged (checksum)");
    // The checksum held, yet what is inside may still contradict the rest: then nothing of it
    // stays.
    size_t strings = log.strings.size(), metas = log.metas.size();
    size_t events = log.events.size(), slots = log.slots.size();
    if (std::string why = take_chunk(type, count, payload, log); !why.empty()) {
      log.strings.resize(strings);
      log.metas.resize(metas);
      log.events.resize(events);
      log.slots.resize(slots);
      log.closed = false;
      return stop(at, "the chunk of " + name + " is refused: " + why);
    }
    at += kChunkHeaderSize + length;
  }
  if (at != bytes.size()) {
    log.closed = false;
    return stop(at, "bytes follow the end of the log");
  }
  return true;
}

bool read_run(const std::string& dir, Run& run, std::string& error) {
  namespace fs = std::filesystem;
  run = {};
  run.dir = dir;
  std::error_code code;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(dir, code), end; !code && it != end; it.increment(code)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".log") || name.ends_with(".log.incomplete"))
      paths.push_back(it->path().string());
  }
  if (code) {
    error = dir + ": cannot be read: " + code.message();
    return false;
  }
  if (paths.empty()) {
    error = dir + ": holds no log";
    return false;
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    ProcessLog log;
    if (!read_log(path, log, error)) return false;
    run.processes.push_back(std::move(log));
  }
  std::stable_sort(run.processes.begin(), run.processes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.start_ns, a.pid) < std::tie(b.rank, b.start_ns, b.pid);
  });
  return true;
}

}  // namespace opguard
