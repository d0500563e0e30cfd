#include "record/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/crc.h"
#include "record/format.h"

namespace opguard {

using namespace format;

namespace {

// A chunk is the unit of loss when a process is killed or a byte goes bad, and 64 KiB keeps the
// header's share under a thousandth.
constexpr size_t kChunkBytes = 64 * 1024;
constexpr uint32_t kChunkEvents = 4096;

bool make_dirs(const std::string& dir) {
  for (size_t at = 1; at <= dir.size(); ++at) {
    if (at != dir.size() && dir[at] != '/') continue;
    if (mkdir(dir.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST) return false;
  }
  return true;
}

void put_optional(std::string& out, uint32_t index) {
  put_varint(out, index == kNone ? 0 : uint64_t{index} + 1);
}

}  // namespace

LogWriter::~LogWriter() {
  if (fd_ < 0) return;
  flush();
  ::close(fd_);
}

bool LogWriter::open(const std::string& dir, int32_t rank, int32_t world, int64_t pid,
                     int64_t start_ns) {
  final_path_ = dir + "/rank" + std::to_string(rank) + "-" + std::to_string(start_ns) + "-" +
                std::to_string(pid) + ".log";
  path_ = final_path_ + ".incomplete";
  if (!make_dirs(dir)) {
    stop("cannot make the folder " + dir);
    return false;
  }
  // O_EXCL and O_NOFOLLOW: never write into what someone else put there. 0600: logs hold paths.
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    stop("cannot create " + path_);
    return false;
  }
  std::string out(kMagic, sizeof kMagic);
  put_u32(out, kVersion);
  put_u32(out, crc32c(0, out.data(), out.size()));
  std::string process;
  put_signed(process, rank);
  put_signed(process, world);
  put_signed(process, pid);
  put_signed(process, start_ns);
  put_chunk(out, Chunk::process, 1, process);
  return write_all(out);
}

void LogWriter::set(const std::map<std::string, std::string>& settings) {
  for (const auto& [key, value] : settings) {
    put_text(settings_, key);
    put_text(settings_, value);
    ++settings_count_;
  }
}

uint32_t LogWriter::string(std::string_view text) {
  auto [it, fresh] =
      string_index_.try_emplace(std::string(text), static_cast<uint32_t>(string_index_.size()));
  if (fresh) {
    put_text(strings_.bytes, text);
    ++strings_.count;
  }
  return it->second;
}

uint32_t LogWriter::meta(const Meta& meta) {
  auto [it, fresh] = meta_index_.try_emplace(meta, static_cast<uint32_t>(meta_index_.size()));
  if (fresh) {
    put_text(metas_.bytes, meta.dtype);
    put_text(metas_.bytes, meta.device);
    put_varint(metas_.bytes, meta.shape.size());
    for (int64_t n : meta.shape) put_signed(metas_.bytes, n);
    ++metas_.count;
  }
  return it->second;
}

void LogWriter::locate(const std::string& boundary, const Location& at) {
  std::string& out = locations_.bytes;
  for (const std::string* s :
       {&boundary, &at.package, &at.file, &at.path, &at.text, &at.callee, &at.function})
    put_text(out, *s);
  for (uint32_t n : {at.line, at.column, at.end_line, at.end_column}) put_varint(out, n);
  ++locations_.count;
}

uint32_t LogWriter::add(const Event& e, const std::vector<Slot>& slots) {
  if (stopped_) {
    lost_ += slots.empty() ? 1 : slots.size();  // an event without slots is still something lost
    return events_;
  }
  std::string& out = pending_.bytes;
  put_varint(out, e.boundary);
  out.push_back(
      static_cast<char>(static_cast<uint8_t>(e.kind) | (static_cast<uint8_t>(e.phase) << 4)));
  out.push_back(static_cast<char>(e.flags));
  put_signed(out, int64_t{e.step} - base_.step);
  put_signed(out, int64_t{e.micro_batch} - base_.micro_batch);
  put_varint(out, e.occurrence);
  put_varint(out, e.thread);
  put_varint(out, e.begin <= events_ ? events_ - e.begin : 0);
  put_varint(out, e.forward < events_ ? uint64_t{events_} - e.forward : 0);
  put_optional(out, e.node);
  put_optional(out, e.scalars);
  put_optional(out, e.results);
  if (e.flags & kCollective) {
    put_optional(out, e.group);
    put_varint(out, e.sequence);
  }
  put_signed(out, static_cast<int64_t>(e.start_ns - base_.time_ns));
  put_signed(out, static_cast<int64_t>(e.end_ns - e.start_ns));
  put_varint(out, slots.size());
  base_.step = e.step;
  base_.micro_batch = e.micro_batch;
  base_.time_ns = e.start_ns;
  for (const Slot& s : slots) {
    bool flat_follows = !(s.flags & kUnreadable) && s.flat != s.value.h;
    put_varint(out, static_cast<uint64_t>(s.kind) + (flat_follows ? kFlatFollows : 0) +
                        kFlagStep * s.flags);
    put_varint(out, s.index);
    put_varint(out, s.name);
    put_varint(out, s.meta);
    put_varint(out, s.version);
    put_signed(out, int64_t{s.storage} - base_.storage);
    put_signed(out, static_cast<int64_t>(s.address - base_.address));
    put_varint(out, s.size_bytes);
    base_.address = s.address;
    base_.storage = s.storage;
    if (!(s.flags & kUnreadable)) {
      put_u64(out, s.value.h);
      put_u64(out, s.value.m);
      if (flat_follows) put_u64(out, s.flat);
      if (s.flags & kMask) put_u64(out, s.pattern);
    }
  }
  ++pending_.count;
  pending_slots_ += slots.size();
  slots_ += slots.size();
  uint32_t index = events_++;
  if (out.size() >= kChunkBytes || pending_.count >= kChunkEvents) flush();
  return index;
}

std::string LogWriter::with_first(const Pending& pending) const {
  std::string payload;
  payload.reserve(pending.bytes.size() + 5);
  put_varint(payload, pending.first);
  payload += pending.bytes;
  return payload;
}

bool LogWriter::flush() {
  if (stopped_) return false;
  std::string out;
  // Before the events, all that they refer to.
  if (settings_count_ > 0) put_chunk(out, Chunk::settings, settings_count_, settings_);
  if (strings_.count > 0) put_chunk(out, Chunk::strings, strings_.count, with_first(strings_));
  if (metas_.count > 0) put_chunk(out, Chunk::metas, metas_.count, with_first(metas_));
  if (locations_.count > 0) put_chunk(out, Chunk::locations, locations_.count, locations_.bytes);
  if (pending_.count > 0) put_chunk(out, Chunk::events, pending_.count, with_first(pending_));
  if (lost_ != written_lost_) {
    std::string payload;
    put_varint(payload, lost_);
    put_chunk(out, Chunk::lost, 1, payload);
  }
  if (!write_all(out)) return false;
  settings_.clear();
  settings_count_ = 0;
  for (Pending* p : {&strings_, &metas_, &locations_, &pending_}) {
    p->first += p->count;
    p->count = 0;
    p->bytes.clear();
  }
  base_ = {};
  pending_slots_ = 0;
  written_events_ = events_;
  written_slots_ = slots_;
  written_lost_ = lost_;
  return true;
}

bool LogWriter::close() {
  if (fd_ < 0) return false;
  flush();  // a failure is counted in lost_ and told by the end chunk, if that can be written
  std::string payload, out;
  put_varint(payload, written_events_);
  put_varint(payload, written_slots_);
  put_varint(payload, lost_);
  put_chunk(out, Chunk::end, 1, payload);
  bool ok = write_file(out) && fsync(fd_) == 0;
  ::close(fd_);
  fd_ = -1;
  ok = ok && rename(path_.c_str(), final_path_.c_str()) == 0;
  if (ok) path_ = final_path_;
  stopped_ = true;
  return ok;
}

void LogWriter::abandon() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  stopped_ = true;
}

bool LogWriter::write_file(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      int saved = n == 0 ? ENOSPC : errno;
      // Half a chunk would hide what follows; take it back. If even that fails the reader stops
      // there.
      if (ftruncate(fd_, static_cast<off_t>(written_bytes_)) == 0)
        lseek(fd_, static_cast<off_t>(written_bytes_), SEEK_SET);
      errno = saved;
      return false;
    }
  }
  written_bytes_ += bytes.size();
  return true;
}

bool LogWriter::write_all(const std::string& bytes) {
  if (stopped_) return false;
  if (write_file(bytes)) return true;
  stop("cannot write " + path_);
  return false;
}

void LogWriter::stop(const std::string& what) {
  if (error_.empty()) error_ = what + ": " + strerror(errno);
  stopped_ = true;
  lost_ += pending_slots_;
  slots_ -= pending_slots_;
  events_ -= pending_.count;
  pending_slots_ = 0;
  pending_.count = 0;
  pending_.bytes.clear();
}

}  // namespace opguard
