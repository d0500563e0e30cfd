#include "support/file_lock.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace opguard {
namespace {

TEST(FileLock, TheSecondWaitsUntilTheFirstHasEnded) {
  char folder[] = "/tmp/opguard_lock_XXXXXX";
  ASSERT_TRUE(mkdtemp(folder));
  const std::string path = std::string(folder) + "/it.lock";
  auto take = [&](bool& waited) { return FileLock::take(path, [&waited] { waited = true; }); };
  bool waited = false;
  auto first = take(waited);
  ASSERT_TRUE(bool(first));
  EXPECT_FALSE(waited);
  std::optional<FileLock> held(std::move(*first));

  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t second = fork();
  if (second == 0) {
    auto lock = FileLock::take(path, [&] { (void)!write(told[1], "w", 1); });
    (void)!write(told[1], lock ? "h" : "e", 1);
    _exit(0);  // and holds it: the kernel lets go
  }
  char said = 0;
  ASSERT_EQ(read(told[0], &said, 1), 1);
  EXPECT_EQ(said, 'w');
  held.reset();
  ASSERT_EQ(read(told[0], &said, 1), 1);
  EXPECT_EQ(said, 'h');
  waitpid(second, nullptr, 0);
  waited = false;
  auto third = take(waited);
  EXPECT_TRUE(bool(third));
  EXPECT_FALSE(waited);
}

TEST(FileLock, AFileThatCannotBeMadeIsAnError) {
  auto lock = FileLock::take("/no/such/folder/it.lock", [] {});
  ASSERT_FALSE(bool(lock));
  EXPECT_NE(llvm::toString(lock.takeError()).find("cannot make"), std::string::npos);
}

}  // namespace
}  // namespace opguard
