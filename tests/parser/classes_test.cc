#include "parser/classes.h"

#include "gtest/gtest.h"

namespace opguard {
namespace {

Classes read(const std::string& text) {
  return read_classes(make_source("", "m.py", "/m.py", text));
}

std::vector<std::string> names(const Classes& in) {
  std::vector<std::string> found;
  for (const Class& c : in.classes) found.push_back(c.name);
  return found;
}

// "A.self" of the innermost function around the last place of `mark`, "-" where it is no method.
std::string owner_at(const std::string& text, const std::string& mark = "HERE") {
  const Classes in = read(text);
  const FunctionBody* function = function_around(in, static_cast<uint32_t>(text.rfind(mark)));
  if (!function) return "";
  return function->owner ? in.classes[*function->owner].name + "." + function->receiver : "-";
}

TEST(Classes, BasesAreKeptAsWritten) {
  const Classes in = read(
      "class A(nn.Module, Generic[T],\n        metaclass = Meta, *more): pass\n"
      "class B: pass\nclass C(): pass\n");
  EXPECT_EQ(names(in), (std::vector<std::string>{"A", "B", "C"}));
  EXPECT_EQ(in.classes[0].bases,
            (std::vector<std::string>{"nn.Module", "Generic[T]", "metaclass = Meta", "*more"}));
  EXPECT_TRUE(in.classes[1].bases.empty());
  EXPECT_TRUE(in.classes[2].bases.empty());
}

TEST(Classes, OnlyDefinitionsAreClasses) {
  EXPECT_EQ(
      names(read(
          "s = 'class A: pass'\n# class B: pass\nsubclass = 1\nt = '''\nclass C:\n  x = 1\n'''\n"
          "@register(\"class D(Tensor):\")\nclass E: pass\nif x: class_ = 1\n")),
      std::vector<std::string>{"E"});
  EXPECT_TRUE(read("class A(:\n").classes.empty());
}

TEST(Classes, AMethodIsItsClassesWhereverItStands) {
  EXPECT_EQ(owner_at("class A:\n  def f(self, v):\n    HERE\n"), "A.self");
  EXPECT_EQ(owner_at("class A:\n  class B:\n    def f(this): HERE\n  def g(self): pass\n"),
            "B.this");
  EXPECT_EQ(owner_at("class A:\n  class B:\n    def f(self): pass\n  def g(me): HERE\n"), "A.me");
  EXPECT_EQ(owner_at("class A:\n  if old:\n    def f(self): HERE\n"), "A.self");
  EXPECT_EQ(owner_at("class A:\n  @torch.no_grad()\n  def f(self: T = 1, v=2): HERE\n"), "A.self");
  EXPECT_EQ(owner_at("class A:\n  async def f(self: T): HERE\n"), "A.self");
}

TEST(Classes, WhatHasNoInstanceHasNoReceiver) {
  EXPECT_EQ(owner_at("class A:\n  @staticmethod\n  def f(self): HERE\n"), "A.");
  EXPECT_EQ(owner_at("class A:\n  def f(*self): HERE\n"), "A.");
  EXPECT_EQ(owner_at("class A:\n  def f(): HERE\n"), "A.");
  EXPECT_EQ(owner_at("class A:\n  def f(self):\n    def g(self): HERE\n"), "-");
  EXPECT_EQ(owner_at("def f(self): HERE\n"), "-");
  EXPECT_EQ(owner_at("class A:\n  HERE = 1\n"), "");
}

TEST(Classes, OneNameTwice) {
  const std::string text =
      "if x:\n  class A(B):\n    def f(self): ONE\nelse:\n  class A(C):\n    def f(self): TWO\n";
  const Classes in = read(text);
  ASSERT_EQ(in.classes.size(), 2u);
  for (const auto& [mark, base] : {std::pair("ONE", "B"), std::pair("TWO", "C")}) {
    const FunctionBody* function = function_around(in, static_cast<uint32_t>(text.find(mark)));
    ASSERT_TRUE(function && function->owner);
    EXPECT_EQ(in.classes[*function->owner].bases, std::vector<std::string>{base});
  }
}

// Sites of a probed file stand where they stood without the probes.
TEST(Classes, ProbesAreNotCounted) {
  const std::string head = "class A:\n  def f(self, v): ",
                    between = "\nclass B:\n  def f(self, v): ";
  const std::string line = "from opguard import og  # opguard: probes, isort: skip\n";
  const Classes bare = read(head + "v + 1" + between + "v + 1\n");
  const Classes probed = read(line + head + "og(\"m.add:aaaa\", v) + 1" + between + "v + 1\n");
  EXPECT_EQ(probed.functions, bare.functions);
}

}  // namespace
}  // namespace opguard
