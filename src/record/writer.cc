// The encoder and the file are chunk_maker.h's and log_file.h's; the calls are in writer_calls.cc.
// Here are the queue between them and the thread, and the counts.
//
//   a call          fills batch_ (filling_)
//   it is full      batch_ goes to queue_ (mutex_), the thread is woken
//   the thread      takes queue_, waits for devices, encodes, writes: without a lock
//   each second     takes what is in batch_ as well, and ends the chunk
//   each 30 s       syncs
//
// Who waits: flush() for the file, settle() for devices and digests alone, pause() for the thread
// to leave before a fork. Where no thread can be had, the call that fills a batch does the same
// work.
#include "record/writer.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "record/format.h"

namespace opguard {

using namespace format;

namespace {

constexpr size_t kSpareBatches = 4;
constexpr size_t kLittleBytes = 64 * 1024;  // some 500 records in memory
constexpr auto kPausePatience = std::chrono::seconds(1);
constexpr uint64_t kFetchWaitNs = 10'000'000;  // between two looks at whether pause() wants it

uint64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000 + static_cast<uint64_t>(t.tv_nsec) / 1'000'000;
}

}  // namespace

LogWriter::~LogWriter() {
  flush();
  end_thread();
}

void LogWriter::end_thread() {
  std::unique_lock lock(mutex_);
  if (!running_) return;
  leave_ = true;
  wake_.notify_one();
  done_.wait(lock, [&] { return left_; });
  pthread_join(thread_, nullptr);
  running_ = false;
}

bool LogWriter::open(const std::string& dir, int32_t rank, int32_t world, int64_t pid,
                     int64_t start_ns) {
  std::string error;
  start_ = chunks_.start(rank, world, pid, start_ns, limits_.segments.cut());
  synced_ms_ = now_ms();
  if (!files_.create(dir + "/rank" + std::to_string(rank) + "-" + std::to_string(start_ns) + "-" +
                         std::to_string(pid) + ".log",
                     chunks_.salt(), synced_ms_, error)) {
    fail(error);
    return false;
  }
  index_.begin(files_.path(), chunks_.salt(), limits_.segments.most_group_bytes());
  // At once: a program that ends here leaves a log that says whose it was.
  append(start_);
  return !failed_;
}

const std::string& LogWriter::error() const {
  static const std::string kNoError;
  return failed_.load(std::memory_order_acquire) ? error_ : kNoError;
}

uint64_t LogWriter::lost() const {
  // After a failure all that is not in the file will never be.
  return stopped_.load(std::memory_order_acquire) ? made() - written()
                                                  : dropped_.load(std::memory_order_relaxed);
}

// Without a thread the call that fills a batch writes it.
void LogWriter::pass_on(bool full) {
  std::unique_lock lock(mutex_);
  if (limits_.thread) ensure_thread();
  if (!full) return;
  hand_over();
  if (running_)
    wake_.notify_one();
  else
    drain(lock, false);
}

// A batch that was emptied takes the place of the one that goes.
void LogWriter::hand_over() {
  Batch batch;
  if (!spare_.empty()) {
    batch = std::move(spare_.back());
    spare_.pop_back();
  }
  {
    const Filling filling(filling_);
    std::swap(batch_, batch);
    queued_bytes_.fetch_add(batch.size_bytes(), std::memory_order_relaxed);
  }
  (batch.empty() ? spare_ : queue_).push_back(std::move(batch));
}

