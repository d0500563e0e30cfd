#include "support/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace opguard {
namespace {

using namespace std::chrono_literals;

// What stands on stderr after `time` of work: a terminal's or a pipe's.
std::string shown(bool terminal, std::chrono::milliseconds time) {
  int read_end = -1, write_end = -1;
  if (terminal) {
    read_end = posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_TRUE(read_end >= 0 && grantpt(read_end) == 0 && unlockpt(read_end) == 0);
    write_end = open(ptsname(read_end), O_RDWR | O_NOCTTY);
  } else {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    read_end = ends[0];
    write_end = ends[1];
  }
  fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  dup2(write_end, STDERR_FILENO);
  {
    Progress progress("reading logs");
    std::this_thread::sleep_for(time);
  }
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  fcntl(read_end, F_SETFL, O_NONBLOCK);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(read_end, buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  close(write_end);
  close(read_end);
  return text;
}

TEST(Progress, ALineAfterASecondIsTakenAwayAtTheEnd) {
  const std::string text = shown(true, 2300ms);
  EXPECT_EQ(text, "\rreading logs, 1 s\x1b[K\rreading logs, 2 s\x1b[K\r\x1b[K");
}

TEST(Progress, NothingOfWhatIsShorter) { EXPECT_EQ(shown(true, 200ms), ""); }

TEST(Progress, NothingWhereNobodyWatches) { EXPECT_EQ(shown(false, 1300ms), ""); }

TEST(Progress, TellsStepsAndTheTimeLeft) {
  EXPECT_EQ(progress_text("run of a", 3, 0, 0, 40, 0), "run of a, 3 s");
  EXPECT_EQ(progress_text("run of a", 30, 2, 12, 40, 20), "run of a, step 12 of 40, 57 s left");
  EXPECT_EQ(progress_text("run of a", 70, 2, 12, 0, 20), "run of a, step 12, 1 min 10 s");
  // More steps than were counted: how many there will be is not known any more.
  EXPECT_EQ(progress_text("run of a", 70, 2, 41, 40, 20), "run of a, step 41, 1 min 10 s");
}

}  // namespace
}  // namespace opguard
