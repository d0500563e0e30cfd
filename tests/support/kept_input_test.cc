#include "support/kept_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "support/launch.h"

namespace opguard {
namespace {

// What a shell command prints when it is launched.
std::string output(const std::string& command, bool apart = false) {
  LaunchOptions options;
  options.command = {"/bin/sh", "-c", command};
  options.output = Output::capture;
  options.apart = apart;
  auto result = launch(options);
  return result ? result->output : llvm::toString(result.takeError());
}

// Runs the body in a process of its own whose stdin is `read_end`; its answer is printed there.
void with_stdin(int read_end, int write_end, const std::string& wanted,
                const std::function<std::string()>& body) {
  EXPECT_EXIT(
      {
        dup2(read_end, STDIN_FILENO);
        close(read_end);
        if (write_end >= 0) close(write_end);
        keep_input();
        const std::string got = body();
        if (got != wanted) std::fprintf(stderr, "got '%s'\n", got.c_str());
        std::exit(got == wanted ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

void fill(int fd, const std::string& text, bool end = true) {
  ASSERT_EQ(write(fd, text.data(), text.size()), ssize_t(text.size()));
  if (end) close(fd);
}

TEST(KeptInput, EveryProgramReadsAPipeFromItsStart) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  fill(ends[1], "32\nrest\n");
  with_stdin(ends[0], -1, "32\nrest\n|32\nrest\n|32\nrest\n", [] {
    const std::string first = output("cat"), second = output("cat");
    return first + "|" + second + "|" + output("cat", /*apart=*/true);
  });
  close(ends[0]);
}

TEST(KeptInput, TheSecondReadsOnWhereTheFirstStopped) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  fill(ends[1], "1\n2\n3\n");
  with_stdin(ends[0], -1, "1|1 2|1\n2\n3\n", [] {
    const std::string first = output("read x; printf $x");
    return first + "|" + output("read x; read y; printf '%s %s' $x $y") + "|" + output("cat");
  });
  close(ends[0]);
}

TEST(KeptInput, WhatNoProgramReadStaysThere) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  fill(ends[1], "1\n2\n", /*end=*/false);  // still open: nobody waits for its end
  with_stdin(ends[0], ends[1], "|1|2\n", [&] {
    const std::string none = output("true"), first = output("read x; printf $x");
    char rest[16];
    const ssize_t n = read(STDIN_FILENO, rest, sizeof rest);
    return none + "|" + first + "|" + std::string(rest, size_t(std::max<ssize_t>(n, 0)));
  });
  close(ends[0]), close(ends[1]);
}

TEST(KeptInput, MoreThanAPage) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
  fill(ends[1], std::string(300000, 'x'));
  with_stdin(ends[0], -1, "300000\n|300000\n", [] {
    const std::string first = output("wc -c");
    return first + "|" + output("wc -c");
  });
  close(ends[0]);
}

TEST(KeptInput, ASocketToo) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  fill(ends[1], "32\n");
  with_stdin(ends[0], -1, "32\n|32\n", [] {
    const std::string first = output("cat");
    return first + "|" + output("cat");
  });
  close(ends[0]);
}

TEST(KeptInput, AFileIsOpenedAnewWhereItStood) {
  char name[] = "/tmp/kept-input-XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  unlink(name);
  fill(fd, "1\n2\n3\n", /*end=*/false);
  lseek(fd, 2, SEEK_SET);
  with_stdin(fd, -1, "2\n3\n|2\n3\n|2", [] {
    const std::string first = output("cat"), second = output("cat");
    char own;
    const bool left = read(STDIN_FILENO, &own, 1) == 1;
    return first + "|" + second + "|" + (left ? std::string(1, own) : "none");
  });
  close(fd);
}

}  // namespace
}  // namespace opguard
