#include "parser/parse.h"
#include "parser/import_line.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  EXPECT_EQ(brief("(a() if c() else b())\n"), (Brief{"c(c)", "bool(c())", "a(a)", "b(b)"}));
  EXPECT_EQ(brief("[f(x) for x in g() if h(x)]\n"),
            (Brief{"g(g)", "iter(g())", "h(h)", "bool(h(x))", "f(f)"}));
  EXPECT_EQ(brief("t[i()] += v()\n"), (Brief{"i(i)", "v(v)", "+=(t)"}));
}

// What is tested is wrapped, not what combines tests; literals and `in`, `is` have nothing to test.
TEST(Parser, TruthOfEveryTest) {
  EXPECT_EQ(brief("if a and not (b or c): pass\n"), (Brief{"bool(a)", "bool(b)", "bool(c)"}));
  EXPECT_EQ(brief("while (a if b else c): pass\n"), (Brief{"bool(b)", "bool(a)", "bool(c)"}));
  EXPECT_EQ(brief("assert(a), m()\n"), (Brief{"bool(a)", "m(m)"}));
  EXPECT_EQ(brief("if n := f(): pass\nelif not x is y: pass\nelif True: pass\n"),
            (Brief{"f(f)", "bool(n := f())"}));
  EXPECT_EQ(brief("x = not (a and b)\n"), (Brief{"bool(a and b)"}));
  EXPECT_EQ(brief("x = a and not b\n"), (Brief{"bool(b)"}));
  EXPECT_EQ(brief("x = not(a)\n"), (Brief{"bool(a)"}));
}

TEST(Parser, AttributesContextsAndAwaits) {
  EXPECT_EQ(brief("a.b.c = d.e.f(g.h)\n"),
            (Brief{".e(d)", ".h(g)", "d.e.f(d.e.f)", ".b(a)", ".c=(a.b)"}));
  EXPECT_EQ(brief("for self.x in y: pass\n"), (Brief{"iter(y)", ".x=(self)"}));
  EXPECT_EQ(brief("self.x: T = v\n"), (Brief{".x=(self)"}));
  EXPECT_EQ(brief("with a() as b.c, (d): pass\n"),
            (Brief{"a(a)", "with(a())", ".c=(b)", "with(d)"}));
  EXPECT_EQ(brief("async with a as b: await(c)\n"), (Brief{"with(a)", "await(c)"}));
  EXPECT_EQ(brief("async for a in b: pass\n"), (Brief{"iter(b)"}));
  EXPECT_EQ(brief("a, (b, c) = [d, e] = t\n"), (Brief{"unpack(t)"}));
  EXPECT_EQ(brief("a, b = b, a\n"), Brief{});
  EXPECT_EQ(brief("a not in b.c\n"), (Brief{".c(b)", "in(b.c)"}));
  EXPECT_EQ(brief("pass\nf'{a!r:>{b.c}} {\"x\"}'\n"), (Brief{".c(b)", "format(b.c)", "format(a)"}));
}

TEST(Parser, AnOperandKeepsItsParentheses) {
  EXPECT_EQ(brief("(a + b) * c\n"), (Brief{"+(a)", "*((a + b))"}));
}

TEST(Parser, WhatIsNotRunAsWrittenIsRefused) {
  EXPECT_EQ(brief("super().f(x)\n"),
            (Brief{"super(super) depends on its frame", "super().f(super().f)"}));
  EXPECT_EQ(brief("@d(g())\ndef f(x=h()): pass\n"), (Brief{"g(g)", "d(d)", "h(h)", "@d(d(g()))"}));
  EXPECT_EQ(brief("a < b in c\n"),
            (Brief{"<(a) chained with in or is", "in(b) chained with in or is"}));
  EXPECT_EQ(brief("x = f'{a=} {b, c} {f\"{d}\"}'\n")[0], "format(a) its text is printed");
  EXPECT_EQ(brief("pass\nx = f'{b, c}'\n"), (Brief{"format(b, c) a tuple without parentheses"}));
  EXPECT_EQ(brief("pass\nx = f'{f\"{d}\"}'\n"),
            (Brief{"format(d) inside f-strings of both quotes"}));
  EXPECT_EQ(brief("if a < b < c: pass\n").back(), "bool(a < b < c) chained comparison");
  EXPECT_EQ(brief("x = a, b = t\n"), (Brief{"unpack(t) its value is kept, too"}));
  EXPECT_EQ(brief("x.iadd\n"), (Brief{".iadd(x) a probe has an attribute of this name"}));
  EXPECT_EQ(brief("return[1][0]\n"), (Brief{"[]([1]) no blank before it"}));
  EXPECT_EQ(brief("class A(B[int], m=f()): pass\n"), (Brief{"[](B) in a class's bases", "f(f)"}));
  EXPECT_EQ(brief("'doc'; f(x)\n"), (Brief{"f(f) before the import line"}));
  for (const char* head : {"@torch.jit.script\n", "@jit\n", "@partial(jax.jit, n=1)\n",
                           "@triton.autotune(c)\n@triton.jit\n"}) {
    Brief all = brief(std::string(head) + "def f(x):\n  return g(x)\n");
    EXPECT_NE(std::find(all.begin(), all.end(), "g(g) in a jit function"), all.end()) << head;
  }
  EXPECT_EQ(brief("def f(x): return -x\nf = torch.jit.script(f)\n").front(),
            "-(x) in a jit function");
  EXPECT_EQ(brief("@torch.compile\ndef f(x): return -x\n"),
            (Brief{"-(x)", "@torch.compile(torch.compile)"}));
}

