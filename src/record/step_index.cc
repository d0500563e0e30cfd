// Entries have 64 bytes, the last 4 of them a checksum that begins with the log's salt and the
// entry's number. So an entry of another log or another place is none.
//
//   a step      its number, three chains, the byte of its chunk, four counts
//   stretches   up to four, behind the last step
//   the end     two chains, seven counts
//
// A step that is over waits until the chunk is in the log that holds its first event: before that
// nobody knows where it lies.
//
//   step 7 begins with event 950    chunks of events 0 to 799 are in the log: step 7 waits
//                                   events 800 to 1199 come at byte 52,000: it is at 52,000
#include "record/step_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "record/crc.h"
#include "record/format.h"
#include "record/log_name.h"

namespace opguard {

using namespace format;

namespace {

constexpr char kIndexMagic[8] = {'o', 'p', 'g', 's', 't', 'e', 'p', '\x1a'};
constexpr uint32_t kIndexVersion = 2;
constexpr size_t kHeader = 20, kEntry = 64;
constexpr uint64_t kBlockEntries = 64;  // 4 KiB
constexpr char kEntryKind = 1, kEndKind = 2, kStretchesKind = 3;
constexpr size_t kEntryStretches = 4;
constexpr size_t kShort = 6;  // bytes of a count: of events of years
constexpr uint64_t kMostShort = (uint64_t{1} << 48) - 1;

// Closed by its checksum, which begins with the salt and the entry's number.
std::string sealed(std::string entry, uint32_t salt, uint64_t number) {
  entry.resize(kEntry - 4);
  std::string before;
  put_u64(before, number);
  put_u32(entry, crc32c(crc32c(salt, before.data(), before.size()), entry.data(), entry.size()));
  return entry;
}

bool is_sealed(std::string_view entry, uint32_t salt, uint64_t number) {
  return sealed(std::string(entry.substr(0, kEntry - 4)), salt, number) == entry;
}

void put_short(std::string& to, uint64_t v) {
  put_u64(to, std::min(v, kMostShort));
  to.resize(to.size() - (8 - kShort));
}

// Numbers of an entry, one behind the other.
class EntryReader {
 public:
  explicit EntryReader(std::string_view entry) : at_(entry.data() + 2) {}
  uint64_t u64() { return load_u64(std::exchange(at_, at_ + 8)); }
  uint32_t u32() { return load_u32(std::exchange(at_, at_ + 4)); }
  uint64_t u48() { return load_u64(std::exchange(at_, at_ + kShort)) & kMostShort; }

