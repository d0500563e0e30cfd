// A segment is found by its name, and believed by what its log says of it.
//
//   x.000003.segment                  number 3 of x.log
//   x.000004.segment.incomplete       number 4: it grows, or its process was killed
//   y.000003.segment, x.3a.segment    none of x.log's
//
// What a log says must follow on: the first segment it tells of begins at event 0, the next one
// where that ends. So a chunk that was left out is noticed.
#include "record/segments.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "record/format.h"
#include "record/log_name.h"

namespace opguard {

using namespace format;

namespace {

constexpr std::string_view kSegmentEnding = ".segment";

}  // namespace

std::string segment_path(std::string_view log_path, uint64_t number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, ".%06llu", static_cast<unsigned long long>(number));
  return std::string(log_stem(log_path)) + digits + std::string(kSegmentEnding);
}

std::string segment_payload(uint64_t number, const Segment& segment) {
  std::string out;
  for (const uint64_t v :
       {number, segment.first_event, segment.events, segment.first_slot, segment.slots,
        uint64_t{segment.first_step}, uint64_t{segment.last_step}, segment.bytes, segment.chunks})
    put_varint(out, v);
  put_u64(out, segment.chunk_chain);
  return out;
}

std::string SegmentTable::take(std::string_view payload, uint32_t count) {
  Cursor in(payload);
  std::vector<Segment> read;
  const uint64_t first = in.varint();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    Segment segment;
    for (uint64_t* v : {&segment.first_event, &segment.events, &segment.first_slot, &segment.slots})
      *v = in.varint();
    segment.first_step = in.varint32();
    segment.last_step = in.varint32();
    segment.bytes = in.varint();
    segment.chunks = in.varint();
    segment.chunk_chain = in.u64();
    read.push_back(segment);
  }
  if (!in.ok() || in.left() != 0) return "its length does not fit its content";
  if (first != whole.size()) return "segments before it are missing";
  uint64_t event = whole.empty() ? 0 : whole.back().first_event + whole.back().events;
  uint64_t slot = whole.empty() ? 0 : whole.back().first_slot + whole.back().slots;
  for (const Segment& segment : read) {
    if (segment.first_event != event || segment.first_slot != slot || segment.events > ~event ||
        segment.slots > ~slot)
      return "a segment does not follow the one before it";
    event += segment.events;
    slot += segment.slots;
  }
  whole.insert(whole.end(), read.begin(), read.end());
  return "";
}

// They only grow, and are of those that were told before.
std::string SegmentTable::take_removed(std::string_view payload) {
  Cursor in(payload);
  const uint64_t count = in.varint();
  if (!in.ok() || in.left() != 0) return "its length does not fit its content";
  if (count < removed || count > whole.size()) return "it speaks of segments that there were not";
  removed = count;
  return "";
}

bool tells_segments(std::string_view header) {
  return header.size() >= format::kHeaderSize &&
         format::load_u32(header.data() + 8) >= format::kSegmentsVersion;
}

std::vector<SegmentFile> segment_files(std::string_view log_path) {
  namespace fs = std::filesystem;
  const fs::path path(log_stem(log_path));
  const std::string before = path.filename().string() + ".";
  std::vector<SegmentFile> found;
  std::error_code code;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    const std::string name = it->path().filename().string();
    std::string_view digits = without_ending(name, kIncomplete);
    if (!digits.starts_with(before) || !digits.ends_with(kSegmentEnding)) continue;
    digits.remove_prefix(before.size());
    digits.remove_suffix(std::min(digits.size(), kSegmentEnding.size()));
    if (digits.empty() || digits.size() > 18 ||
        digits.find_first_not_of("0123456789") != std::string_view::npos)
      continue;
    uint64_t number = 0;
    for (const char c : digits) number = 10 * number + static_cast<uint64_t>(c - '0');
    found.push_back({number, it->path().string()});
  }
  std::sort(found.begin(), found.end(), [](const SegmentFile& a, const SegmentFile& b) {
    return std::tie(a.number, a.path) < std::tie(b.number, b.path);
  });
  return found;
}

}  // namespace opguard
