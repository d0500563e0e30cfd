#include "support/url.h"

#include <gtest/gtest.h>

#include "support/command_line.h"

namespace opguard {
namespace {

TEST(Url, WhatHasASchemeIsOne) {
  for (const char* url : {"s3://bucket", "gs://bucket/run", "hdfs://host:8020/run", "file:///run"})
    EXPECT_TRUE(is_url(url)) << url;
  for (const char* folder : {"run", "/run", "://run", "C://run", "a b://run", ""})
    EXPECT_FALSE(is_url(folder)) << folder;
}

TEST(Url, NoKeyIsShown) {
  EXPECT_EQ(url_name("s3://key:secret@bucket/run@3?endpoint_override=host:1"), "s3://bucket/run@3");
  EXPECT_EQ(url_name("s3://bucket/a@b"), "s3://bucket/a@b");
  EXPECT_EQ(url_name("runs/a?b"), "runs/a?b");
}

TEST(Url, NorInTheCommandLine) {
  std::string words[] = {"/usr/bin/opguard", "align", "s3://k:s@b/run?x=1", "--json=out.json",
                         "--upload=s3://k:s@b/up"};
  char* argv[5];
  for (size_t i = 0; i < 5; ++i) argv[i] = words[i].data();
  keep_command_line(5, argv);
  EXPECT_EQ(command_line(), "opguard align s3://b/run --json=out.json --upload=s3://b/up");
}

}  // namespace
}  // namespace opguard