 private:
  const char* at_;
};

std::string code(const StepEntry& entry) {
  std::string out = {kEntryKind, 0};
  put_u32(out, entry.step);
  put_u32(out, static_cast<uint32_t>(std::min<uint64_t>(entry.unmoved_before, kNone)));
  for (const uint64_t v : {entry.chain, entry.moved_chain, entry.exact_before, entry.chunk_at})
    put_u64(out, v);
  for (const uint64_t v : {entry.events_before, entry.records_before, entry.groups_at})
    put_short(out, v);
  return out;
}

StepEntry decode_entry(std::string_view bytes) {
  EntryReader in(bytes);
  StepEntry entry;
  entry.step = in.u32();
  entry.unmoved_before = in.u32();
  for (uint64_t* v : {&entry.chain, &entry.moved_chain, &entry.exact_before, &entry.chunk_at})
    *v = in.u64();
  for (uint64_t* v : {&entry.events_before, &entry.records_before, &entry.groups_at}) *v = in.u48();
  return entry;
}

std::string code(const StepIndexEnd& end) {
  std::string out = {kEndKind, 0};
  for (const uint64_t v : {end.chunk_chain, end.exact_chain}) put_u64(out, v);
  for (const uint64_t v : {end.events, end.records, end.lost, end.chunks, end.stretch_entries,
                           end.removed, end.unmoved})
    put_short(out, v);
  return out;
}

StepIndexEnd decode_end(std::string_view bytes) {
  EntryReader in(bytes);
  StepIndexEnd end;
  for (uint64_t* v : {&end.chunk_chain, &end.exact_chain}) *v = in.u64();
  for (uint64_t* v : {&end.events, &end.records, &end.lost, &end.chunks, &end.stretch_entries,
                      &end.removed, &end.unmoved})
    *v = in.u48();
  return end;
}

// The chain of generators' states, from that of the steps before.
uint64_t chain_generators(uint64_t before, const DigestedStep& step, uint64_t digest) {
  for (const uint64_t word : {uint64_t{step.step}, step.generators.events, digest})
    before = mix((before ^ word) + 0x9e3779b97f4a7c15u);
  return before;
}

}  // namespace

uint64_t chain_steps(uint64_t before, const DigestedStep& step) {
  for (const uint64_t word :
       {uint64_t{step.step}, step.events - step.generators.events, step.digest.a, step.digest.b})
    before = mix((std::rotl(before, 23) ^ word) + 0xc2b2ae3d27d4eb4fu);
  return before;
}

std::string step_index_path(std::string_view log_path) {
  return std::string(log_stem(log_path)) + ".steps";
}

void StepIndexWriter::begin(const std::string& log_path, uint32_t salt, uint64_t most_group_bytes) {
  path_ = step_index_path(log_path);
  salt_ = salt;
  groups_.begin(group_file_path(log_path), salt, most_group_bytes);
}

void StepIndexWriter::abandon() {
  file_.abandon();
  groups_.abandon();
}

// Of chunks of events the first one's number is kept. All else but sketches lies in stretches:
// neighbours become one.
void StepIndexWriter::note_chunks(std::string_view chunks, uint64_t at) {
  if (!error_.empty() || path_.empty()) return;
  while (!chunks.empty()) {
    const auto type = static_cast<Chunk>(chunks[3]);
    const uint32_t length = load_u32(chunks.data() + 4), count = load_u32(chunks.data() + 8);
    const uint64_t size = kChunkHeaderSize + uint64_t{length};
    if (type == Chunk::events) {
      Cursor in(chunks.substr(kChunkHeaderSize, length));
      const uint64_t first = in.varint();
      chunks_.push_back({first, at});
      events_in_log_ = first + count;
    } else if (type != Chunk::sketches) {
      if (!stretches_.empty() && stretches_.back().at + stretches_.back().bytes == at)
        stretches_.back().bytes += size;
      else
        stretches_.push_back({at, size});
    }
    chunks.remove_prefix(size);
    at += size;
  }
  put_placed();
}

// An entry has the chains up to its own step, and the counts up to the one before.
void StepIndexWriter::add(const std::vector<DigestedStep>& steps) {
  if (!error_.empty() || path_.empty()) return;
  for (const DigestedStep& step : steps) {
    next_.step = step.step;
    next_.groups_at = groups_.add(step.groups, step.records);
    next_.chain = chain_steps(next_.chain, step);
    next_.moved_chain = chain_generators(next_.moved_chain, step, step.generators.moved);
    waiting_.push_back(next_);
    next_.exact_before = chain_generators(next_.exact_before, step, step.generators.exact);
    next_.events_before += step.events;
    next_.records_before += step.records;
    next_.unmoved_before += step.generators.unmoved;
  }
  put_placed();
}

// The entries of steps whose first event is in the log.
void StepIndexWriter::put_placed() {
  std::string out;
  while (!waiting_.empty() && waiting_.front().events_before < events_in_log_) {
    StepEntry& entry = waiting_.front();
    while (chunks_.size() > 1 && chunks_[1].first <= entry.events_before) chunks_.pop_front();
    entry.chunk_at = chunks_.front().at;
    out += sealed(code(entry), salt_, entries_++);
    waiting_.pop_front();
  }
  // Of a long step the last chunk alone may hold what comes next.
  if (waiting_.empty())
    while (chunks_.size() > 1 && chunks_[1].first <= next_.events_before) chunks_.pop_front();
  if (!out.empty()) put(std::move(out));
}

void StepIndexWriter::put_stretches() {
  std::string out;
  for (size_t i = 0; i < stretches_.size(); i += kEntryStretches) {
    const size_t count = std::min(kEntryStretches, stretches_.size() - i);
    std::string entry = {kStretchesKind, static_cast<char>(count)};
    for (size_t k = i; k < i + count; ++k) {
      put_u64(entry, stretches_[k].at);
      put_short(entry, stretches_[k].bytes);
    }
    out += sealed(std::move(entry), salt_, entries_++);
    ++stretch_entries_;
  }
  if (!out.empty()) put(std::move(out));
}

void StepIndexWriter::put(std::string entries) {
  std::string out;
  if (!file_.is_open()) {
    // A folder that the program has deleted or moved is not made again.
    if (::access(path_.substr(0, path_.rfind('/')).c_str(), F_OK) != 0) {
      error_ = path_ + ": its folder is gone";
      return;
    }
    if (!file_.create(path_, error_)) return;
    out.append(kIndexMagic, sizeof kIndexMagic);
    put_u32(out, kIndexVersion);
    put_u32(out, salt_);
    put_u32(out, crc32c(0, out.data(), out.size()));
  }
  file_.append(out += entries, error_);
}

void StepIndexWriter::end(uint64_t lost, uint64_t removed, uint64_t chunks, uint64_t chunk_chain) {
  if (!error_.empty() || !file_.is_open() || !waiting_.empty()) return;
  put_stretches();
  groups_.end();
  const StepIndexEnd end{next_.events_before, next_.records_before, lost,    chunks,
                         chunk_chain,         stretch_entries_,     removed, next_.exact_before,
                         next_.unmoved_before};
  file_.finish(sealed(code(end), salt_, entries_), error_);
}

// Opened for each block, and closed again.
bool StepIndex::read_at(uint64_t at, size_t count, std::string& into) {
  if (bring_ != nullptr && !(*bring_)({{name_, at, count}}).empty()) return false;
  int fd = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && name_.ends_with(kIncomplete)) {  // its log was closed meanwhile
    name_.resize(name_.size() - kIncomplete.size());
    fd = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  }
  into.resize(count);
  size_t done = 0;
  while (fd >= 0 && done < count) {
    const ssize_t n = ::pread(fd, into.data() + done, count - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (fd >= 0) ::close(fd);
  ++reads_;
  bytes_read_ += done;
  into.resize(done);
  return done == count;
}

std::vector<FilePiece> StepIndex::opening(const std::string& path) {
  for (const std::string& name : {path, path + std::string(kIncomplete)}) {
    struct stat file{};
    if (::stat(name.c_str(), &file) != 0) continue;
    const auto size = static_cast<uint64_t>(file.st_size);
    const uint64_t last = size < kHeader + kEntry ? 0 : (size - kHeader) / kEntry - 1;
    return {{name, 0, kHeader}, {name, kHeader + last * kEntry, kEntry}};
  }
  return {};
}

// Its beginning and its last entry are read. Without an end at that place the log is being written,
// or its process was killed: the entries are steps all the same.
bool StepIndex::open(const std::string& path, const Bring* bring) {
  bring_ = bring;
  auto failed = [&](const std::string& what) {
    why_ = path + ": " + what;
    return false;
  };
  struct stat file{};
  name_ = path;
  if (::stat(name_.c_str(), &file) != 0) name_ += kIncomplete;
  if (name_ != path && ::stat(name_.c_str(), &file) != 0) return failed(std::strerror(errno));
  const auto size = static_cast<uint64_t>(file.st_size);
  if (size < kHeader || !read_at(0, kHeader, block_)) return failed("cut short");
  if (std::memcmp(block_.data(), kIndexMagic, sizeof kIndexMagic) != 0)
    return failed("not an index of steps");
  if (load_u32(block_.data() + 16) != crc32c(0, block_.data(), 16))
    return failed("its beginning is damaged");
  if (const uint32_t version = load_u32(block_.data() + 8); version != kIndexVersion)
    return failed("version " + std::to_string(version) + ", this opguard reads " +
                  std::to_string(kIndexVersion));
  salt_ = load_u32(block_.data() + 12);
  steps_ = (size - kHeader) / kEntry;
  block_at_ = ~uint64_t{0};
  if (steps_ == 0) return true;
  std::string last;
  if (!read_at(kHeader + (steps_ - 1) * kEntry, kEntry, last)) return failed("cannot be read");
  if (!is_sealed(last, salt_, steps_ - 1)) return failed("its end is damaged");
  if (last[0] != kEndKind) return true;
  end_ = decode_end(last);
  --steps_;
  if (end_->stretch_entries > steps_) return failed("its end is damaged");
  steps_ -= end_->stretch_entries;
  return true;
}

std::string_view StepIndex::entry(uint64_t number) {
  const uint64_t first = number - number % kBlockEntries;
  if (number >= entries()) return {};
  if (first != block_at_) {
    const FilePiece block = block_of(number);
    block_at_ = read_at(block.at, block.bytes, block_) ? first : ~uint64_t{0};
    if (block_at_ != first) return {};
  }
  const auto entry = std::string_view(block_).substr((number - first) * kEntry, kEntry);
  return is_sealed(entry, salt_, number) ? entry : std::string_view();
}

FilePiece StepIndex::block_of(uint64_t number) const {
  const uint64_t first = number - number % kBlockEntries;
  const uint64_t count = std::min(kBlockEntries, entries() - std::min(first, entries()));
  return {name_, kHeader + first * kEntry, count * kEntry};
}

uint64_t StepIndex::near(uint64_t event) const {
  if (!end_ || end_->events == 0 || steps_ == 0) return 0;
  const double share = static_cast<double>(event) / static_cast<double>(end_->events);
  return std::min(steps_ - 1, static_cast<uint64_t>(share * static_cast<double>(steps_)));
}

std::optional<StepEntry> StepIndex::at(uint64_t step) {
  if (step >= steps_) return {};
  const std::string_view found = entry(step);
  if (found.empty() || found[0] != kEntryKind) return {};
  return decode_entry(found);
}

std::vector<FilePiece> StepIndex::stretch_blocks() const {
  std::vector<FilePiece> blocks;
  for (uint64_t entry = steps_; entry < entries(); entry += kBlockEntries - entry % kBlockEntries)
    blocks.push_back(block_of(entry));
  return blocks;
}

std::optional<std::vector<LogExtent>> StepIndex::stretches() {
  if (!end_) return {};
  std::vector<LogExtent> all;
  for (uint64_t i = 0; i < end_->stretch_entries; ++i) {
    const std::string_view found = entry(steps_ + i);
    if (found.empty() || found[0] != kStretchesKind) return {};
    const auto count = static_cast<size_t>(found[1]);
    if (count > kEntryStretches) return {};
    EntryReader in(found);
    for (size_t k = 0; k < count; ++k) {
      const uint64_t at = in.u64();
      all.push_back({at, in.u48()});
    }
  }
  return all;
}

}  // namespace opguard
