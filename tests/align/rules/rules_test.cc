#include "align/rules/rules.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

std::vector<Rule> rules_of(const std::string& text) {
  std::vector<Rule> rules;
  Diagnostics diags;
  EXPECT_TRUE(parse_rules(text, "x.rules", rules, diags)) << diags.text();
  return rules;
}

std::string faults(const std::string& text) {
  std::vector<Rule> rules;
  Diagnostics diags;
  EXPECT_FALSE(parse_rules(text, "x.rules", rules, diags));
  return diags.text();
}

TEST(Rules, OneALine) {
  const auto rules = rules_of(
      "# noise of the loader\n\n  drop.copy_*:in0 -- why: padding \r\n"
      "m.mul:aaaa@3:arg1,phase=backward,node=Mul*,rank=1,step=2,dtype=float*,shape=[4, *],"
      "operator=*.mul,file=model/*,function=forward,kind=node -- why: a -- b");
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].line(), "drop.copy_*:in0 -- why: padding");
  EXPECT_EQ(rules[0].place, "x.rules:3");
  EXPECT_TRUE(rules[0].slot_in_boundary);
  const Rule& all = rules[1];
  EXPECT_EQ(all.why, "a -- b");
  EXPECT_EQ(all.boundary, "m.mul:aaaa");
  EXPECT_EQ(all.occurrence, 3u);
  EXPECT_EQ(all.slot, "arg1");
  EXPECT_EQ(all.phase + all.node + all.dtype + all.shape, "backwardMul*float*[4,*]");
  EXPECT_EQ(all.op + all.file + all.function + all.kind, "*.mulmodel/*forwardnode");
  EXPECT_TRUE(all.rank == 1 && all.step == 2);
}

TEST(Rules, FaultsHaveTheirPlace) {
  EXPECT_EQ(faults("a.b:*\n"),
            "x.rules:1:6: error: the reason is missing: RULE -- why: REASON\na.b:*\n     ^\n");
  EXPECT_EQ(faults("a.b:* -- because"),
            "x.rules:1:10: error: expected 'why: REASON' after '--'\n"
            "a.b:* -- because\n         ^~~~~~~\n");
  EXPECT_EQ(faults("# \xc3\xa4\na.b:\xc3\xa4,opertor=x -- why: y"),
            "x.rules:2:7: error: unknown key 'opertor'\na.b:\xc3\xa4,opertor=x -- why: y\n"
            "      ^~~~~~~\nx.rules:2:7: note: did you mean 'operator'?\n"
            "a.b:\xc3\xa4,opertor=x -- why: y\n      ^~~~~~~\n");
  EXPECT_NE(faults("a.b:*,phase=foward -- why: y").find("did you mean 'forward'?"),
            std::string::npos);
  EXPECT_NE(faults("a.b:*,step=x -- why: y").find("x.rules:1:12: error: step cannot be 'x'"),
            std::string::npos);
  EXPECT_NE(faults("a.b@3: -- why: y").find("the slot is missing"), std::string::npos);
  EXPECT_NE(faults("a.b:* -- why:  ").find("is empty"), std::string::npos);
  EXPECT_NE(faults(" -- why: y").find("error: "), std::string::npos);
  // Every one of them, not the first alone.
  EXPECT_NE(faults("a\nb\n").find("x.rules:2:2"), std::string::npos);
}

bool names(const std::string& rule, const E& event, const S& slot, const std::string& callee = "") {
  LogBuilder log;
  E one = event;
  one.slots = {in(1, "self"), slot};
  log.add({event.boundary, {}, "", 0, event.phase}).add(one);
  if (!callee.empty()) {
    Location at;
    at.callee = callee;
    at.file = "model/a.py";
    log.at(event.boundary, at);
  }
  const auto rules = rules_of(rule + " -- why: test");
  return !RuleMatcher(rules, log.log()).rules_of(log.log().events[1], log.log().slots[1]).empty();
}

TEST(Rules, NameWhatTheSelectionOfACaptureNames) {
  const E e{.boundary = "m.mul:aaaa", .slots = {}};
  for (const char* rule :
       {"m.mul:aaaa", "m.*", "*", "m.mul:aaaa:arg0", "m.mul:*:arg?", "m.mul:aaaa:in", "*:in/arg0",
        "*:in1", "m.mul:aaaa@1", "m.mul:aaaa@*:arg0", "*,kind=op", "*,phase=forward", "*,rank=0",
        "*,step=0", "*,dtype=float32", "*,shape=[4, 8]", "*,shape=[*,8]"})
    EXPECT_TRUE(names(rule, e, in(2))) << rule;
  for (const char* rule : {"m.mul", "m.mul:aaa", "*:out", "*:out0", "*:in0", "*:out/arg0",
                           "m.mul:aaaa@0", "*,kind=node", "*,phase=backward", "*,rank=1",
                           "*,step=1", "*,dtype=float16", "*,shape=[8]", "*,file=*"})
    EXPECT_FALSE(names(rule, e, in(2))) << rule;
  EXPECT_TRUE(names("*,operator=torch.*,file=model/*", e, in(2), "torch.mul"));
  EXPECT_FALSE(names("*,operator=torch.add", e, in(2), "torch.mul"));
  // An optimizer's names have colons as boundaries do.
  const E step{.boundary = "<optimizer.step>", .slots = {}};
  EXPECT_TRUE(names("<optimizer.step>:param:w", step, in(2, "param:w")));
  EXPECT_TRUE(names("<optimizer.step>:param:*", step, in(2, "param:w")));
  EXPECT_FALSE(names("<optimizer.step>:grad:*", step, in(2, "param:w")));
}

}  // namespace
}  // namespace opguard::test
