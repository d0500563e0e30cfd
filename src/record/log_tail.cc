// Chunk by chunk from where the last poll ended, as far as they are whole.
//
//   fewer bytes than the header says    nothing yet: the writer is at it
//   a checksum is wrong                 doubted; at the next poll damaged, if it still is
//   of events, of sketches              stepped over by the length in its header
#include "record/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "record/chunk_chain.h"
#include "record/format.h"
#include "record/log_name.h"
#include "record/text_chunks.h"

namespace opguard {

using namespace format;

namespace {

std::string final_name(std::string_view path) {
  return std::string(without_ending(path, kIncomplete));
}

}  // namespace

struct LogTail::Parts {
  explicit Parts(ProcessLog& log) : texts(log) {}
  TextChunks texts;
  ChunkChain chain;
};

LogTail::LogTail(std::string path) : parts_(std::make_unique<Parts>(log_)) {
  log_.path = final_name(std::move(path));
}

bool LogTail::started() const { return parts_->texts.started(); }

LogTail::~LogTail() {
  if (fd_ >= 0) ::close(fd_);
}

// A log is renamed as it is closed; once it is open that is no matter.
bool LogTail::open() {
  for (int i = 0; fd_ < 0 && i < 2; ++i)
    for (const std::string& name : {log_.path + std::string(kIncomplete), log_.path})
      if (fd_ < 0) fd_ = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  return fd_ >= 0;
}

void LogTail::fail(const std::string& what) {
  log_.damage = "byte " + std::to_string(at_) + ": " + what;
  state_ = State::damaged;
}

bool LogTail::read_at(uint64_t at, size_t count) {
  bytes_.resize(count);
  for (size_t done = 0; done < count;) {
    const ssize_t n = pread(fd_, bytes_.data() + done, count - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool LogTail::read_header() {
  if (size_ < kHeaderSize || !read_at(0, kHeaderSize)) return false;
  ChunkFinder finder(bytes_);
  bool cut = false;
  if (std::string why = finder.check_header(cut); !why.empty()) {
    fail(why);
    return false;
  }
  version_ = finder.version();
  salt_ = finder.salt();
  at_ = kHeaderSize;
  return true;
}

// The chunk at at_; its bytes are bytes_. Of events and sketches only the header is read.
LogTail::Found LogTail::find_chunk(RawChunk& chunk, uint64_t& bytes, std::string& wrong) {
  if (size_ - at_ < kChunkHeaderSize || !read_at(at_, kChunkHeaderSize)) return Found::nothing_yet;
  uint32_t length = 0;
  wrong = check_chunk_header(bytes_, salt_, chunk, length);
  if (!wrong.empty()) return Found::wrong;
  bytes = kChunkHeaderSize + uint64_t{length};
  if (bytes > size_ - at_) return Found::nothing_yet;
  if (chunk.type == Chunk::events || chunk.type == Chunk::sketches) return Found::chunk;
  if (!read_at(at_, bytes)) return Found::nothing_yet;
  wrong = check_chunk(bytes_, salt_, chunk);
  return wrong.empty() ? Found::chunk : Found::wrong;
}

std::string LogTail::take_rows(std::string_view payload, uint32_t count, const Seen& seen) {
  Cursor in(payload);
  if (in.varint() != rows_ || !in.ok()) return "observations before it are missing";
  payload.remove_prefix(payload.size() - in.left());
  // As a whole or not at all.
  const std::vector<ObservationSchema>& schemas = log_.observations.schemas();
  Observation row;
  for (const bool hand_on : {false, true}) {
    decoder_.begin(payload, count, log_.strings.size());
    while (decoder_.next(row, schemas))
      if (hand_on) seen(row);
    if (std::string wrong = decoder_.fault(); !wrong.empty()) return wrong;
  }
  rows_ += count;
  return "";
}

// Events and slots were not counted here: the chain of chunks has theirs.
std::string LogTail::take_end(std::string_view payload) {
  Cursor in(payload);
  in.varint();
  in.varint();
  log_.lost = in.varint();
  const uint64_t rows = version_ >= kObservationsVersion ? in.varint() : 0;
  if (rows != rows_) return "it counts other observations than the log holds";
  if (version_ >= kBindingVersion &&
      (in.varint() != parts_->chain.chunks() || in.u64() != parts_->chain.value()))
    return "it binds other chunks than those before it";
  return "";
}

std::string LogTail::take(const RawChunk& chunk, const Seen& seen) {
  if (!parts_->texts.started() && chunk.type != Chunk::process)
    return "the chunk of process before it is missing";
  if (TextChunks::has(chunk.type)) return parts_->texts.take(chunk);
  switch (chunk.type) {
    case Chunk::events:
    case Chunk::sketches:
    case Chunk::segments:
    case Chunk::removed:
      return "";
    case Chunk::observations:
      return take_rows(chunk.payload, chunk.count, seen);
    case Chunk::lost: {
      Cursor in(chunk.payload);
      for (uint32_t i = 0; i < chunk.count && in.ok(); ++i) {
        in.varint();
        log_.lost += in.varint();
      }
      return "";
    }
    case Chunk::end:
      return take_end(chunk.payload);
    default:
      return "its type is unknown";
  }
}

// As far as the file went when it was called.
LogTail::State LogTail::read_more(const Seen& seen) {
  if (state_ != State::growing || !open()) return state_;
  struct stat file{};
  if (fstat(fd_, &file) != 0) return state_;
  size_ = static_cast<uint64_t>(file.st_size);
  if (size_ < at_) {
    fail("the log was cut");
    return state_;
  }
  if (at_ == 0 && !read_header()) return state_;
  while (true) {
    RawChunk chunk;
    uint64_t bytes = 0;
    std::string wrong;
    const Found found = find_chunk(chunk, bytes, wrong);
    if (found == Found::nothing_yet) return state_;
    if (found == Found::wrong) {
      // A writer that could not write all of a chunk takes it back, and its end comes there.
      if (std::exchange(doubted_, at_) == at_) fail(wrong);
      return state_;
    }
    wrong = take(chunk, seen);
    if (!wrong.empty()) {
      fail(std::string("the chunk of ") + chunk_name(chunk.type) + " is refused: " + wrong);
      return state_;
    }
    parts_->chain.add(bytes_.data());
    at_ += bytes;
    if (chunk.type != Chunk::end) continue;
    log_.closed = true;
    state_ = State::closed;
    return state_;
  }
}

void FolderTail::find() {
  namespace fs = std::filesystem;
  std::error_code code;
  std::set<std::string> fresh;  // by name: rank, then start
  for (fs::directory_iterator it(folder_, code), end; !code && it != end; it.increment(code)) {
    const std::string path = final_name(it->path().string());
    if (path.ends_with(".log") && known_.insert(path).second) fresh.insert(path);
  }
  for (const std::string& path : fresh) logs_.push_back(std::make_unique<LogTail>(path));
}

// Log by log; within one, rows come in its order.
uint64_t FolderTail::poll(const Seen& seen) {
  find();
  uint64_t rows = 0;
  for (size_t i = 0; i < logs_.size(); ++i) {
    const uint64_t before = logs_[i]->observations();
    logs_[i]->read_more([&](const Observation& row) { seen(i, row); });
    rows += logs_[i]->observations() - before;
  }
  return rows;
}

}  // namespace opguard
