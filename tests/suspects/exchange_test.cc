#include "suspects/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "suspects/hunks.h"
#include "suspects/sources.h"

namespace opguard {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

// Two programs, every hunk of which ran.
struct Programs {
  ProgramTexts texts;
  std::vector<Suspect> suspects;

  Programs(const Files& a, const Files& b) {
    texts.sources[0] = test::sources(a);
    texts.sources[1] = test::sources(b);
    const Code code[2] = {Code(texts.sources[0]), Code(texts.sources[1])};
    const auto pairs = pair_files(code[0], code[1], {});
    for (const Hunk& hunk : find_hunks(code[0], code[1], pairs)) {
      Suspect suspect;
      suspect.whole = hunk.whole;
      for (int side : {0, 1})
        if (const auto file = pairs[hunk.pair].file[side]) {
          const SourceFile& source = *code[side].files()[*file].source;
          suspect.sides[side] = {source.package, source.name, source.path, hunk.lines[side], {}};
        }
      suspects.push_back(suspect);
    }
  }

  std::vector<ExchangeGroup> groups() const { return exchange_groups(texts, suspects); }
  // Each group's first part of b, as "file:line".
  std::vector<std::string> firsts() const {
    std::vector<std::string> all;
    for (const ExchangeGroup& group : groups())
      all.push_back(group.parts[0].file[1]->name + ":" + std::to_string(group.parts[0].first[1]));
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST(Exchange, ALineIsGivenBackAlone) {
  const Programs both({{"m.py", "x = 1\ny = 2\nz = 3\n"}}, {{"m.py", "x = 10\ny = 2\nz = 30\n"}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(exchange_text({groups[0]}).at("/tree/m.py"), "x = 1\ny = 2\nz = 30\n");
  EXPECT_EQ(exchange_text({groups[1]}).at("/tree/m.py"), "x = 10\ny = 2\nz = 3\n");
  EXPECT_EQ(exchange_text(groups).at("/tree/m.py"), "x = 1\ny = 2\nz = 3\n");
}

TEST(Exchange, LinesOfOneHunkArePartsWhereEachIsAStatement) {
  EXPECT_EQ(Programs({{"m.py", "x = 1\ny = 2\n"}}, {{"m.py", "x = 10\ny = 20\n"}}).firsts(),
            (std::vector<std::string>{"m.py:1", "m.py:2"}));
  // One call over two lines is one.
  EXPECT_EQ(Programs({{"m.py", "f(1,\n  2)\n"}}, {{"m.py", "f(10,\n  20)\n"}}).firsts(),
            (std::vector<std::string>{"m.py:1"}));
}

TEST(Exchange, AHunkIsCutWhereStatementsStandForOneAnother) {
  const Programs both(
      {{"m.py", "def f(x, n):\n  x = x.view(-1, 1)\n  return full((x.size()[0], n))\n"}},
      {{"m.py", "def f(x, n):\n  x = x.view(1, -1)\n  y = full((x.size()[0], n))\n  return y\n"}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 2u);
  for (const ExchangeGroup& group : groups) {
    const uint32_t first = group.parts[0].first[1];
    EXPECT_EQ(exchange_text({group}).at("/tree/m.py"),
              first == 2
                  ? "def f(x, n):\n  x = x.view(-1, 1)\n  y = full((x.size()[0], n))\n  return y\n"
                  : "def f(x, n):\n  x = x.view(1, -1)\n  return full((x.size()[0], n))\n");
  }
  EXPECT_EQ(exchange_text(groups).at("/tree/m.py"), both.texts.sources[0].files[0].text);
}

TEST(Exchange, LinesOfOneSideBeforeAnAlikeOneComeBackBeforeIt) {
  const Programs both({{"m.py", "p = 1\nq = 2\nvalue = f(left, right, 1)\n"}},
                      {{"m.py", "value = f(left, right, 2)\n"}});
  EXPECT_EQ(exchange_text(both.groups()).at("/tree/m.py"), both.texts.sources[0].files[0].text);
}

// The first line is the other in other words, the second stands for nothing of b's: two parts.
TEST(Exchange, WhatFollowsAnAlikeStatementIsAPartOfItsOwn) {
  const Programs both({{"m.py", "def f(q, k):\n  e = k * cos + half(k)\n  return q, e\n"}},
                      {{"m.py",
                        "def f(q, k):\n  e = mul(k, cos) + half(k)\n  r = (q, k)\n"
                        "  return r\n"}});
  EXPECT_EQ(both.firsts(), (std::vector<std::string>{"m.py:2", "m.py:3"}));
  // One that was measured and agrees is the less likely.
  Programs measured = both;
  ASSERT_EQ(measured.suspects.size(), 1u);
  for (int side : {0, 1}) measured.suspects[0].statements[side].push_back({{2, 2}, true});
  measured.suspects[0].statements[0].push_back({{3, 3}, false});
  EXPECT_EQ(measured.groups()[0].parts[0].first[1], 3u);
}

TEST(Exchange, InsertionsAndDeletionsKeepTheirPlace) {
  const Programs both({{"m.py", "a = 1\nb = 2\nc = 3\n"}}, {{"m.py", "a = 1\nc = 3\nd = 4\n"}});
  EXPECT_EQ(exchange_text(both.groups()).at("/tree/m.py"), "a = 1\nb = 2\nc = 3\n");
}

TEST(Exchange, ANameOfOneProgramGoesWithItsDefinition) {
  const std::string plain = "def f(x):\n  return x * 2\n\ny = 1\nz = 2\n";
  const std::string helped =
      "def _h(x):\n  return x * 2\n\ndef f(x):\n  return _h(x)\n\ny = 1\nz = 3\n";
  EXPECT_EQ(Programs({{"m.py", plain}}, {{"m.py", helped}}).groups().size(), 2u);
  EXPECT_EQ(Programs({{"m.py", helped}}, {{"m.py", plain}}).groups().size(), 2u);
  // In another file.
  const Programs apart({{"m.py", "from n import g\ny = 2\n"}, {"n.py", "def g():\n  pass\n"}},
                       {{"m.py", "from n import g, _h\ny = _h()\n"},
                        {"n.py", "def g():\n  pass\n\ndef _h():\n  return 2\n"}});
  EXPECT_EQ(apart.groups().size(), 1u);
}

// `total` is another function's as well: that does not give it to this one.
TEST(Exchange, ALocalNameOfOneProgramGoesWithItsUses) {
  const std::string other = "def f(x):\n    total = x\n    return total\n\n\n";
  const Programs both(
      {{"m.py",
        other + "def g(x, y):\n    total = x + y\n    z = 1\n    print(z)\n    return total\n"}},
      {{"m.py", other + "def g(x, y):\n    z = 2\n    print(z)\n    return x + y\n"}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 2u);
  for (const ExchangeGroup& group : groups) {
    const std::string text = exchange_text({group}).at("/tree/m.py");
    EXPECT_EQ(text.find("return total", other.size()) == text.npos,
              text.find("total = x + y") == text.npos)
        << text;
  }
}

// `self.width` is no `width`: the function of a has no such variable.
TEST(Exchange, AnAttributeIsNoLocalName) {
  const std::string before = "class Net:\n    def __init__(self, x";
  const Programs both(
      {{"m.py", before + "):\n        make(x)\n        use(self.width)\n"}},
      {{"m.py", before + ", width):\n        make(x, width)\n        use(self.width)\n"}});
  EXPECT_EQ(both.groups().size(), 1u);
}

// `head` is a variable of a's as well: that does not give a's class the attribute.
TEST(Exchange, AnAttributeOfOneProgramGoesWithItsUses) {
  const std::string a =
      "class Net:\n    def __init__(self, n):\n        head = make(n)\n        self.heads = "
      "[head]\n\n"
      "    def forward(self, x):\n        y = 1\n        print(y)\n        return "
      "self.heads[0](x)\n";
  const std::string b =
      "class Net:\n    def __init__(self, n):\n        self.head = make(n)\n\n"
      "    def forward(self, x):\n        y = 2\n        print(y)\n        return self.head(x)\n";
  const Programs both({{"m.py", a}}, {{"m.py", b}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 2u);
  for (const ExchangeGroup& group : groups) {
    const std::string text = exchange_text({group}).at("/tree/m.py");
    EXPECT_EQ(text.find("self.heads = ") == text.npos, text.find("self.heads[0]") == text.npos)
        << text;
  }
  // A method that moved to another module is no attribute any more.
  const Programs moved(
      {{"m.py",
        "import n\nclass Net:\n    def f(self, x):\n        return self.drop(x)\n\n"
        "    def drop(self, x):\n        return x\n"},
       {"n.py", "def keep(x):\n    return x\n"}},
      {{"m.py", "import n\nclass Net:\n    def f(self, x):\n        return n.drop(x)\n"},
       {"n.py", "def keep(x):\n    return x\n\n\ndef drop(x):\n    return x\n"}});
  ASSERT_EQ(moved.groups().size(), 1u);
  const std::string text = exchange_text(moved.groups()).at("/tree/m.py");
  EXPECT_EQ(text, moved.texts.sources[0].files[0].text);
}

// The call fits a's parameters alone; `g` takes what both programs give.
TEST(Exchange, ACallGoesWithTheParametersItIsGivenTo) {
  const std::string a =
      "def f(n, x, y=None):\n    return n * x\n\n\ndef g(x, y=None):\n    return x\n\n\nu = f(2, "
      "3)\nv = g(4)\n";
  const std::string b =
      "def f(x, y=None):\n    return n * x\n\n\ndef g(x, y=None, z=0):\n    return x\n\n\nu = "
      "f(3)\nv = g(5)\n";
  const Programs both({{"m.py", a}}, {{"m.py", b}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 3u);
  for (const ExchangeGroup& group : groups) {
    const std::string text = exchange_text({group}).at("/tree/m.py");
    EXPECT_EQ(text.find("def f(n, x") == text.npos, text.find("u = f(2, 3)") == text.npos) << text;
  }
}

TEST(Exchange, AKeywordGoesWithTheConstructorThatTakesIt) {
  const std::string base = "class Base:\n    def __init__(self, x",
                    derived =
                        "from m import Base\n\n\nclass Net(Base):\n    def __init__(self, x):\n    "
                        "    super().__init__(\n            x,\n";
  const Programs both(
      {{"m.py", base + "):\n        self.x = x\n"}, {"n.py", derived + "        )\n"}},
      {{"m.py", base + ", steps=1):\n        self.x = x\n"},
       {"n.py", derived + "            steps=2,\n        )\n"}});
  EXPECT_EQ(both.groups().size(), 1u);
}

// What stays in b may need it (an annotation, a file of b alone), and to have it changes nothing.
TEST(Exchange, AFunctionThatOneProgramAddsStays) {
  const std::string plain = "def f(x):\n    return x\n";
  const Programs both({{"m.py", plain + "\n\ny = f(1)\n"}},
                      {{"m.py", plain + "\n\ndef g(x):\n    return x\n\n\ny = f(2)\n"}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 1u);
  const std::string text = exchange_text(groups).at("/tree/m.py");
  EXPECT_NE(text.find("def g"), text.npos);
  EXPECT_NE(text.find("y = f(1)"), text.npos);
  // Among other lines as well.
  const Programs among({{"m.py", plain + "\n\ny = 1\n"}},
                       {{"m.py", plain + "\n\nx = 3\n\n\ndef g(x):\n    return x\n\n\ny = 2\n"}});
  const std::string back = exchange_text(among.groups()).at("/tree/m.py");
  EXPECT_EQ(back.find("x = 3"), back.npos);
  EXPECT_NE(back.find("def g"), back.npos);
  EXPECT_NE(back.find("y = 1"), back.npos);
  // A decorator may do something with it.
  EXPECT_EQ(Programs({{"m.py", plain}}, {{"m.py", plain + "\n\n@f\ndef g(x):\n    return x\n"}})
                .groups()
                .size(),
            1u);
}

TEST(Exchange, HelpersOfOneNameInTwoFilesAreApart) {
  const std::string plain = "def f(x):\n  return x * 2\n";
  const std::string helped = "def _h(x):\n  return x * 2\n\ndef f(x):\n  return _h(x)\n";
  const Programs both({{"m.py", plain}, {"n.py", plain}}, {{"m.py", helped}, {"n.py", helped}});
  EXPECT_EQ(both.groups().size(), 2u);
}

TEST(Exchange, AStatementThatMovedGoesWithItsOldPlace) {
  const Programs both({{"m.py", "a = p()\nb = q()\nc = r()\nd = a\n"}},
                      {{"m.py", "b = q()\nc = r()\na = p()\nd = a\n"}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(exchange_text(groups).at("/tree/m.py"), "a = p()\nb = q()\nc = r()\nd = a\n");
}

// In one place alone the call has `key` twice, or not at all. Two arguments that b adds are apart.
TEST(Exchange, AnArgumentThatMovedGoesWithItsOldPlace) {
  const Programs moved({{"m.py", "y = f(\n    query,\n    key,\n    value,\n    mask,\n)\n"}},
                       {{"m.py", "y = f(\n    query,\n    value,\n    key,\n    mask,\n)\n"}});
  const auto groups = moved.groups();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].parts.size(), 2u);
  EXPECT_EQ(exchange_text(groups).at("/tree/m.py"), moved.texts.sources[0].files[0].text);
  const Programs turned({{"m.py", "y = f(\n    key,\n    x,\n    value,\n)\n"}},
                        {{"m.py", "y = f(\n    value,\n    x,\n    key,\n)\n"}});
  EXPECT_EQ(turned.groups().size(), 1u);
  const Programs added({{"m.py", "y = f(\n    x,\n    p=1,\n    z=2,\n)\n"}},
                       {{"m.py", "y = f(\n    u=1,\n    x,\n    p=1,\n    v=2,\n    z=2,\n)\n"}});
  EXPECT_EQ(added.groups().size(), 2u);
  const Programs other({{"m.py", "y = f(\n    x,\n    p=1,\n    q,\n    z=2,\n)\n"}},
                       {{"m.py", "y = f(\n    x,\n    p=3,\n    q,\n    z=4,\n)\n"}});
  EXPECT_EQ(other.groups().size(), 2u);
}

TEST(Exchange, OtherNumbersAndOperatorsAreLikelierThanOtherNames) {
  const std::string a = "def f(x, y):\n  return x + y\n\nif a <= 1:\n  pass\n";
  const std::string b = "def f(x, y):\n  s = x + y\n  return s\n\nif a < 1:\n  pass\n";
  const Programs both({{"m.py", a}}, {{"m.py", b}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].parts[0].first[1], 5u);
  EXPECT_GT(groups[0].likelihood, groups[1].likelihood);
}

// What b alone calls is no other name for something, wherever else it stands.
TEST(Exchange, AnotherMethodIsNoRename) {
  const std::string a = "def f(x):\n  return x.cos()\n\ndef g(x):\n  return relu(x)\n";
  const std::string b = "def f(x):\n  return x.cos().float()\n\ndef g(x):\n  return tanh(x)\n";
  for (const ExchangeGroup& group : Programs({{"m.py", a}}, {{"m.py", b}}).groups())
    EXPECT_FALSE(group.reworded);
}

// `bias` is b's own here, as a parameter of another function and a comment are in both.
TEST(Exchange, ANameOfAnotherFunctionIsAnotherName) {
  auto program = [](const std::string& body, const std::string& number) {
    return "def g(bias):\n  return bias\n\ndef f(\n  x,\n):\n  # adds the bias\n" + body +
           "\nz = " + number + "\n";
  };
  const auto groups = Programs({{"m.py", program("  return x + 1\n", "2")}},
                               {{"m.py", program("  bias = x + 1\n  return bias\n", "3")}})
                          .groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(groups[1].reworded);
  EXPECT_EQ(groups[1].parts[0].first[1], 8u);
  EXPECT_FALSE(groups[0].reworded);
}

// All of f calls `h` otherwise. What is left is one line, and a's text of it in b's names.
TEST(Exchange, ARenamedVariableIsNoDifference) {
  auto program = [](const std::string& name, const std::string& sum) {
    return "def g(h):\n  return h\n\ndef f(x, bias):\n  " + name + " = norm(x)\n  " + name + " = " +
           sum + "\n  for i in x:\n    " + name + " = mul(" + name + ", h=" + name +
           ".h)\n  return [" + name + " for _ in x]\n";
  };
  const Programs both({{"m.py", program("h", "h + bias")}},
                      {{"m.py", program("renamed", "renamed")}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].parts.size(), 1u);
  EXPECT_EQ(groups[0].parts[0].first[1], 6u);
  EXPECT_EQ(exchange_text(groups).at("/tree/m.py"), program("renamed", "renamed + bias"));
  EXPECT_FALSE(groups[0].reworded);
  const Programs alike({{"m.py", program("h", "h * bias")}},
                       {{"m.py", program("renamed", "renamed * bias")}});
  EXPECT_TRUE(alike.groups().empty());
}

// Others know a parameter, an attribute, a function and a module's name by what they are called.
// Two of a's variables are not one of b's. A name that b has besides is another variable. Here
// `hid` became `h`, and is the name of an argument as well; another file has that name.
TEST(Exchange, ARenamedVariableThatIsAKeywordAsWell) {
  const Programs both({{"m.py", "def g(x):\n    hid = f(x)\n    return f(hid, hid=hid, n=1)\n"},
                       {"n.py", "def k(x):\n    return p(x, hid)\n"}},
                      {{"m.py", "def g(x):\n    h = f(x)\n    return f(h, h=h, n=2)\n"},
                       {"n.py", "def k(x):\n    return p(x)\n"}});
  for (const ExchangeGroup& group : both.groups()) EXPECT_FALSE(exchange_text({group}).empty());
  EXPECT_GE(both.groups().size(), 1u);
}

TEST(Exchange, WhatOthersNameIsNotRenamed) {
  const std::pair<std::string, std::string> pairs[] = {
      {"def f(x):\n  return x + 1\n", "def f(y):\n  return y + 1\n"},
      {"class C:\n  x = 1\n  def f(self):\n    return self.x\n",
       "class C:\n  y = 1\n  def f(self):\n    return self.y\n"},
      {"def f(x):\n  return relu(x)\n", "def f(x):\n  return tanh(x)\n"},
      {"def f(x):\n  p = x\n  q = 2\n  return p + q\n",
       "def f(x):\n  r = x\n  r = 2\n  return r + r\n"},
      {"def f(x):\n  p = x\n  q = 2\n  return p + q\n",
       "def f(x):\n  r = x\n  q = 2\n  p = 3\n  return r + q\n"},
  };
  for (const auto& [a, b] : pairs) {
    const Programs both({{"m.py", a}}, {{"m.py", b}});
    const auto groups = both.groups();
    ASSERT_FALSE(groups.empty()) << a;
    for (const ExchangeGroup& group : groups)
      for (const ExchangePart& part : group.parts) EXPECT_FALSE(part.given) << a;
    EXPECT_EQ(exchange_text(groups).at("/tree/m.py"), a);
  }
}

// Annotations compute nothing, and what b imports is had beside what a's line needs.
TEST(Exchange, ImportsAreHadFromBothPrograms) {
  const std::string a =
      "from typing import Optional, Union\nfrom m import (\n    f,\n    g,\n)\n\n\n"
      "def h(x: Optional[int] = None, y: int = 1) -> Optional[int]:\n  z = g(x)\n  return f(z)\n";
  const std::string b =
      "from typing import ClassVar\nfrom m import (\n    f,\n    k,\n)\n\n\n"
      "def h(x: int | None = None, y: int = 2) -> int | None:\n  z = k(x)\n  return f(z)\n";
  const Programs both({{"m.py", a}}, {{"m.py", b}});
  const auto groups = both.groups();
  ASSERT_EQ(groups.size(), 2u);
  for (const ExchangeGroup& group : groups) {
    const std::string text = exchange_text({group}).at("/tree/m.py");
    EXPECT_TRUE(
        text.starts_with("from typing import Optional, Union\nfrom typing import ClassVar\n"
                         "from m import (\n    f,\n    g,\n    k,\n)\n"))
        << text;
    EXPECT_NE(text.find("y: int = 1") == text.npos, text.find("z = g(x)") == text.npos) << text;
  }
  const Programs annotated({{"m.py", "def f(x: int) -> int:\n  y: int = x\n  return y\n"}},
                           {{"m.py", "def f(x):\n  y = x\n  return y\n"}});
  EXPECT_TRUE(annotated.suspects.empty());
  EXPECT_TRUE(annotated.groups().empty());
  // One name from two modules: which is meant may be the cause. A field of a class is more than an
  // annotation.
  const Programs other({{"m.py", "from m import f\nx = f(1)\n"}},
                       {{"m.py", "from n import f\nx = f(1)\n"}});
  const auto either = other.groups();
  ASSERT_EQ(either.size(), 1u);
  EXPECT_EQ(exchange_text(either).at("/tree/m.py"), "from n import f\nfrom m import f\nx = f(1)\n");
  const Programs beside({{"m.py", "from m import f, g\nx = g(1)\n"}},
                        {{"m.py", "from n import f\nx = f(1)\n"}});
  for (const ExchangeGroup& group : beside.groups())
    if (group.parts[0].first[1] == 2) {
      EXPECT_EQ(exchange_text({group}).at("/tree/m.py"),
                "from m import f, g\nfrom n import f\nx = g(1)\n");
    }
  EXPECT_EQ(beside.groups().size(), 2u);
  const Programs field({{"m.py", "class C:\n  x: int\n"}}, {{"m.py", "class C:\n  x: float\n"}});
  EXPECT_EQ(field.groups().size(), 1u);
}

TEST(Exchange, AFileOfOneSideIsLeftOut) {
  EXPECT_TRUE(
      Programs({{"m.py", "x = 1\n"}}, {{"m.py", "x = 1\n"}, {"n.py", "y = 1\n"}}).groups().empty());
}

}  // namespace
}  // namespace opguard
