// tests/torture/log_torture.cc: a log under kills, cuts, flipped bits and disks that fail.
//
//   log_torture write DIR EVENTS [THREAD [SEGMENT_BYTES]]   writes a known log
//   log_torture check FILE                  compares a log with what `write` would have written
//   log_torture kills COUNT SEED DIR        kill -9 at random moments
//   log_torture cuts BYTES STEP             a log of so many bytes, cut at every STEP-th of them
//   log_torture bits BYTES STEP             every STEP-th bit of it flipped
//   log_torture hits COUNT SEED             random damage of several bytes
//   log_torture losses RECORDS SEED DIR     queues of many sizes that overflow
//   log_torture read RECORDS DIR            how fast a log is read
//
// One line of JSON each; exit status 1 if anything is wrong. bench/torture.py runs them all.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "record/format.h"
#include "record/sample.h"

namespace opguard {
namespace {

using Clock = std::chrono::steady_clock;

// The events of tests/record/sample.h, as a reader gives them back.
class Expected {
 public:
  const Event& event(size_t i) {
    grow(i);
    return events_[i];
  }
  const Slot& slot(size_t event, size_t i) { return slots_[this->event(event).first_slot + i]; }

 private:
  void grow(size_t i) {
    while (events_.size() <= i) {
      const uint32_t n = static_cast<uint32_t>(events_.size());
      Event e = sample_event(names_, n);
      std::vector<Slot> slots = sample_slots(names_, n);
      e.first_slot = slots_.size();
      e.slot_count = static_cast<uint32_t>(slots.size());
      events_.push_back(e);
      slots_.insert(slots_.end(), slots.begin(), slots.end());
    }
  }
  LogWriter names_;  // never opened: it only numbers strings and metas
  std::vector<Event> events_;
  std::vector<Slot> slots_;
};

// In this order, as Expected does: strings are numbered as they come.
uint32_t add(LogWriter& writer, uint32_t i) {
  const Event event = sample_event(writer, i);
  const std::vector<Slot> slots = sample_slots(writer, i);
  return writer.add(event, slots);
}

constexpr uint64_t kOfRow = 0x9e3779b97f4a7c15u;

// And behind it an observation of its number. Its schema has the name of the first event.
void add_both(LogWriter& writer, uint32_t i) {
  if (i == 0) {
    const uint32_t name = writer.string("attention.softmax:q7k0");
    writer.schema({name, {name, name}});
  }
  add(writer, i);
  std::string code;
  put_value(code, observed_bits(i * kOfRow));
  put_value(code, observed_integer(i));
  writer.observe({0, i / 3, uint64_t{i} + 1, i, 2, static_cast<uint32_t>(code.size())}, code);
}

// exact: the first ones, all of them. Otherwise some of them, in their order.
uint64_t wrong_rows(const ProcessLog& log, bool exact) {
  uint64_t wrong = 0, i = 0;
  int64_t before = -1;
  ObservationCursor rows(log.observations);
  for (Observation row; rows.next(row); ++i) {
    const auto n = static_cast<uint64_t>(row.time_ns);
    wrong += row.values.size() < 2 || row.values[0].bits != n * kOfRow ||
             row.values[1].integer != row.time_ns || row.step != n / 3 || row.time_ns <= before ||
             row.event > log.events.size() ||
             (exact && (n != i || row.event != std::min<uint64_t>(n + 1, log.events.size())));
    before = row.time_ns;
  }
  return wrong + (i != log.observations.size());
}

uint64_t records_of(uint64_t slots) { return slots == 0 ? 1 : slots; }

// Events whose records were all lost have no place in the log, so that later ones have lower
// indexes. Where that may be, `exact` is false.
uint64_t wrong_events(const ProcessLog& log, Expected& expected, bool exact) {
  uint64_t wrong = 0, slots = 0;
  for (size_t i = 0; i < log.events.size(); ++i) {
    const Event& found = log.events[i];
    Event e = expected.event(exact ? i : found.occurrence);
    e.first_slot = slots;
    if (!exact) {
      e.begin = found.begin;
      e.forward = found.forward;
    }
    bool same = found == e && found.first_slot + found.slot_count <= log.slots.size() &&
                (i == 0 || exact || log.events[i - 1].occurrence < found.occurrence);
    for (uint32_t s = 0; same && s < e.slot_count; ++s)
      same = log.slots[slots + s] == expected.slot(found.occurrence, s);
    wrong += !same;
    slots += found.slot_count;
  }
  return wrong + (slots != log.slots.size());
}

int write(const std::string& dir, uint32_t events, bool thread, uint64_t segment_bytes) {
  WriterLimits limits;
  limits.segments.segment_bytes = segment_bytes;
  limits.chunk_bytes = 4096;
  limits.batch_bytes = 16 * 1024;
  limits.sync_ms = 1;
  limits.thread = thread;
  LogWriter writer(limits);
  const bool opened = writer.open(dir, 0, 1, 1, 1);
  for (uint32_t i = 0; i < events; ++i) {
    add_both(writer, i);
    if (i % 256 == 255) writer.flush();
  }
  const bool closed = writer.close();
  const bool whole = writer.made() == writer.written() + writer.lost();
  std::printf("{\"opened\": %s, \"closed\": %s, \"made\": %" PRIu64 ", \"written\": %" PRIu64
              ", \"lost\": %" PRIu64 ", \"error\": \"%s\"}\n",
              opened ? "true" : "false", closed ? "true" : "false", writer.made(), writer.written(),
              writer.lost(), writer.error().c_str());
  return whole ? 0 : 1;
}

int check(const std::string& path) {
  ProcessLog log;
  std::string error;
  Expected expected;
  if (!read_log(path, log, error)) {
    std::printf("{\"refused\": \"%s\"}\n", error.c_str());
    return 0;
  }
  const uint64_t wrong = wrong_events(log, expected, false) + wrong_rows(log, false);
  uint64_t records = log.observations.size();
  for (const Event& e : log.events) records += records_of(e.slot_count);
  std::printf("{\"wrong\": %" PRIu64 ", \"events\": %zu, \"records\": %" PRIu64
              ", \"lost\": %" PRIu64 ", \"closed\": %s, \"damage\": \"%s\"}\n",
              wrong, log.events.size(), records, log.lost, log.closed ? "true" : "false",
              log.damage.c_str());
  return wrong != 0;
}

// What a child tells before it dies: in memory that outlives it.
struct Shared {
  std::atomic<uint64_t> made{0}, written{0}, closed{0};
};

int kills(uint32_t count, uint64_t seed, const std::string& dir) {
  std::mt19937_64 random(seed);
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Expected expected;
  uint64_t bad = 0, none = 0, closed = 0, torn = 0, records = 0, events = 0;
  const auto begin = Clock::now();
  for (uint32_t round = 0; round < count; ++round) {
    new (shared) Shared;
    const uint64_t child_seed = random(), wait_us = random() % 3000;
    std::filesystem::remove_all(dir);
    const pid_t child = fork();
    if (child == 0) {
      std::mt19937_64 mine(child_seed);
      WriterLimits limits;
      limits.chunk_bytes = 500 + mine() % 8000;
      limits.batch_bytes = 500 + mine() % 8000;
      limits.flush_ms = 1 + mine() % 3;
      limits.sync_ms = mine() % 20;
      LogWriter writer(limits);
      writer.open(dir, 0, 1, 1, 1);
      // Some come to their end, so that the end too is killed.
      const uint32_t end = static_cast<uint32_t>(mine() % 4000);
      for (uint32_t i = 0; i < end; ++i) {
        shared->made.store(i + 1);
        add_both(writer, i);
        if (mine() % 512 == 0) writer.flush();
        shared->written.store(writer.written_events());
      }
      writer.close();
      shared->closed.store(1);
      pause();
      _exit(0);
    }
    usleep(static_cast<useconds_t>(wait_us));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ProcessLog log;
    std::string error, path = dir + "/rank0-1-1.log";
    const bool named_closed = std::filesystem::exists(path);
    if (!named_closed) path += ".incomplete";
    if (!std::filesystem::exists(path)) {
      ++none;
      bad += shared->written.load() != 0;
      continue;
    }
    const bool ok = read_log(path, log, error);
    bad += !ok || wrong_events(log, expected, true) != 0 || wrong_rows(log, true) != 0 ||
           log.observations.size() > shared->made.load() ||
           log.events.size() < shared->written.load() || log.events.size() > shared->made.load() ||
           (named_closed && !log.closed) || (!log.closed && log.damage.empty()) ||
           (shared->closed.load() && !(named_closed && log.closed)) ||
           (log.closed && log.events.size() != shared->made.load());
    closed += log.closed;
    torn += log.damage.find("cut short") != std::string::npos;
    events += log.events.size();
    records += log.slots.size();
  }
  std::filesystem::remove_all(dir);
  std::printf("{\"test\": \"kills\", \"kills\": %u, \"bad\": %" PRIu64
              ", \"before_the_file\": %" PRIu64 ", \"after_the_end\": %" PRIu64
              ", \"torn_tails\": %" PRIu64 ", \"events\": %" PRIu64 ", \"records\": %" PRIu64
              ", \"seconds\": %.1f}\n",
              count, bad, none, closed, torn, events, records,
              std::chrono::duration<double>(Clock::now() - begin).count());
  return bad != 0;
}

// A whole log of at least `bytes` in memory, in chunks of 4 KiB.
std::string log_of(size_t bytes, uint32_t& events) {
  TempDir dir;
  WriterLimits limits;
  limits.chunk_bytes = 4096;
  limits.thread = false;
  LogWriter writer(limits);
  writer.open(dir.path(), 0, 1, 1, 1);
  writer.set({{"seed", "7"}, {"torch", "2.13.0"}});
  for (events = 0;; ++events) {
    if (events % 64 == 0) {
      writer.flush();
      if (std::filesystem::file_size(writer.path()) + 40 >= bytes) break;
    }
    add_both(writer, events);
  }
  writer.lose(5);
  writer.close();
  return read_bytes(writer.path());
}

// Ends of the chunks, and how many events and slots the log holds up to there.
struct Mark {
  size_t end = 0, events = 0, slots = 0;
};

std::vector<Mark> marks_of(const std::string& bytes) {
  std::vector<Mark> marks{{format::kHeaderSize, 0, 0}};
  while (marks.back().end < bytes.size()) {
    Mark mark = marks.back();
    const char* at = bytes.data() + mark.end;
    const uint32_t length = format::load_u32(at + 4);
    if (at[3] == static_cast<char>(format::Chunk::events)) mark.events += format::load_u32(at + 8);
    mark.end += format::kChunkHeaderSize + length;
    marks.push_back(mark);
  }
  return marks;
}

bool is_prefix(const ProcessLog& part, const ProcessLog& whole) {
  if (part.events.size() > whole.events.size() || part.slots.size() > whole.slots.size())
    return false;
  for (size_t i = 0; i < part.events.size(); ++i)
    if (!(part.events[i] == whole.events[i])) return false;
  for (size_t i = 0; i < part.slots.size(); ++i)
    if (!(part.slots[i] == whole.slots[i])) return false;
  return true;
}

int cuts(size_t size, size_t step) {
  uint32_t made = 0;
  const std::string bytes = log_of(size, made);
  const std::vector<Mark> marks = marks_of(bytes);
  ProcessLog whole, log;
  std::string error;
  uint64_t bad = !parse_log(bytes, whole, error) || !whole.closed || whole.events.size() != made;
  const auto begin = Clock::now();
  size_t mark = 0, done = 0;
  for (size_t n = 0; n < bytes.size(); n += step, ++done) {
    while (mark + 1 < marks.size() && marks[mark + 1].end <= n) ++mark;
    const bool ok = parse_log(std::string_view(bytes).substr(0, n), log, error);
    bad += !ok || log.closed || log.damage.empty() || log.events.size() != marks[mark].events ||
           !is_prefix(log, whole) || wrong_rows(log, true) != 0;
  }
  std::printf(
      "{\"test\": \"cuts\", \"bytes\": %zu, \"chunks\": %zu, \"events\": %u, \"cuts\": %zu"
      ", \"bad\": %" PRIu64 ", \"seconds\": %.1f}\n",
      bytes.size(), marks.size() - 1, made, done, bad,
      std::chrono::duration<double>(Clock::now() - begin).count());
  return bad != 0;
}

// Damaged bytes: refused, or told and nothing invented; salvage passes over it and invents nothing
// either. What salvage says is missing is what is missing, where it found the end.
class Damaged {
 public:
  explicit Damaged(const std::string& bytes) : bytes_(bytes) {
    std::string error;
    bad_ += !parse_log(bytes, whole_, error) || !whole_.closed;
  }
  void look(const std::string& damaged) {
    std::string error;
    ++runs_;
    if (!parse_log(damaged, log_, error)) {
      ++refused_;
      return;
    }
    bool wrong = log_.closed || log_.damage.empty() || !is_prefix(log_, whole_) ||
                 wrong_rows(log_, true) != 0;
    if (parse_log(damaged, log_, error, {.salvage = true})) {
      wrong |=
          log_.closed || wrong_events(log_, expected_, false) != 0 || wrong_rows(log_, false) != 0;
      kept_ += log_.slots.size();
      uint64_t missing = 0;
      for (const Gap& gap : log_.gaps) missing += gap.records;
      if (log_.lost == whole_.lost)  // its end, or the chunk of losses, was read
        ends_ += log_.slots.size() + log_.observations.size() + missing ==
                 whole_.slots.size() + whole_.observations.size() + whole_.lost;
    }
    bad_ += wrong;
  }
  int tell(const char* test, Clock::time_point begin) const {
    const double runs = static_cast<double>(runs_ - refused_);
    std::printf("{\"test\": \"%s\", \"bytes\": %zu, \"runs\": %" PRIu64 ", \"refused\": %" PRIu64
                ", \"bad\": %" PRIu64
                ", \"records\": %zu, \"salvaged_share\": %.4f"
                ", \"missing_counted_exactly\": %" PRIu64 ", \"seconds\": %.1f}\n",
                test, bytes_.size(), runs_, refused_, bad_, whole_.slots.size(),
                static_cast<double>(kept_) / runs / static_cast<double>(whole_.slots.size()), ends_,
                std::chrono::duration<double>(Clock::now() - begin).count());
    return bad_ != 0;
  }

