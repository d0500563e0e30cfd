#include "matcher/renamed_words.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

TEST(RenamedWords, AreReplacedInTheCaseOfTheName) {
  RenamedWords words;
  words.learn("LlamaBlock", "AlpacaBlock");
  EXPECT_EQ(words.applied("LlamaModel"), "AlpacaModel");
  EXPECT_EQ(words.applied("make_llama_2"), "make_alpaca_2");
  EXPECT_EQ(words.applied("LLAMA_SIZE"), "ALPACA_SIZE");
  EXPECT_EQ(words.applied("Llamas"), "Llamas");
  EXPECT_EQ(words.applied("forward"), "forward");
}

TEST(RenamedWords, AsTheyWereWrittenFirst) {
  RenamedWords words;
  words.learn("CTCBeam", "QuasarBeam");
  EXPECT_EQ(words.applied("CTCBaseSearcher"), "QuasarBaseSearcher");
  EXPECT_EQ(words.applied("ctc_decode"), "quasar_decode");
}

TEST(RenamedWords, SeveralWordsForOne) {
  RenamedWords words;
  words.learn("big_vit2_tiny", "quasar_tiny");
  EXPECT_EQ(words.applied("big_vit2_base"), "quasar_base");
  EXPECT_EQ(words.applied("big_vit3_base"), "big_vit3_base");
}

TEST(RenamedWords, WhatIsReplacedByTwoThingsIsNot) {
  RenamedWords words;
  words.learn("GateA", "DoorA");
  words.learn("GateB", "WallB");
  EXPECT_EQ(words.applied("GateC"), "GateC");
}

TEST(RenamedWords, OneWordMoreIsNoReplacement) {
  RenamedWords words;
  words.learn("Block", "FastBlock");
  EXPECT_TRUE(words.empty());
}

}  // namespace
}  // namespace opguard
