// The steps that align and diff share, on logs as the runtime writes them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "align/builder.h"
#include "nlohmann/json.hpp"
#include "record/writer.h"
#include "scratch.h"
#include "session/report_verdict.h"
#include "support/exit_code.h"

namespace opguard {

namespace {

using Settings = std::map<std::string, std::string>;

class Conclude : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_scratch(); }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // One operator and the loss it makes.
  std::string write(const std::string& name, uint64_t loss, const Settings& settings = {}) {
    const std::string dir = (dir_ / name).string();
    LogWriter writer;
    EXPECT_TRUE(writer.open(dir, 0, 1, 7, 5)) << writer.error();
    writer.set(settings);
    auto slot = [&](SlotKind kind, uint64_t value, uint8_t flags) {
      Slot s;
      s.kind = kind;
      s.name = writer.string(kind == SlotKind::in ? "self" : "out0");
      s.meta = writer.meta({"float32", "cpu", {4}});
      s.value = {value, value};
      s.flat = value;
      s.flags = flags;
      s.size_bytes = 16;
      return s;
    };
    Event op;
    op.boundary = writer.string("model.sum:aaaa");
    writer.add(op, {slot(SlotKind::in, 1, 0), slot(SlotKind::out, loss, 0)});
    Event backward;
    backward.boundary = writer.string("train.backward:bbbb");
    backward.kind = EventKind::loss;
    backward.begin = 1;
    writer.add(backward, {slot(SlotKind::in, loss, kModelValue)});
    EXPECT_TRUE(writer.close());
    return dir;
  }

  int run(const std::string& a, const std::string& b) {
    ReportOptions options;
    options.json = (dir_ / "verdict.json").string();
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = report_verdict(a, b, {}, options);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }

  nlohmann::json json() {
    std::ifstream file(dir_ / "verdict.json");
    return nlohmann::json::parse(file, nullptr, false);
  }

  std::filesystem::path dir_;
  std::string out_, err_;
};

TEST_F(Conclude, TheSame) {
  EXPECT_EQ(run(write("a", 5), write("b", 5)), kYes);
  EXPECT_EQ(out_.find("identical: "), 0u) << out_;
  EXPECT_EQ(json()["verdict"], "identical");
  EXPECT_EQ(json()["certified_prefix"], 2);
}

TEST_F(Conclude, ADifferenceNamesItsOperator) {
  EXPECT_EQ(run(write("a", 5), write("b", 6)), kNo);
  EXPECT_EQ(out_.find("diverged: "), 0u) << out_;
  EXPECT_NE(out_.find("pivot: value in model.sum:aaaa"), std::string::npos) << out_;
  EXPECT_EQ(json()["pivot"]["boundary"], "model.sum:aaaa");
  EXPECT_EQ(json()["pivot"]["slot"], "out0");
  EXPECT_EQ(err_, "");
}

TEST_F(Conclude, OtherVersionsAreListed) {
  EXPECT_EQ(run(write("a", 5, {{"torch", "2.12"}}), write("b", 5, {{"torch", "2.13"}})), kYes);
  EXPECT_NE(out_.find("note: torch differs: 2.12 in a, 2.13 in b\n"), std::string::npos) << out_;
  EXPECT_EQ(json()["settings"].size(), 1u);
}

TEST_F(Conclude, UnlikeControlIsRefused) {
  EXPECT_EQ(run(write("a", 5, {{"control.seed", "1"}}), write("b", 5, {{"control.seed", "2"}})),
            kCouldNotTell);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(err_,
            "opguard: error: the runs were made under unlike settings of opguard: "
            "control.seed differs: 1 in a, 2 in b\n");
  EXPECT_EQ(json()["verdict"], "inconclusive");
  EXPECT_TRUE(json()["pivot"].is_null());
}

TEST_F(Conclude, WhatIsNoRunIsOneMessage) {
  EXPECT_EQ(run((dir_ / "none").string(), write("b", 5)), kCouldNotTell);
  EXPECT_EQ(err_, "opguard: error: " + (dir_ / "none").string() + ": no such folder of logs\n");
  std::filesystem::create_directories(dir_ / "empty");
  EXPECT_EQ(run(write("a", 5), (dir_ / "empty").string()), kCouldNotTell);
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  EXPECT_TRUE(json().is_discarded());
}

TEST_F(Conclude, ALogCutShortIsNeverIdentical) {
  const std::string a = write("a", 5), b = write("b", 5);
  for (const auto& entry : std::filesystem::directory_iterator(b)) {
    const std::string whole = entry.path().string();
    const auto size = std::filesystem::file_size(whole);
    // From the end to the header: read up to the cut, or refused; one sentence either way.
    for (auto left = size - 1; left > 0; --left) {
      std::filesystem::resize_file(whole, left);
      ASSERT_EQ(run(a, b), kCouldNotTell) << left << " of " << size << " bytes\n" << out_;
    }
  }
}

TEST_F(Conclude, AnUnwritableFileIsSaid) {
  ReportOptions options;
  options.json = (dir_ / "none" / "verdict.json").string();
  const std::string a = write("a", 5);
  testing::internal::CaptureStderr();
  EXPECT_EQ(report_verdict(a, a, {}, options), kCouldNotTell);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("verdict.json"), std::string::npos);
}

}  // namespace
}  // namespace opguard
