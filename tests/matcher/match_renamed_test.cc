// Sites whose functions, classes, variables or files have another name.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "matcher/matched.h"

namespace opguard {
namespace {

TEST(Match, FollowsARenamedFunctionToAnotherFile) {
  Places m = match({{"a.py", kAttention}, {"b.py", "g(1)\n"}},
                   {{"b.py", std::string("g(1)\n") + "def forward_impl" + (kAttention + 11)}});
  EXPECT_EQ(m["torch.softmax(s, dim=-1) @5"], "b.py:6 torch.softmax(s, dim=-1)");
  EXPECT_EQ(m["self.q(x) @2"], "b.py:3 self.q(x)");
}

TEST(Match, ARenamedVariableIsFollowed) {
  Places m = match({{"a.py",
                     "def f(self, xs):\n    for layer in self.layers:\n        h = layer(xs, 1)\n"
                     "        h = norm(h)\n    return out(h)\n"}},
                   {{"a.py",
                     "def f(self, xs):\n    for block in self.layers:\n        log('x')\n"
                     "        hidden = block(xs, 1)\n        hidden = norm(hidden)\n"
                     "    return out(hidden)\n"}});
  EXPECT_EQ(m["layer(xs, 1) @3"], "a.py:4 block(xs, 1)");
  EXPECT_EQ(m["norm(h) @4"], "a.py:5 norm(hidden)");
  EXPECT_EQ(m["out(h) @5"], "a.py:6 out(hidden)");
}

TEST(Match, AWrapperThatTakesTheNameIsNotIt) {
  // The new pool() repeats two statements of the old one, which it calls by its new name.
  const std::string inner = std::string("def _pool_impl") + (kPool + 8);
  const std::string wrapper =
      "def pool(x, mask):\n"
      "    w = torch.softmax(mask, dim=-1)\n"
      "    y = torch.matmul(w, x)\n"
      "    return _pool_impl(x, mask)\n";
  Places m = match({{"a.py", kPool}}, {{"a.py", inner + wrapper}});
  EXPECT_EQ(m["torch.softmax(mask, dim=-1) @2"], "a.py:2 torch.softmax(mask, dim=-1)");
  EXPECT_EQ(m["torch.matmul(w, x) @3"], "a.py:3 torch.matmul(w, x)");
  EXPECT_EQ(m["y.sum(0) @5"], "a.py:5 y.sum(0)");
  // In a file of its own, which no boundary was in.
  m = match({{"a.py", kPool}}, {{"a.py", wrapper}, {"b.py", inner}});
  EXPECT_EQ(m["torch.matmul(w, x) @3"], "b.py:3 torch.matmul(w, x)");
}

TEST(Match, AWrapperOfAWrapperIsNotIt) {
  const std::string outer =
      "def pool(x, mask):\n"
      "    w = torch.softmax(mask, dim=-1)\n"
      "    return _pool_checked(x, mask)\n"
      "def _pool_checked(x, mask):\n"
      "    w = torch.softmax(mask, dim=-1)\n"
      "    y = torch.matmul(w, x)\n"
      "    y = self_norm(y)\n"
      "    return _pool_impl(x, mask)\n";
  Places m = match({{"a.py", kPool}}, {{"a.py", outer + "def _pool_impl" + (kPool + 8)}});
  EXPECT_EQ(m["torch.softmax(mask, dim=-1) @2"], "a.py:10 torch.softmax(mask, dim=-1)");
  EXPECT_EQ(m["y.sum(0) @5"], "a.py:13 y.sum(0)");
}

TEST(Match, ARenamedMethodIsFollowedToItsCallers) {
  auto text = [](const std::string& name) {
    return "class A:\n    def " + name +
           "(self, x):\n        return torch.tanh(x) + torch.exp(x)\n" +
           "    def forward(self, x):\n        return self." + name + "(x)\n";
  };
  Places m = match({{"a.py", text("squash")}}, {{"a.py", text("activation")}});
  EXPECT_EQ(m["torch.tanh(x) @3"], "a.py:3 torch.tanh(x)");
  EXPECT_EQ(m["self.squash(x) @5"], "a.py:5 self.activation(x)");
}

TEST(Match, CallersOfExchangedFunctionsAreThemselves) {
  // to_hls and to_rgb exchange names; what calls them is renamed with them and is what it was.
  auto text = [](const std::string& a, const std::string& b) {
    return "def " + a + "(x):\n    return torch.tanh(x).sum()\n" +  //
           "def " + b + "(x):\n    return torch.exp(x).mean()\n" +
           "class First:\n    def forward(self, x):\n        return " + a + "(x)\n" +
           "class Second:\n    def forward(self, x):\n        return " + b + "(x)\n";
  };
  Places m = match({{"a.py", text("to_hls", "to_rgb")}}, {{"a.py", text("to_rgb", "to_hls")}});
  EXPECT_EQ(m["torch.tanh(x) @2"], "a.py:2 torch.tanh(x)");
  EXPECT_EQ(m["to_hls(x) @7"], "a.py:7 to_rgb(x)");
  EXPECT_EQ(m["to_rgb(x) @10"], "a.py:10 to_hls(x)");
}

TEST(Match, ACopyUnderAnotherNameIsNotIt) {
  // The copy is as it was, the one that kept the name was edited; nobody calls the copy from it.
  const std::string copy = std::string("def old_pool") + (kPool + 8);
  const std::string edited =
      "def pool(x, mask):\n"
      "    w = torch.softmax(mask, dim=-1)\n"
      "    print(w.shape)\n"
      "    y = torch.matmul(w, x)\n"
      "    y = other_norm(y)\n"
      "    return y.sum(0)\n";
  Places m = match({{"a.py", kPool}}, {{"a.py", copy + edited}});
  EXPECT_EQ(m["torch.softmax(mask, dim=-1) @2"], "a.py:7 torch.softmax(mask, dim=-1)");
  EXPECT_EQ(m["torch.matmul(w, x) @3"], "a.py:9 torch.matmul(w, x)");
}

TEST(Match, ClassesThatExchangeNamesKeepTheirSites) {
  // Two like classes; what is equal in both goes with its class.
  auto linear = [](const std::string& name, const std::string& gather) {
    return "class " + name + ":\n    def forward(self, x):\n        y = F.linear(x, self.w)\n" +
           "        y = " + gather + "(y)\n        return self.bias(y)\n";
  };
  Places m = match({{"a.py", linear("Column", "all_gather") + linear("Row", "all_reduce")}},
                   {{"a.py", linear("Row", "all_gather") + linear("Column", "all_reduce")}});
  EXPECT_EQ(m["all_gather(y) @4"], "a.py:4 all_gather(y)");
  EXPECT_EQ(m["F.linear(x, self.w) @3"], "a.py:3 F.linear(x, self.w)");
  EXPECT_EQ(m["all_reduce(y) @9"], "a.py:9 all_reduce(y)");
  EXPECT_EQ(m["self.bias(y) @10"], "a.py:10 self.bias(y)");
}

TEST(Match, AClassAndItsFileRenamed) {
  auto text = [](const std::string& name) {
    return "class " + name +
           "Block:\n    def __init__(self):\n        self.a = nn.Linear(4, 8)\n"
           "    def forward(self, x):\n        return torch.tanh(self.a(x))\n"
           "class " +
           name + "Model:\n    def __init__(self):\n        self.b = " + name + "Block()\n";
  };
  Places m = match({{"llama.py", text("Llama")}}, {{"alpaca.py", text("Alpaca")}});
  EXPECT_EQ(m["nn.Linear(4, 8) @3"], "alpaca.py:3 nn.Linear(4, 8)");
  EXPECT_EQ(m["torch.tanh(self.a(x)) @5"], "alpaca.py:5 torch.tanh(self.a(x))");
  EXPECT_EQ(m["LlamaBlock() @8"], "alpaca.py:8 AlpacaBlock()");
}

}  // namespace
}  // namespace opguard
