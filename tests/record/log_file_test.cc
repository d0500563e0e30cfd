#include "record/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "record/sample.h"
#include "record/writer.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return (std::stringstream() << in.rdbuf()).str();
}

// The descriptor that this process has open on `path`; -1 if there is none.
int descriptor_of(const std::string& path) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ec;
    if (fs::read_symlink(entry.path(), ec) == path) return std::stoi(entry.path().filename());
  }
  return -1;
}

// What os.closerange and an open() do: the log's number is now `path`'s.
int take_number_of(const std::string& log, const std::string& path) {
  const int number = descriptor_of(log);
  EXPECT_GE(number, 0);
  const int other = ::open(path.c_str(), O_RDWR);
  EXPECT_EQ(dup2(other, number), number);
  close(other);
  return number;
}

class LogFileTest : public testing::Test {
 protected:
  LogFileTest() {
    std::ofstream(users_) << "the user's own";
    EXPECT_TRUE(file_.create(dir_.path() + "/logs/a.log", error_)) << error_;
    EXPECT_TRUE(file_.append("one,", error_)) << error_;
  }
  bool users_file_is_whole() const { return content(users_) == "the user's own"; }

  TempDir dir_;
  LogFile file_;
  std::string error_;
  const std::string users_ = dir_.path() + "/users", open_ = dir_.path() + "/logs/a.log.incomplete",
                    final_ = dir_.path() + "/logs/a.log";
};

TEST_F(LogFileTest, AFileThatGotTheLogsNumberIsNeitherWrittenNorClosed) {
  const int number = take_number_of(open_, users_);
  EXPECT_TRUE(file_.append("two,", error_)) << error_;
  EXPECT_EQ(content(open_), "one,two,");  // by the log's name, since its number is another's
  EXPECT_NE(descriptor_of(open_), number);
  EXPECT_TRUE(file_.finish("end", error_)) << error_;
  EXPECT_EQ(content(final_), "one,two,end");
  EXPECT_NE(fcntl(number, F_GETFD), -1) << "the user's descriptor was closed";
  EXPECT_TRUE(users_file_is_whole());
  close(number);
}

TEST_F(LogFileTest, AClosedDescriptorIsHadBack) {
  close(descriptor_of(open_));
  EXPECT_TRUE(file_.sync() || file_.append("two,", error_));
  EXPECT_TRUE(file_.finish("end", error_)) << error_;
  EXPECT_EQ(content(final_), "one,two,end");
}

TEST_F(LogFileTest, FinishLeavesAFileThatGotTheNumberAsLongAsItWas) {
  const int number = take_number_of(open_, users_);
  EXPECT_TRUE(file_.finish("end", error_)) << error_;
  EXPECT_EQ(content(final_), "one,end");
  EXPECT_TRUE(users_file_is_whole());
  close(number);
}

TEST_F(LogFileTest, AbandonLeavesAFileThatGotTheNumberOpen) {
  const int number = take_number_of(open_, users_);
  file_.abandon();
  EXPECT_FALSE(file_.is_open());
  EXPECT_NE(fcntl(number, F_GETFD), -1);
  close(number);
}

TEST_F(LogFileTest, ADeletedLogIsGone) {
  fs::remove(open_);
  EXPECT_FALSE(file_.append("two,", error_));
  EXPECT_TRUE(file_.is_gone());
  EXPECT_NE(error_.find("is gone: deleted, cut or replaced"), std::string::npos) << error_;
  EXPECT_FALSE(fs::exists(open_));
}

TEST_F(LogFileTest, AnotherFileOfTheLogsNameIsNotTheLog) {
  close(descriptor_of(open_));
  fs::remove(open_);
  std::ofstream(open_) << "another's";  // on most file systems it gets the inode of the log
  EXPECT_FALSE(file_.append("two,", error_));
  EXPECT_FALSE(file_.finish("end", error_));
  EXPECT_EQ(content(open_), "another's");
  EXPECT_FALSE(fs::exists(final_));
}

TEST_F(LogFileTest, AMovedLogEndsWhereItLies) {
  fs::rename(dir_.path() + "/logs", dir_.path() + "/elsewhere");
  EXPECT_TRUE(file_.append("two,", error_)) << error_;
  EXPECT_TRUE(file_.finish("end", error_)) << error_;
  EXPECT_EQ(file_.path(), dir_.path() + "/elsewhere/a.log");
  EXPECT_EQ(content(file_.path()), "one,two,end");
}

TEST_F(LogFileTest, TheProgramsLowNumbersStayFree) {
  EXPECT_GT(descriptor_of(open_), 100);
  const int next = ::open("/dev/null", O_RDONLY);
  EXPECT_LT(next, descriptor_of(open_));
  close(next);
}

TEST(Writer, AllOfALogThatIsGoneIsLost) {
  TempDir dir;
  LogWriter writer({.thread = false});
  ASSERT_TRUE(writer.open(dir.path() + "/logs", 0, 1, 1, 1));
  for (int i = 0; i < 10; ++i) writer.add({}, {});
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(writer.written(), 10u);
  fs::remove_all(dir.path() + "/logs");
  for (int i = 0; i < 5; ++i) writer.add({}, {});
  EXPECT_FALSE(writer.close());
  EXPECT_EQ(writer.made(), 15u);
  EXPECT_EQ(writer.lost(), 15u);
}

}  // namespace
}  // namespace opguard
