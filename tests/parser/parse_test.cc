#include "parser/parse.h"

#include <gtest/gtest.h>

#include "golden.h"

namespace opguard {
namespace {

std::vector<Site> sites_of(const std::string& text) {
  Diagnostics diags;
  std::vector<Site> sites = parse_sites(make_source("", "a.py", "", text), diags);
  EXPECT_EQ(diags.text(), "");
  return sites;
}

// "callee(operand)" of every site, refusals behind it.
std::vector<std::string> brief(const std::string& text) {
  std::vector<std::string> result;
  for (const Site& s : sites_of(text)) {
    std::string operand = text.substr(s.operand_start, s.operand_end - s.operand_start);
    result.push_back(s.callee + "(" + operand + ")" + (s.refusal.empty() ? "" : " " + s.refusal));
  }
  return result;
}

using Brief = std::vector<std::string>;

std::string errors(const std::string& text) {
  Diagnostics diags;
  EXPECT_TRUE(parse_sites(make_source("", "a.py", "", text), diags).empty());
  return diags.text();
}

class ParserGolden : public testing::TestWithParam<std::string> {};

TEST_P(ParserGolden, Sites) {
  std::string name = "parser/" + GetParam();
  Diagnostics diags;
  std::string out;
  for (const Site& site :
       parse_sites(make_source("", "input.py", "", read_bytes(fixture(name + "/input.py"))), diags))
    out += dump(site) + "\n";
  expect_golden(name + "/expected.sites", out);
  EXPECT_EQ(diags.text(), "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ParserGolden, testing::ValuesIn(fixture_cases("parser")),
                         [](const auto& info) { return info.param; });

TEST(Parser, SitesComeInTheOrderOfEvaluation) {
  EXPECT_EQ(brief("x[i()] = v[j()] = a() + b()\n"),
            (Brief{"a(a)", "b(b)", "+(a())", "i(i)", "[]=(x)", "j(j)", "[]=(v)"}));
  EXPECT_EQ(brief("(a() if c() else b())\n"), (Brief{"c(c)", "a(a)", "b(b)"}));
  EXPECT_EQ(brief("[f(x) for x in g() if h(x)]\n"), (Brief{"g(g)", "iter(g())", "h(h)", "f(f)"}));
  EXPECT_EQ(brief("t[i()] += v()\n"), (Brief{"i(i)", "v(v)", "+=(t)"}));
}

TEST(Parser, AnOperandKeepsItsParentheses) {
  EXPECT_EQ(brief("(a + b) * c\n"), (Brief{"+(a)", "*((a + b))"}));
}

TEST(Parser, WhatIsNotRunAsWrittenIsRefused) {
  EXPECT_EQ(brief("f'{g(x)}'\n"), (Brief{"g(g) inside an f-string"}));
  EXPECT_EQ(brief("super().f(x)\n"),
            (Brief{"super(super) depends on its frame", "super().f(super().f)"}));
  EXPECT_EQ(brief("@d(g())\ndef f(x=h()): pass\n"),
            (Brief{"g(g) decorator", "d(d) decorator", "h(h)"}));
  EXPECT_EQ(brief("a < b < c\n"), (Brief{"<(a) chained comparison"}));
  EXPECT_EQ(brief("class A(B[int], m=f()): pass\n"), (Brief{"[](B) in a class's bases", "f(f)"}));
  EXPECT_EQ(brief("'doc'; f(x)\n"), (Brief{"f(f) before the import line"}));
  for (const char* head : {"@torch.jit.script\n", "@jit\n", "@partial(jax.jit, n=1)\n",
                           "@triton.autotune(c)\n@triton.jit\n"}) {
    Brief all = brief(std::string(head) + "def f(x):\n  return g(x)\n");
    EXPECT_EQ(all.back(), "g(g) in a jit function") << head;
  }
  EXPECT_EQ(brief("def f(x): return -x\nf = torch.jit.script(f)\n").front(),
            "-(x) in a jit function");
  EXPECT_EQ(brief("@torch.compile\ndef f(x): return -x\n"), (Brief{"-(x)"}));
}

TEST(Parser, AnnotationsPatternsAndDeletionsApplyNothing) {
  EXPECT_EQ(brief("def f(x: L[int] = g()) -> D[str, h()]: y: L[int] = x\n"), (Brief{"g(g)"}));
  EXPECT_EQ(brief("type X = L[int]\n"), Brief{});
  EXPECT_EQ(brief("match x:\n  case A(y=-1) if f(y): pass\n"), (Brief{"f(f)"}));
  EXPECT_EQ(brief("del x[f(i)], (y[0])\n"), (Brief{"f(f)"}));
  EXPECT_EQ(brief("x[0]: int\n"), Brief{});
  EXPECT_EQ(brief("a in b, a is not b, not a, a and b, -1, 'x' % y\n"), Brief{});
}

// tree-sitter-python 0.25.0 reads these wrongly without an ERROR node.
TEST(Parser, FaultsOfTheGrammarAreMended) {
  EXPECT_EQ(brief("type(x).attr = v\n"), (Brief{"type(type)"}));
  EXPECT_EQ(brief("[*f(x)[i], *a + b]\n"), (Brief{"f(f)", "[](f(x))", "+(a)"}));
  EXPECT_EQ(brief("print(a, *s.split())\n"), (Brief{"s.split(s.split)", "print(print)"}));
  std::vector<Site> sites = sites_of("[*s.split()]\n");
  EXPECT_EQ(sites[0].start, 2u);
  EXPECT_EQ(brief("await a() ** 2\n"), (Brief{"a(a)", "**(a()) after await"}));
  EXPECT_EQ(brief("a ^ b & c\n"),
            (Brief{"^(a) ^ and & without parentheses", "&(a ^ b) ^ and & without parentheses"}));
  EXPECT_EQ(brief("a & b | c & d\n"), (Brief{"&(a)", "&(c)", "|(a & b)"}));
}

TEST(Parser, OtherEncodingsAreReadByBytes) {
  std::string text = "# -*- coding: latin-1 -*-\n\xe9 = f('\xe9') + \xe8\n";
  EXPECT_EQ(brief(text), (Brief{"f(f)", "+(f('\xe9'))"}));
  EXPECT_EQ(errors("x = '\xe9'\n"),
            "a.py:1:6: error: not UTF-8, and no coding line names another encoding\n"
            "x = '\xef\xbf\xbd'\n     ^\n");
}

TEST(Parser, LineEndingsAndMarks) {
  EXPECT_EQ(brief("# c\rf(x)\rg(x)\r"), (Brief{"f(f)", "g(g)"}));
  EXPECT_EQ(brief("\xef\xbb\xbf"
                  "f(x)\r\ng(x)"),
            (Brief{"f(f)", "g(g)"}));
  EXPECT_EQ(sites_of("\xef\xbb\xbf"
                     "f(x)\r\ng(x)")[0]
                .column,
            0u);
}

TEST(Parser, WhatIsNotPythonIsRefusedAtItsPlace) {
  EXPECT_EQ(errors("x = 1\nprint \"hi\"\n"),
            "a.py:2:1: error: this does not parse as Python 3\nprint \"hi\"\n^~~~~\n");
  EXPECT_EQ(errors("def f(:\n    pass\n"), "a.py:1:7: error: expected ')'\ndef f(:\n      ^\n");
  EXPECT_EQ(errors(std::string("x = 1\n\0", 7)).substr(0, 38),
            "a.py:2:1: error: a null byte is not Py");
  std::string deep(4000, '(');
  EXPECT_NE(errors("x = " + deep + "1" + std::string(4000, ')') + "\n").find("nested too deeply"),
            std::string::npos);
}

TEST(Parser, TheImportLineStandsBehindDocstringAndFuture) {
  auto place = [](const std::string& text) {
    Diagnostics diags;
    return import_place(make_source("", "a.py", "", text), diags).value_or(ImportPlace{});
  };
  EXPECT_EQ(place("import a\n"), (ImportPlace{0, "og", "\n"}));
  EXPECT_EQ(place("#!/bin/sh\n# c\n'''d'''\n\nimport a\n").offset, 23u);
  EXPECT_EQ(place("from __future__ import x\nog, og_1 = 1\n"), (ImportPlace{25, "og_2", "\n"}));
  EXPECT_EQ(place("\xef\xbb\xbf"
                  "a = 1\r\n"),
            (ImportPlace{3, "og", "\r\n"}));
  EXPECT_EQ(place("'d'; import a\nimport b\n").offset, 14u);
  EXPECT_EQ(place("\\\nimport b\n").offset, 0u);
}

}  // namespace
}  // namespace opguard