TEST(Parser, AnnotationsPatternsAndDeletionsApplyNothing) {
  EXPECT_EQ(brief("def f(x: L[int] = g()) -> D[str, h()]: y: L[int] = x\n"), (Brief{"g(g)"}));
  EXPECT_EQ(brief("type X = L[int]\n"), Brief{});
  EXPECT_EQ(brief("match x:\n  case A(y=-1) if f(y): pass\n"), (Brief{"f(f)", "bool(f(y))"}));
  EXPECT_EQ(brief("del x[f(i)], (y[0])\n"), (Brief{"f(f)"}));
  EXPECT_EQ(brief("x[0]: int\n"), Brief{});
  EXPECT_EQ(brief("del x.a, x.b.c\n"), (Brief{".b(x)"}));
  EXPECT_EQ(brief("a is not b, a and b, -1, 'x' % y, a in 'x'\n"), Brief{});
}

// tree-sitter-python 0.25.0 reads these wrongly without an ERROR node.
TEST(Parser, FaultsOfTheGrammarAreMended) {
  EXPECT_EQ(brief("type(x).attr = v\n"), (Brief{"type(type)", ".attr=(type(x))"}));
  EXPECT_EQ(brief("[*f(x)[i], *a + b]\n"),
            (Brief{"f(f)", "[](f(x))", "unpack(f(x)[i])", "+(a)", "unpack(a + b)"}));
  EXPECT_EQ(brief("print(a, *s.split())\n"),
            (Brief{"s.split(s.split)", "unpack(s.split())", "print(print)"}));
  std::vector<Site> sites = sites_of("[*s.split()]\n");
  EXPECT_EQ(sites[0].start, 2u);
  EXPECT_EQ(brief("await a() ** 2\n"),
            (Brief{"a(a)", "**(a()) after await", "await(a() ** 2) after await"}));
  EXPECT_EQ(brief("a ^ b & c\n"),
            (Brief{"^(a) ^ and & without parentheses", "&(a ^ b) ^ and & without parentheses"}));
  EXPECT_EQ(brief("a & b | c & d\n"), (Brief{"&(a)", "&(c)", "|(a & b)"}));
}

TEST(Parser, OtherEncodingsAreReadByBytes) {
  std::string text = "# -*- coding: latin-1 -*-\n\xe9 = f('\xe9') + \xe8\n";
  EXPECT_EQ(brief(text), (Brief{"f(f)", "+(f('\xe9'))"}));
  EXPECT_EQ(errors("x = '\xe9'\n"),
            "a.py:1:6: error: not UTF-8, and no coding line names another encoding\n"
            "x = '\\xe9'\n     ^\n");
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

// An error that spans half a file is reported where it begins inside.
TEST(Parser, AFaultIsNamedByItsOwnPlace) {
  auto place = [](const std::string& text) {
    std::string all = errors(text);
    return all.substr(0, all.find(" error"));
  };
  EXPECT_EQ(place("import a\nclass C:\n    def f(self):\n        x = (1,\n        y = 2\n"),
            "a.py:4:11:");
  EXPECT_EQ(place("import os\n\n\nfoo(\n"), "a.py:4:1:");
  EXPECT_EQ(place("import os\n\n\ndef f():\n    return (\n\nclass D:\n    pass\n"), "a.py:5:5:");
}

TEST(Parser, ALineInBracketsMayBeIndentedLessThanItsBlock) {
  EXPECT_EQ(brief("def f():\n    (bar.\nbaz(\n))\n"), (Brief{"bar.baz(bar.\nbaz)"}));
  EXPECT_EQ(brief("if x:\n    g(a +  # g(\nb, f'{h(1):{w}\"}', '''\n)''', *\\\n[c])\n"),
            (Brief{"bool(x)", "+(a)", "h(h)", "format(w)", "format(h(1))", "unpack([c])", "g(g)"}));
  EXPECT_EQ(brief("def f():\n  x = {'(':\nf(rf'\\{g(1)}\\N{{', f'\\N{DASH}' '\\'')}\n"),
            (Brief{"g(g)", "format(g(1))", "f(f)"}));
  // A fault of the text's own stays one, at its own place.
  EXPECT_EQ(errors("def f():\n    (a +\nb))\n").substr(0, 10), "a.py:2:5: ");
  EXPECT_EQ(errors("def f():\n    (a +\nb\n\ndef g(:\n").substr(0, 5), "a.py:");
}

}  // namespace
}  // namespace opguard