 private:
  const std::string& bytes_;
  ProcessLog whole_, log_;
  Expected expected_;
  uint64_t runs_ = 0, refused_ = 0, bad_ = 0, kept_ = 0, ends_ = 0;
};

int bits(size_t size, size_t step) {
  uint32_t made = 0;
  const std::string bytes = log_of(size, made);
  Damaged damaged(bytes);
  const auto begin = Clock::now();
  std::string copy = bytes;
  for (size_t bit = 0; bit < bytes.size() * 8; bit += step) {
    copy[bit / 8] = static_cast<char>(copy[bit / 8] ^ 1 << bit % 8);
    damaged.look(copy);
    copy[bit / 8] = bytes[bit / 8];
  }
  return damaged.tell("bits", begin);
}

int hits(uint32_t count, uint64_t seed) {
  uint32_t made = 0;
  const std::string bytes = log_of(16 * 1024, made);
  Damaged damaged(bytes);
  std::mt19937_64 random(seed);
  const auto begin = Clock::now();
  std::string copy;
  for (uint32_t i = 0; i < count; ++i) {
    do {
      copy = bytes;
      const size_t at = random() % copy.size(), n = 1 + random() % 300;
      switch (random() % 4) {
        case 0:  // other bytes
          for (size_t k = at; k < std::min(at + n, copy.size()); ++k)
            copy[k] = static_cast<char>(random());
          break;
        case 1:  // a hole of zeros, as of a lost block
          for (size_t k = at; k < std::min(at + n * 8, copy.size()); ++k) copy[k] = 0;
          break;
        case 2:  // bytes gone
          copy.erase(at, n);
          break;
        default:  // a piece of the log twice
          copy.insert(at, bytes.substr(random() % bytes.size(), n * 8));
      }
    } while (copy == bytes);
    damaged.look(copy);
  }
  return damaged.tell("hits", begin);
}

int losses(uint64_t records, uint64_t seed, const std::string& dir) {
  std::mt19937_64 random(seed);
  Expected expected;
  uint64_t made = 0, lost = 0, bad = 0, logs = 0, gaps = 0;
  const auto begin = Clock::now();
  while (made < records) {
    std::filesystem::remove_all(dir);
    WriterLimits limits;
    limits.queue_bytes = size_t{1} << (13 + random() % 8);
    limits.batch_bytes = size_t{1} << (9 + random() % 8);
    limits.flush_ms = 1 + random() % 50;
    limits.chunk_bytes = size_t{1} << (9 + random() % 8);
    LogWriter writer(limits);
    writer.open(dir, 0, 1, 1, 1);
    const uint32_t events = static_cast<uint32_t>(random() % 20000);
    uint64_t mine = 0, kept = 0;
    for (uint32_t i = 0; i < events; ++i) {
      const uint64_t records = records_of(i % 4);  // sample_slots
      mine += records;
      if (add(writer, i) != kNone) kept += records;
      if (random() % 4096 == 0) usleep(static_cast<useconds_t>(random() % 2000));
    }
    bad += !writer.close() || writer.made() != mine || writer.written() != kept ||
           writer.lost() != mine - kept;
    ProcessLog log;
    std::string error;
    bad += !read_log(writer.path(), log, error) || !log.closed || log.lost != mine - kept ||
           wrong_events(log, expected, false) != 0;
    uint64_t in_log = 0, in_gaps = 0;
    for (const Event& e : log.events) in_log += records_of(e.slot_count);
    for (const Gap& gap : log.gaps) in_gaps += gap.records;
    // Every gap is where it says: what is between the events beside it adds up to it.
    for (const Gap& gap : log.gaps) {
      uint64_t between = 0;
      const uint32_t to = gap.event < log.events.size() ? log.events[gap.event].occurrence : events;
      for (uint32_t i = gap.event == 0 ? 0 : log.events[gap.event - 1].occurrence + 1; i < to; ++i)
        between += records_of(expected.event(i).slot_count);
      bad += between != gap.records;
    }
    bad += in_log != kept || in_gaps != log.lost;
    made += mine;
    lost += log.lost;
    gaps += log.gaps.size();
    ++logs;
  }
  std::filesystem::remove_all(dir);
  std::printf(
      "{\"test\": \"losses\", \"logs\": %" PRIu64 ", \"made\": %" PRIu64 ", \"lost\": %" PRIu64
      ", \"gaps\": %" PRIu64 ", \"bad\": %" PRIu64 ", \"seconds\": %.1f}\n",
      logs, made, lost, gaps, bad, std::chrono::duration<double>(Clock::now() - begin).count());
  return bad != 0;
}

uint64_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss);
}