void LogWriter::ensure_thread() {
  if (running_ && !left_) return;
  if (running_) pthread_join(thread_, nullptr);  // it left after pause() had given up on it
  leave_ = left_ = false;
  pid_ = getpid();
  // The program's signals are the program's threads'.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  // No thread to be had: every full batch is written by the call that filled it.
  running_ = pthread_create(
                 &thread_, &attributes,
                 [](void* self) -> void* {
                   static_cast<LogWriter*>(self)->work();
                   return nullptr;
                 },
                 this) == 0;
  if (running_) pthread_setname_np(thread_, "opguard-log");
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void LogWriter::work() {
  std::unique_lock lock(mutex_);
  auto due = std::chrono::steady_clock::now() + std::chrono::milliseconds(limits_.flush_ms);
  for (bool leaving = false; !leaving;) {
    wake_.wait_until(lock, due, [&] {
      return leave_ || !queue_.empty() || flushes_wanted_ != flushes_done_ ||
             settles_wanted_ != settles_done_;
    });
    const auto now = std::chrono::steady_clock::now();
    leaving = leave_;
    const bool all = leaving || now >= due || flushes_wanted_ != flushes_done_;
    if (all) due = now + std::chrono::milliseconds(limits_.flush_ms);
    drain(lock, all);
  }
  left_ = true;
  done_.notify_all();
}

// Encodes what is handed over, and writes it if it `writes`; with `all` also what is not handed
// over, and chunks that are not full.
void LogWriter::drain(std::unique_lock<std::mutex>& lock, bool all, bool writes) {
  done_.wait(lock, [&] { return !draining_; });
  draining_ = true;
  const uint64_t wanted = flushes_wanted_;
  const uint64_t settled = settles_wanted_, settled_before = settles_done_;
  if (all || settled != settled_before) hand_over();
  std::vector<Batch> batches = std::exchange(queue_, {});
  // The program's own call does not wait for a device, unless it asked for all.
  const bool patient = all || running_ || settled != settled_before;
  bool whole = true;
  for (size_t i = 0; i < batches.size(); ++i) {
    Batch& batch = batches[i];
    const size_t size = batch.size_bytes();
    lock.unlock();
    whole = stopped_ || await(batch, patient);
    if (!whole) {
      lock.lock();
      queue_.insert(queue_.begin(), std::make_move_iterator(batches.begin() + i),
                    std::make_move_iterator(batches.end()));
      break;
    }
    if (!stopped_) encode(batch);
    batch.clear();
    lock.lock();
    queued_bytes_.fetch_sub(size, std::memory_order_relaxed);
    if (spare_.size() < kSpareBatches) spare_.push_back(std::move(batch));
  }
  // Whoever waits for that waits for no disk.
  settles_done_ = settled;
  if (settled != settled_before) done_.notify_all();
  lock.unlock();
  if (!stopped_ && writes) {
    if (all) chunks_.finish_chunk();
    write_out();
    if (no_room_) look_for_room();
    if (all && now_ms() - synced_ms_ >= limits_.sync_ms) {
      files_.sync();  // a failure shows at the next one or at the end
      synced_ms_ = now_ms();
    }
  }
  lock.lock();
  if (all && whole) flushes_done_ = wanted;
  draining_ = false;
  done_.notify_all();
}

// False: some value of it is not computed, and nobody shall wait any longer.
bool LogWriter::await(const Batch& batch, bool patient) {
  if (late_ == nullptr) return true;
  if (!patient) return late_->fetch(batch.slots, 0);
  while (!late_->fetch(batch.slots, kFetchWaitNs))
    if (hurry_.load(std::memory_order_relaxed)) return false;
  return true;
}

// What came late of one event; the counts follow it.
void LogWriter::complete(Event& event, Slot* slots) {
  const size_t added = event.slot_count;
  const CompletedSlots done = complete_slots(*late_, event, slots);
  if (done.left != added)
    made_late_.fetch_sub(records_of(added) - records_of(done.left), std::memory_order_relaxed);
  if (done.lost == 0) return;
  made_late_.fetch_add(done.lost, std::memory_order_relaxed);
  dropped_.fetch_add(done.lost, std::memory_order_relaxed);
  chunks_.lose(done.lost);
}

void LogWriter::encode(Batch& batch) {
  chunks_.add_texts(batch);
  digests_.add_texts(batch);
  Slot* slots = batch.slots.data();
  for (Event& event : batch.events) {
    const size_t added = event.slot_count;
    if (late_ != nullptr) complete(event, slots);
    if (event.step != step_) begin_step(event.step);
    chunks_.add(event, slots);
    digests_.add(event, slots);
    slots += added;
    // The queue's bound is for what is not written; what is encoded must not add up behind it.
    if (chunks_.bytes().size() >= limits_.batch_bytes) write_out();
    if (stopped_) return;
  }
  take_digests();
  std::string_view values = batch.observed;
  for (const ObservedHead& head : batch.observations) {
    chunks_.add(head, values.substr(0, head.bytes));
    values.remove_prefix(head.bytes);
    if (chunks_.bytes().size() >= limits_.batch_bytes) write_out();
    if (stopped_) return;
  }
}

bool LogWriter::append(std::string_view bytes) {
  std::string error;
  const bool done = files_.append(bytes, error);
  if (!done) fail(error);
  if (done)
    for (const LogFiles::Placed& placed : files_.placed())
      index_.note_chunks(placed.chunks, placed.at);
  return done;
}

// A segment that has grown enough ends here.
void LogWriter::begin_step(uint32_t step) {
  const uint64_t now = limits_.segments.cut() ? now_ms() : 0;
  if (limits_.segments.cut() && files_.is_full(chunks_.bytes().size(), now)) {
    chunks_.finish_chunk();
    write_out();
    std::string told, error;
    if (stopped_) return;
    if (!files_.end_segment(held_, segment_step_, step_, now, told, error) ||
        !files_.append(told, error) || !files_.remove_old(now, error))
      return fail(error);
    whole_records_ = held_.records;
    segment_step_ = kNone;
    look_for_room();
  }
  step_ = step;
  if (segment_step_ == kNone) segment_step_ = step;
}

void LogWriter::look_for_room() { no_room_.store(!files_.has_room(), std::memory_order_relaxed); }

void LogWriter::write_out() {
  if (chunks_.bytes().empty() || stopped_) return;
  if (!append(chunks_.bytes())) return;
  chunks_.drop_bytes();
  held_ = chunks_.chunked();
  index_steps();
  written_.store(held_.records, std::memory_order_release);
  written_events_.store(held_.events, std::memory_order_release);
}

void LogWriter::take_digests() {
  std::vector<DigestedStep> over = digests_.take_over();
  if (against_ != nullptr) against_->add(over);
  over_.insert(over_.end(), std::make_move_iterator(over.begin()),
               std::make_move_iterator(over.end()));
}

// Of steps that are over. Their events may still wait for a chunk to be full. What an index says is
// believed only once its end binds the log's.
void LogWriter::index_steps() {
  const std::vector<DigestedStep> over = std::exchange(over_, {});
  if (!over.empty()) index_.add(over);
}

void LogWriter::fail(const std::string& what) {
  error_ = what;
  // And what it held.
  if (files_.is_gone() || files_.is_segment_gone())
    written_.store(files_.is_gone() ? 0 : whole_records_, std::memory_order_release);
  failed_.store(true, std::memory_order_release);
  stopped_.store(true, std::memory_order_release);
}

// Whoever finds no thread, or one that left, does the work itself.
bool LogWriter::flush() {
  std::unique_lock lock(mutex_);
  if (stopped_ || !is_open()) return false;
  const uint64_t mine = ++flushes_wanted_;
  wake_.notify_one();
  done_.wait(lock, [&] { return !running_ || left_ || flushes_done_ >= mine; });
  if (flushes_done_ < mine) drain(lock, true);
  return !failed_;
}

// Nobody is at it, no file is written or ended for it, and it takes less than a tenth of a
// millisecond.
bool LogWriter::is_little_left() {
  if (draining_ || !queue_.empty() || limits_.segments.cut()) return false;
  const Filling filling(filling_);
  return batch_.size_bytes() < kLittleBytes &&
         chunks_.bytes().size() + kLittleBytes < limits_.batch_bytes;
}

void LogWriter::settle() {
  std::unique_lock lock(mutex_);
  if (stopped_ || !is_open()) return;
  const uint64_t mine = ++settles_wanted_;
  if (is_little_left()) return drain(lock, false, /*writes=*/false);
  wake_.notify_one();
  done_.wait(lock, [&] { return !running_ || left_ || settles_done_ >= mine; });
  if (settles_done_ < mine) drain(lock, false);
}

void LogWriter::flush_soon() {
  std::unique_lock lock(mutex_);
  if (stopped_ || !is_open()) return;
  if (limits_.thread) ensure_thread();
  ++flushes_wanted_;
  if (running_)
    wake_.notify_one();
  else
    drain(lock, true);
}

void LogWriter::pause() {
  std::unique_lock lock(mutex_);
  if (!running_ || pid_ != getpid()) return;
  leave_ = true;
  hurry_ = true;
  wake_.notify_one();
  const bool left = done_.wait_for(lock, kPausePatience, [&] { return left_; });
  hurry_ = false;
  if (!left) return;
  pthread_join(thread_, nullptr);
  running_ = false;
}

bool LogWriter::close() {
  if (!is_open()) return false;
  flush();
  end_thread();
  std::string out, error;
  // Not even that could be written; perhaps it can now.
  const size_t header = files_.is_empty() ? kHeaderSize : 0;
  if (header > 0) out = start_;
  bool ok = files_.end_segment(held_, segment_step_, step_, 0, out, error);
  ChunkChain chain = files_.chain();
  chain.add_all(std::string_view(out).substr(header));
  out += chunks_.end(held_, lost(), chain.chunks(), chain.value());
  ok = files_.finish(out, error) && ok;
  if (!ok && !failed_) fail(error);
  digests_.finish();
  take_digests();
  index_steps();
  if (ok) index_.end(lost(), files_.removed_events(), chain.chunks(), chain.value());
  stopped_ = true;
  return ok;
}

void LogWriter::abandon() {
  stopped_ = true;
  // In a child no lock can be taken: a thread that is not here may hold it.
  if (pid_ == getpid()) pause();
  files_.abandon();
  index_.abandon();
}

}  // namespace opguard
