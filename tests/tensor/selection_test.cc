#include "tensor/selection.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

Selection parsed(const std::string& text) {
  Selection selection;
  std::string error;
  EXPECT_TRUE(parse_selection(text, selection, error)) << error;
  return selection;
}

bool refused(const std::string& text) {
  Selection selection;
  std::string error;
  return !parse_selection(text, selection, error) && !error.empty();
}

ProbeEvent op(std::string_view boundary) { return {boundary, "op", "forward", "", 0, 0}; }

TEST(Selection, ABoundaryAlone) {
  Selection s = parsed("attn.softmax:q7k2");
  std::string_view slot;
  EXPECT_TRUE(s.means(op("attn.softmax:q7k2"), slot));
  EXPECT_EQ(slot, "");
  EXPECT_FALSE(s.means(op("attn.softmax:q7k3"), slot));
  EXPECT_FALSE(s.occurrence);
}

// The colon of an id and that of a slot look alike.
TEST(Selection, ASlotWithoutAnOccurrence) {
  Selection s = parsed("attn.softmax:q7k2:out0");
  std::string_view slot;
  EXPECT_TRUE(s.means(op("attn.softmax:q7k2"), slot));
  EXPECT_EQ(slot, "out0");
  EXPECT_FALSE(s.means(op("attn.softmax"), slot) && slot == "out0");
  EXPECT_FALSE(s.means(op("attn"), slot));
}

TEST(Selection, OccurrenceSlotAndKeys) {
  Selection s = parsed("<optimizer.step>@3:out/param:w,phase=optimizer,rank=1,step=4");
  EXPECT_EQ(s.boundary, "<optimizer.step>");
  EXPECT_EQ(s.occurrence, 3u);
  EXPECT_EQ(s.slot, "out/param:w");
  std::string_view slot;
  EXPECT_TRUE(s.means({"<optimizer.step>", "optimizer", "optimizer", "", 1, 4}, slot));
  EXPECT_FALSE(s.means({"<optimizer.step>", "optimizer", "optimizer", "", 0, 4}, slot));
  EXPECT_FALSE(s.means({"<optimizer.step>", "optimizer", "optimizer", "", 1, 3}, slot));
  EXPECT_FALSE(s.means({"<optimizer.step>", "optimizer", "backward", "", 1, 4}, slot));
  EXPECT_FALSE(parsed("b@*").occurrence);
  EXPECT_EQ(parsed("b,node=MmBackward0,kind=node").node, "MmBackward0");
}

TEST(Selection, SlotsByNameKindOrBoth) {
  EXPECT_TRUE(slot_meant("", "in", "self"));
  EXPECT_TRUE(slot_meant("self", "in", "self"));
  EXPECT_TRUE(slot_meant("in", "in", "self"));
  EXPECT_TRUE(slot_meant("written/self", "written", "self"));
  EXPECT_FALSE(slot_meant("written/self", "in", "self"));
  EXPECT_FALSE(slot_meant("out", "in", "self"));
}

TEST(Selection, WhatIsWrongIsRefused) {
  for (const char* text : {"", "@3", ":out0,rank=x", "b,step=-1", "b,phase=sideways",
                           "b@3:", "b@99999999999", "b,kind=", "b,kind=state", "b,pase=backward",
                           "b,dtype=float16", "b,step=1,step=2"})
    EXPECT_TRUE(refused(text)) << text;
}

TEST(Transplant, Parts) {
  Transplant t;
  std::string error;
  ASSERT_TRUE(parse_transplant("a.b:c@2:out0=/tmp/x@0.safetensors#in/arg0", t, error)) << error;
  EXPECT_EQ(t.selection.boundary, "a.b:c");
  EXPECT_EQ(t.selection.occurrence, 2u);
  EXPECT_EQ(t.selection.slot, "out0");
  EXPECT_EQ(t.file, "/tmp/x@0.safetensors");
  EXPECT_EQ(t.name, "in/arg0");
  EXPECT_EQ(t.selection.kind, "op");
  EXPECT_EQ(t.selection.phase, "forward");
  EXPECT_EQ(transplant_text(t), "a.b:c@2:out0=/tmp/x@0.safetensors#in/arg0");
}

TEST(Transplant, KeysStandBeforeTheFile) {
  Transplant t;
  std::string error;
  ASSERT_TRUE(
      parse_transplant("a:c@2:out1,phase=backward,node=N=/tmp/f,step=3=x.safetensors", t, error))
      << error;
  EXPECT_EQ(t.selection.kind, "node");
  EXPECT_EQ(t.selection.node, "N");
  EXPECT_FALSE(t.selection.step);
  EXPECT_EQ(t.file, "/tmp/f,step=3=x.safetensors");
  ASSERT_TRUE(parse_transplant("a@0:param:w,phase=optimizer=f", t, error)) << error;
  EXPECT_EQ(t.selection.kind, "");
  EXPECT_EQ(t.selection.slot, "param:w");
}

TEST(Transplant, WhatIsWrongIsRefused) {
  for (const char* text : {"", "a", "a@0", "a@0:out0", "a@0:out0=", "a:out0=f", "a@*:out0=f",
                           "a@0:=f", "a@0=f", "a@0:out0=f#", "a@0:out0=#n"}) {
    Transplant t;
    std::string error;
    EXPECT_FALSE(parse_transplant(text, t, error)) << text;
    EXPECT_FALSE(error.empty()) << text;
  }
}

}  // namespace
}  // namespace opguard