// Events of three records as a training step makes them: outputs read again, parameters anew.
int read(uint64_t records, const std::string& dir) {
  std::filesystem::remove_all(dir);
  LogWriter writer;
  writer.open(dir, 0, 1, 1, 1);
  std::mt19937_64 random(1);
  Slot before;
  uint64_t adding_ns = 0;
  const uint32_t name = writer.string("arg0"), boundary = writer.string("model.matmul:q7k2");
  before.name = name;
  before.meta = writer.meta({"float32", "cpu", {32, 64, 256}});
  std::vector<Slot> slots(3);
  for (uint64_t i = 0; i < records / 3; ++i) {
    Event e;
    e.boundary = boundary;
    e.occurrence = static_cast<uint32_t>(i);
    e.begin = i;
    e.start_ns = i * 20'000;
    e.end_ns = e.start_ns + 15'000;
    slots[0] = before;
    slots[1] = {.kind = SlotKind::in,
                .flags = kParameter,
                .index = 1,
                .name = name,
                .meta = before.meta,
                .version = 3,
                .storage = static_cast<uint32_t>(i % 100 + 1),
                .value = {i % 100, 77},
                .flat = 78,
                .address = 4096 * (i % 100),
                .size_bytes = 2'097'152};
    slots[2] = before;
    slots[2].kind = SlotKind::out;
    slots[2].value = {random(), random()};
    slots[2].flat = random();
    slots[2].storage = static_cast<uint32_t>(i + 101);
    slots[2].address = 0x7f0000000000 + random() % 1000 * 4096;
    before = slots[2];
    before.kind = SlotKind::in;
    const auto start = Clock::now();
    writer.add(e, slots);
    adding_ns += static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    if (i % 20'000 == 0) writer.flush();
  }
  const bool closed = writer.close();
  const uint64_t writer_kib = peak_kib(), size = std::filesystem::file_size(writer.path());
  ProcessLog log;
  std::string error;
  const auto begin = Clock::now();
  const bool ok = closed && writer.lost() == 0 && read_log(writer.path(), log, error) && log.closed;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf(
      "{\"test\": \"read\", \"records\": %zu, \"bytes_a_record\": %.1f, \"seconds\": %.3f"
      ", \"records_a_second\": %.0f, \"add_ns_a_record\": %.0f, \"writer_mib\": %" PRIu64
      ", \"bad\": %d}\n",
      log.slots.size(), static_cast<double>(size) / static_cast<double>(log.slots.size()), seconds,
      static_cast<double>(log.slots.size()) / seconds,
      static_cast<double>(adding_ns) / static_cast<double>(log.slots.size()), writer_kib / 1024,
      !ok);
  std::filesystem::remove_all(dir);
  return !ok;
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  auto word = [&](size_t i) { return i < words.size() ? words[i] : std::string(); };
  auto number = [&](size_t i) { return std::strtoull(word(i).c_str(), nullptr, 10); };
  const std::string verb = word(0);
  if (verb == "write")
    return write(word(1), static_cast<uint32_t>(number(2)), word(3) != "0", number(4));
  if (verb == "check") return check(word(1));
  if (verb == "kills") return kills(static_cast<uint32_t>(number(1)), number(2), word(3));
  if (verb == "cuts") return cuts(number(1), number(2));
  if (verb == "bits") return bits(number(1), number(2));
  if (verb == "hits") return hits(static_cast<uint32_t>(number(1)), number(2));
  if (verb == "losses") return losses(number(1), number(2), word(3));
  if (verb == "read") return read(number(1), word(2));
  std::fprintf(stderr,
               "log_torture write|check|kills|cuts|bits|hits|losses|read: see its source\n");
  return 2;
}

}  // namespace
}  // namespace opguard

int main(int argc, char** argv) { return opguard::main(argc, argv); }
