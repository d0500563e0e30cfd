// From the finest depth on, the first that fits in the step's room is taken.
//
//   step 0    distance 0, which groups there are, their sums
//   step 1    distance back to step 0, sums: it has the same groups
//   step 2    a new shape of step: distance 0, as step 0
//   step 3    as step 0: the distance back to it, since its layout is remembered
//
// Layouts have room of their own, so that a run whose steps are all different does not write one a
// step.
//
// To read one, 8 KiB are read, then 8 KiB where its layout is; more, where a payload is longer.
#include "record/group_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "record/crc.h"
#include "record/format.h"
#include "record/log_name.h"

namespace opguard {

using namespace format;

namespace {

constexpr char kGroupMagic[8] = {'o', 'p', 'g', 'g', 'r', 'p', 's', '\x1a'};
constexpr uint32_t kGroupVersion = 1;
constexpr uint64_t kGroupHeader = 20;
constexpr size_t kSealed = 8;         // in front of a payload: its checksum, its bytes
constexpr uint64_t kEntryBytes = 64;  // that the step takes in its index
constexpr size_t kSum = 2;            // bytes of each
constexpr size_t kMostPayload = 1 << 24;
constexpr size_t kFirstRead = 8192;
constexpr size_t kWaiting = 1 << 16;  // bytes, before they are written
// For which groups there are: so much at first, and a part of a byte a record.
constexpr uint64_t kFirstLayouts = 256 << 10, kLayoutPart = 4;
constexpr size_t kMostLayouts = 8 << 20;  // bytes of those that are remembered

// What the groups of a step may take: with its entry, and its part of kLayoutPart, two bytes a
// record.
uint64_t bytes_for(uint64_t records) {
  return std::max(2 * records - records / kLayoutPart, kEntryBytes) - kEntryBytes;
}

// Which groups there are, without their sums; micro-batches as the distance from the one before.
std::string layout_of(const std::vector<StepGroup>& groups, GroupDepth depth) {
  std::string out = {static_cast<char>(depth)};
  put_varint(out, groups.size());
  uint32_t batch = 0;
  for (const StepGroup& group : groups) {
    out.push_back(static_cast<char>(group.phase));
    if (depth < GroupDepth::phase) put_varint(out, group.boundary);
    if (depth < GroupDepth::module)
      put_signed(out,
                 static_cast<int32_t>(group.micro_batch - std::exchange(batch, group.micro_batch)));
  }
  return out;
}

// Whether they are the same groups, as layout_of() has them.
bool is_like(const std::vector<StepGroup>& groups, const std::vector<StepGroup>& others) {
  return std::equal(groups.begin(), groups.end(), others.begin(), others.end(),
                    [](const StepGroup& x, const StepGroup& y) {
                      return x.micro_batch == y.micro_batch && x.boundary == y.boundary &&
                             x.phase == y.phase;
                    });
}

// False: it is none. Each with a sum of 0.
bool take_layout(Cursor& in, KeptGroups& into) {
  const uint8_t depth = in.byte();
  const uint64_t count = in.varint();
  if (!in.ok() || depth >= kGroupDepths || count > in.left()) return false;
  into.depth = static_cast<GroupDepth>(depth);
  uint32_t batch = 0;
  for (uint64_t i = 0; i < count; ++i) {
    StepGroup group;
    const uint8_t phase = in.byte();
    if (phase > static_cast<uint8_t>(Phase::optimizer)) return false;
    group.phase = static_cast<Phase>(phase);
    if (into.depth < GroupDepth::phase) group.boundary = group.of_module = in.varint32();
    group.micro_batch = kNone;
    if (into.depth < GroupDepth::module)
      group.micro_batch = batch += static_cast<uint32_t>(in.signed_varint());
    into.groups.push_back(group);
  }
  return in.ok();
}

uint32_t checksum(uint32_t salt, uint64_t at, std::string_view payload) {
  std::string before;
  put_u64(before, at);
  put_u32(before, static_cast<uint32_t>(payload.size()));
  return crc32c(crc32c(salt, before.data(), before.size()), payload.data(), payload.size());
}

}  // namespace

std::string group_file_path(std::string_view log_path) {
  return std::string(log_stem(log_path)) + ".groups";
}

void GroupFileWriter::begin(const std::string& path, uint32_t salt, uint64_t most_bytes) {
  path_ = path;
  salt_ = salt;
  most_bytes_ = most_bytes;
}

// Where the file is full, phases alone are told from then on.
uint64_t GroupFileWriter::add(const std::vector<StepGroup>& events, uint64_t records) {
  records_ += records;
  if (failed_ || path_.empty() || events.empty()) return 0;
  const bool is_full = most_bytes_ > 0 && size_ >= most_bytes_;
  for (uint8_t i = is_full ? kGroupDepths - 1 : 0; i < kGroupDepths; ++i) {
    const auto depth = static_cast<GroupDepth>(i);
    std::vector<StepGroup> sums;
    if (depth != GroupDepth::event) sums = fold_groups(events, depth);
    const std::vector<StepGroup>& folded = depth == GroupDepth::event ? events : sums;
    // With the distance of where it is told which they are.
    if (kSealed + 4 + kSum * folded.size() > bytes_for(records)) continue;
    const uint64_t at = std::max(size_, kGroupHeader);
    std::string payload, layout;
    const bool is_last = depth == last_depth_ && is_like(folded, last_);
    if (!is_last) layout = layout_of(folded, depth);
    const auto known = layouts_.find(layout);
    if (is_last || known != layouts_.end()) {
      if (!is_last) last_at_ = known->second;
      put_varint(payload, at - last_at_);
    } else {
      put_varint(payload, 0);
      if (layout_bytes_ + layout.size() > kFirstLayouts + records_ / kLayoutPart) continue;
      layout_bytes_ += layout.size();
      payload += layout;
      if ((known_bytes_ += layout.size()) > kMostLayouts) {
        layouts_.clear();
        known_bytes_ = layout.size();
      }
      layouts_.emplace(std::move(layout), at);
      last_at_ = at;
    }
    if (!is_last) last_ = folded;
    last_depth_ = depth;
    for (const StepGroup& group : folded)
      for (size_t byte = 0; byte < kSum; ++byte)
        payload.push_back(static_cast<char>(group.sum >> (8 * byte)));
    put_u32(waiting_, checksum(salt_, at, payload));
    put_u32(waiting_, static_cast<uint32_t>(payload.size()));
    waiting_ += payload;
    size_ = at + kSealed + payload.size();
    if (waiting_.size() >= kWaiting) write_out();
    return at;
  }
  return 0;
}

void GroupFileWriter::write_out() {
  if (waiting_.empty() || failed_) return;
  std::string out, error;
  if (!file_.is_open()) {
    // A folder that the program has deleted or moved is not made again.
    failed_ = ::access(path_.substr(0, path_.rfind('/')).c_str(), F_OK) != 0 ||
              !file_.create(path_, error);
    out.append(kGroupMagic, sizeof kGroupMagic);
    put_u32(out, kGroupVersion);
    put_u32(out, salt_);
    put_u32(out, crc32c(0, out.data(), out.size()));
  }
  failed_ = failed_ || !file_.append(out += waiting_, error);
  waiting_.clear();
}

void GroupFileWriter::end() {
  write_out();
  std::string error;
  if (!failed_ && file_.is_open()) file_.finish({}, error);
}

// As much of it as there is.
FilePiece GroupFile::piece(uint64_t at, uint64_t count) const {
  std::string name = path_;
  struct stat file{};
  if (::stat(name.c_str(), &file) != 0) name += kIncomplete;
  if (::stat(name.c_str(), &file) != 0) return {path_, at, 0};
  const auto size = static_cast<uint64_t>(file.st_size);
  return {name, at, std::min(count, size - std::min(size, at))};
}

FilePiece GroupFile::piece_of(uint64_t at) const { return piece(at, kFirstRead); }

std::optional<FilePiece> GroupFile::layout_piece_of(uint64_t at) const {
  const auto own = payload(at);
  if (!own) return {};
  Cursor in(*own);
  const uint64_t distance = in.varint();
  if (!in.ok() || distance == 0 || distance > at) return {};
  return piece_of(at - distance);
}

bool GroupFile::read_at(uint64_t at, size_t count, std::string& into) const {
  const FilePiece wanted = piece(at, count);
  if (wanted.bytes == 0 || (bring_ != nullptr && !(*bring_)({wanted}).empty())) return false;
  const int fd = ::open(wanted.path.c_str(), O_RDONLY | O_CLOEXEC);
  into.resize(wanted.bytes);
  ssize_t n = -1;
  while (fd >= 0 && (n = ::pread(fd, into.data(), wanted.bytes, static_cast<off_t>(wanted.at))) < 0)
    if (errno != EINTR) break;
  if (fd >= 0) ::close(fd);
  into.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return n > 0;
}

std::optional<std::string> GroupFile::payload(uint64_t at) const {
  std::string bytes;
  if (!read_at(at, kFirstRead, bytes) || bytes.size() < kSealed) return {};
  const uint32_t sum = load_u32(bytes.data()), size = load_u32(bytes.data() + 4);
  if (size > kMostPayload) return {};
  if (size > bytes.size() - kSealed && !read_at(at, kSealed + size, bytes)) return {};
  if (bytes.size() < kSealed + size) return {};
  std::string payload = bytes.substr(kSealed, size);
  if (checksum(salt_, at, payload) != sum) return {};
  return payload;
}

std::optional<KeptGroups> GroupFile::at(uint64_t at) const {
  const auto own = payload(at);
  if (!own) return {};
  Cursor in(*own);
  const uint64_t distance = in.varint();
  if (!in.ok() || distance > at) return {};
  KeptGroups kept;
  if (distance == 0) {
    if (!take_layout(in, kept)) return {};
  } else {
    const auto first = payload(at - distance);
    if (!first) return {};
    Cursor layout(*first);
    if (layout.varint() != 0 || !take_layout(layout, kept)) return {};
  }
  if (in.left() != kSum * kept.groups.size()) return {};
  for (StepGroup& group : kept.groups)
    group.sum = static_cast<uint16_t>(in.byte() | in.byte() << 8);
  return kept;
}

}  // namespace opguard
