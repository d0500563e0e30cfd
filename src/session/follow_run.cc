#include "session/follow_run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "invariants/check_rows.h"
#include "invariants/grouping.h"
#include "invariants/views/run_views.h"
#include "record/log_tail.h"
#include "session/violation_command.h"
#include "session/violations_of.h"
#include "support/say.h"
#include "support/text.h"

namespace opguard {

constexpr auto kBetweenLooks = std::chrono::milliseconds(20);  // at the logs
constexpr auto kShortPause = std::chrono::microseconds(300);   // where the program waits for us
// What breaks so soon after a finding belongs to it.
constexpr uint32_t kBehindFinding = 1;

// The 16 bytes by which a process is told to go on or to end: python/opguard/training/stopping.py.
//
//   word 0    steps of it that were looked at        3: it may go on behind step 2
//   word 1    1 + the step that broke a rule         0: none
//
// The process makes the file and maps it, and we map the same page: to ask and to answer is a load
// and a store.
class StopWord {
 public:
  explicit StopWord(const std::string& path) : path_(path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void* at = ::mmap(nullptr, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) words_ = static_cast<std::atomic<uint64_t>*>(at);
    ::close(fd);
  }
  StopWord(const StopWord&) = delete;
  ~StopWord() {
    if (words_) ::munmap(words_, 16);
  }
  bool is_there() const { return words_ != nullptr; }
  void checked(uint64_t steps) { words_[0].store(steps); }
  void broken(uint32_t step) { words_[1].store(uint64_t{1} + step); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::atomic<uint64_t>* words_ = nullptr;
};

struct FollowedRun::State {
  State(std::string folder, const InvariantsFile& file, std::string stop, std::string on_finding)
      : tail(std::move(folder)),
        stop_file(std::move(stop)),
        command(std::move(on_finding)),
        checker(file.invariants, views(), texts),
        rows(texts, checker) {}

  FolderTail tail;
  std::string stop_file;
  ViolationCommand command;
  CellTexts texts;
  RowChecker checker;
  RunViews rows;
  std::map<size_t, size_t> process_of;    // of the tail -> of the views
  std::map<size_t, uint64_t> steps_seen;  // of the tail: steps that have ended
  std::map<int64_t, std::unique_ptr<StopWord>> words;
  std::set<uint32_t> told_at;  // steps of findings
  uint64_t behind = 0;
  std::atomic<bool> over = false, counts = false;
  std::thread thread;

  // Takes what is new in all logs; how many rows that was. Called by the thread, and by finish()
  // behind it.
  uint64_t look() {
    const uint64_t seen = tail.poll([&](size_t process, const Observation& row) {
      const ProcessLog& log = tail[process].log();
      auto at = process_of.find(process);
      if (at == process_of.end())
        at = process_of.emplace(process, rows.add_process(log.strings, log.rank)).first;
      rows.add(at->second, row, log.observations.schemas());
      if (log.strings[log.observations.schemas()[row.schema].kind] == "optimizer")
        steps_seen[process] = uint64_t{row.step} + 1;
    });
    tell();
    if (!stop_file.empty()) answer();
    return seen;
  }

  // A finding is told once. What breaks in the same step or in the next one is counted as behind
  // it. A wrong gradient makes a wrong update, and that makes other values.
  void tell() {
    for (BrokenGroup& group : group_broken(checker.take_new())) {
      const BrokenRule& head = group[0];
      if (head.rule->severity == InvariantSeverity::note) continue;
      counts = true;
      const uint32_t step = head.first.step;
      if (told_at.contains(step) || (step > 0 && told_at.contains(step - kBehindFinding))) {
        behind += group.size();
        continue;
      }
      told_at.insert(step);
      const ViolationFinding finding = finding_of(group, nullptr);
      std::string text = format_violation(finding);
      while (text.ends_with('\n')) text.pop_back();
      say(text);
      command.run(finding, pid_of(finding.first.rank));
    }
  }

  // Of a rank; of the first process where all ranks are meant.
  int64_t pid_of(int32_t rank) {
    for (const auto& [process, number] : process_of)
      if (rank < 0 || tail[process].log().rank == rank) return tail[process].log().pid;
    return 0;
  }

  // In the order that a process must see: broken before checked. Else it would go on behind a step
  // that broke a rule.
  void answer() {
    for (const auto& [process, steps] : steps_seen) {
      const int64_t pid = tail[process].log().pid;
      auto& word = words[pid];
      if (!word || !word->is_there())
        word = std::make_unique<StopWord>(stop_file + "-" + std::to_string(pid));
      if (!word->is_there()) continue;
      if (counts && !told_at.empty()) word->broken(*told_at.begin());
      word->checked(steps);
    }
  }

  // A program that waits for us is looked at without a long sleep.
  void follow() {
    while (!over) {
      if (look() == 0)
        stop_file.empty() ? std::this_thread::sleep_for(kBetweenLooks)
                          : std::this_thread::sleep_for(kShortPause);
    }
  }
};

FollowedRun::FollowedRun(std::string folder, const InvariantsFile& rules, std::string stop_file,
                         std::string command)
    : state_(std::make_unique<State>(std::move(folder), rules, std::move(stop_file),
                                     std::move(command))) {
  state_->thread = std::thread([this] { state_->follow(); });
}

FollowedRun::~FollowedRun() { finish(); }

// The thread is joined first, so the rest is read by one thread. What compares ranks is decided at
// the end of the rows (rows.finish), and told last.
void FollowedRun::finish() {
  if (!state_->thread.joinable()) return;
  state_->over = true;
  state_->thread.join();
  while (state_->look() > 0) {
  }
  state_->rows.finish();
  state_->tell();
  for (const auto& [pid, word] : state_->words) ::unlink(word->path().c_str());
  state_->command.wait();
  if (state_->behind)
    say(counted(state_->behind, "rule") + " more broken right behind; opguard check tells all");
}

bool FollowedRun::violated() const { return state_->counts; }

}  // namespace opguard
