#include "preflight/attribute.h"

#include "gtest/gtest.h"
#include "parser/parse.h"

namespace opguard {
namespace {

// A source, its sites, and uses given by the text they cover.
class Program {
 public:
  explicit Program(const std::string& text) {
    sources_.files.push_back(make_source("", "model.py", "/t/model.py", text));
    Diagnostics diags;
    sites_ = parse_sites(sources_, diags);
    EXPECT_FALSE(diags.has_errors()) << diags.text();
  }

  // `cover`: a text that occurs once; `skip`: bytes of it before the instruction's own start.
  TracedUse use(const std::string& opcode, const std::string& cover, size_t skip = 0) const {
    const SourceFile& file = sources_.files[0];
    size_t at = file.text.find(cover);
    EXPECT_NE(at, std::string::npos) << cover;
    EXPECT_EQ(file.text.find(cover, at + 1), std::string::npos) << cover << " occurs twice";
    auto start = static_cast<uint32_t>(at + skip), end = static_cast<uint32_t>(at + cover.size());
    TracedUse u;
    u.path = file.path;
    u.opcode = opcode;
    u.line = static_cast<int32_t>(file.line_of(start));
    u.end_line = static_cast<int32_t>(file.line_of(end));
    u.column = static_cast<int32_t>(start - file.line_starts[file.line_of(start) - 1]);
    u.end_column = static_cast<int32_t>(end - file.line_starts[file.line_of(end) - 1]);
    return u;
  }
  TracedUse on_line(const std::string& opcode, int line, const std::string& callee,
                    const std::string& scope) const {
    TracedUse u;
    u.path = "/t/model.py";
    u.opcode = opcode;
    u.line = line;
    u.end_line = -1;
    u.callee = callee;
    u.scope = scope;
    return u;
  }

  // "form text" of every site found, or the reason in brackets.
  std::string where(const TracedUse& use) const {
    Attribution a = Attributor(sources_, sites_).attribute(use);
    std::string out;
    for (uint32_t i : a.sites) {
      const Site& s = sites_[i];
      out += (out.empty() ? "" : "; ") + std::string(form_name(s.form)) + " " +
             sources_.files[0].text.substr(s.operand_start, s.operand_end - s.operand_start);
    }
    return a.sites.empty() ? "[" + a.reason + "]" : out;
  }

 private:
  SourceSet sources_;
  std::vector<Site> sites_;
};

TEST(Attribute, SeveralOperatorsOnOneLine) {
  Program p("def f(a, b, c):\n    return torch.exp(a * b) + (c - a)[0]\n");
  EXPECT_EQ(p.where(p.use("CALL", "torch.exp(a * b)")), "call torch.exp");
  EXPECT_EQ(p.where(p.use("BINARY_OP", "a * b")), "binary a");
  EXPECT_EQ(p.where(p.use("BINARY_OP", "c - a")), "binary c");
  EXPECT_EQ(p.where(p.use("BINARY_OP", "torch.exp(a * b) + (c - a)[0]")),
            "binary torch.exp(a * b)");
  EXPECT_EQ(p.where(p.use("BINARY_SUBSCR", "(c - a)[0]")), "subscript (c - a)");
  // 3.14 has no BINARY_SUBSCR.
  EXPECT_EQ(p.where(p.use("BINARY_OP", "(c - a)[0]")), "subscript (c - a)");
}

TEST(Attribute, MethodCallOverLinesBeginsAtItsName) {
  Program p("y = (x\n     .view(1)\n     .softmax(2))\n");
  EXPECT_EQ(p.where(p.use("CALL", ".view(1)", 1)), "call x\n     .view");
  EXPECT_EQ(p.where(p.use("CALL", ".softmax(2)", 1)), "call x\n     .view(1)\n     .softmax");
}

TEST(Attribute, LoopsOfEveryPython) {
  Program p("for b in loader:\n    step(b)\nz = [g(q) for q in items]\n");
  EXPECT_EQ(p.where(p.use("FOR_ITER", "loader")), "iterate loader");                         // 3.12
  EXPECT_EQ(p.where(p.use("FOR_ITER", "for b in loader:\n    step(b)")), "iterate loader");  // 3.11
  EXPECT_EQ(p.where(p.use("FOR_ITER", "items")), "iterate items");
  EXPECT_EQ(p.where(p.use("FOR_ITER", "[g(q) for q in items]")), "iterate items");
}

TEST(Attribute, Assignments) {
  Program p("def f(x, t, i, y):\n    x += y\n    t[i] = y\n    t[y] += x\n");
  EXPECT_EQ(p.where(p.use("BINARY_OP", "x += y")), "augment x");
  EXPECT_EQ(p.where(p.use("STORE_SUBSCR", "t[i]")), "subscript t");
  EXPECT_EQ(p.where(p.use("BINARY_OP", "t[y] += x")).substr(0, 7), "augment");
  EXPECT_EQ(p.where(p.use("STORE_SUBSCR", "t[y]")).substr(0, 7), "augment");
}

// 3.11 gives the jump after g(x) the span of `c is None`.
TEST(Attribute, TruthOfNestedOperands) {
  Program p(
      "def f(a, c, x):\n    if a and (c is None or g(x)):\n        h(x and c)\n"
      "    if h(a or x):\n        pass\n");
  EXPECT_EQ(p.where(p.use("POP_JUMP_FORWARD_IF_FALSE", "c is None")), "truth a; truth g(x)");
  EXPECT_EQ(p.where(p.use("POP_JUMP_IF_FALSE", "a or x")), "[truth of a value that and, or keep]");
}

TEST(Attribute, TruthOfACondition) {
  Program p(
      "def f(x):\n    if x.any() and x:\n        g(x)\n    while not x.all():\n        pass\n"
      "    y = a if b else c\n    z = [i for i in u if v]\n    return not w, p and q\n");
  EXPECT_EQ(p.where(p.use("TO_BOOL", "x.any()")), "truth x.any()");  // 3.13
  // 3.11 tells the statement alone.
  EXPECT_EQ(p.where(p.use("POP_JUMP_FORWARD_IF_FALSE", "if x.any() and x:\n        g(x)")),
            "truth x.any(); truth x");
  // The tracer tells which of them, whatever span the jump has.
  TracedUse told = p.use("POP_JUMP_FORWARD_IF_FALSE", "a if b else c");
  const TracedUse tested = p.use("POP_JUMP_FORWARD_IF_FALSE", "x.any()");
  told.tested = {tested.line, tested.end_line, tested.column, tested.end_column};
  EXPECT_EQ(p.where(told), "truth x.any()");
  EXPECT_EQ(p.where(p.use("POP_JUMP_IF_TRUE", "x.all()")), "truth x.all()");
  EXPECT_EQ(p.where(p.use("POP_JUMP_FORWARD_IF_FALSE", "a if b else c")), "truth b");
  EXPECT_EQ(p.where(p.use("POP_JUMP_BACKWARD_IF_FALSE", "[i for i in u if v]")), "truth v");
  EXPECT_EQ(p.where(p.use("UNARY_NOT", "not w")), "truth w");
  EXPECT_EQ(p.where(p.use("TO_BOOL", "p and q")), "[truth of a value that and, or keep]");
}

TEST(Attribute, AttributesContextsAndAwaits) {
  Program p(
      "async def f(self, m, p):\n    with amp(m), lock as k:\n        h(self.weight)\n"
      "    p.data = (self\n      .grad)\n    await g(m)\n    self.n += 1\n"
      "    async with pool as c:\n        pass\n    return m.run(p)\n");
  EXPECT_EQ(p.where(p.use("LOAD_ATTR", "self.weight")), "read self");
  EXPECT_EQ(p.where(p.use("LOAD_ATTR", ".grad", 1)), "read self");
  EXPECT_EQ(p.where(p.use("STORE_ATTR", "p.data")), "write p");
  EXPECT_EQ(p.where(p.use("LOAD_ATTR", "self.n")), "augment self");
  EXPECT_EQ(p.where(p.use("STORE_ATTR", "self.n")), "augment self");
  EXPECT_EQ(p.where(p.use("BEFORE_WITH", "amp(m)")), "enter amp(m)");
  // Up to 3.11, entering and leaving.
  std::string statement = "with amp(m), lock as k:\n        h(self.weight)";
  EXPECT_EQ(p.where(p.use("BEFORE_WITH", statement)), "enter amp(m); enter lock");
  EXPECT_EQ(p.where(p.use("CALL", statement)), "enter amp(m); enter lock");
  EXPECT_EQ(p.where(p.use("CALL", "amp(m)")), "call amp");
  TracedUse leaving = p.use("CALL", "amp(m)");
  leaving.callee = "__exit__";
  EXPECT_EQ(p.where(leaving), "enter amp(m)");
  EXPECT_EQ(p.where(p.use("SEND", "await g(m)")), "await g(m)");
  EXPECT_EQ(p.where(p.use("SEND", "pool")), "enter pool");
  EXPECT_EQ(p.where(p.use("LOAD_METHOD", "m.run")), "[reading the attribute that is called]");
  TracedUse other = p.use("CALL", "amp(m)");
  other.path = "/t/gone.py";
  EXPECT_EQ(p.where(other), "[source not read]");
}

TEST(Attribute, ContainsFormatAndUnpacking) {
  Program p(
      "a = b in c\nd = f\"{e:.2f} {g!r}\"\nh, (i, j) = k\nm = [*n, (*o, u)]\nq = r(*s(1), [*t])\n"
      "for v, w in x: pass\ndel y[0]\n");
  EXPECT_EQ(p.where(p.use("CONTAINS_OP", "b in c")), "contains c");
  EXPECT_EQ(p.where(p.use("FORMAT_WITH_SPEC", "{e:.2f}")), "format e");
  // 3.11 gives both the span of the string.
  TracedUse second = p.use("FORMAT_VALUE", "f\"{e:.2f} {g!r}\"");
  EXPECT_EQ(p.where(second), "format e; format g");
  second.nth = 1, second.of = 2;
  EXPECT_EQ(p.where(second), "format g");
  second.of = 4;  // compiled twice, in a `finally`
  EXPECT_EQ(p.where(second), "format e; format g");
  EXPECT_EQ(p.where(p.use("UNPACK_SEQUENCE", "h, (i, j)")), "iterate k");
  EXPECT_EQ(p.where(p.use("UNPACK_SEQUENCE", "(i, j)")), "[unpacking inside a target]");
  EXPECT_EQ(p.where(p.use("UNPACK_SEQUENCE", "v, w")), "[unpacking inside a target]");
  EXPECT_EQ(p.where(p.use("LIST_EXTEND", "[*n, (*o, u)]")), "iterate n");
  EXPECT_EQ(p.where(p.use("LIST_EXTEND", "(*o, u)")), "iterate o");
  TracedUse star = p.use("CALL_FUNCTION_EX", "r(*s(1), [*t])");
  EXPECT_EQ(p.where(star), "call r");
  star.callee = "__iter__";
  EXPECT_EQ(p.where(star), "iterate s(1)");
  EXPECT_EQ(p.where(p.use("DELETE_SUBSCR", "y[0]")), "[del of an item]");
}

// 3.11, in the order in which CPython formats them.
TEST(Attribute, NestedFormats) {
  Program p("a = f\"{x:{w}} {y}\"\nb = f\"{g(f'{z}')} {v}\"\n");
  auto formatted = [&](const std::string& cover, uint32_t nth, uint32_t of) {
    TracedUse use = p.use("FORMAT_VALUE", cover);
    use.nth = nth, use.of = of;
    return p.where(use);
  };
  EXPECT_EQ(formatted("f\"{x:{w}} {y}\"", 0, 3), "format w");
  EXPECT_EQ(formatted("f\"{x:{w}} {y}\"", 1, 3), "format x");
  EXPECT_EQ(formatted("f\"{x:{w}} {y}\"", 2, 3), "format y");
  // The string inside has instructions and a span of its own.
  EXPECT_EQ(formatted("f\"{g(f'{z}')} {v}\"", 1, 2), "format g(f'{z}'); format v");
  EXPECT_EQ(formatted("f\"{g(f'{z}')} {v}\"", 1, 3), "format g(f'{z}'); format v");
}

TEST(Attribute, AChainIsAllItsComparisons) {
  Program p("x = a < b < c\ny = d < e in f\n");
  EXPECT_EQ(p.where(p.use("COMPARE_OP", "a < b < c")), "compare a; compare b");
  EXPECT_EQ(p.where(p.use("COMPARE_OP", "d < e in f")), "[chained with in or is]");
}

TEST(Attribute, ByteColumnsBeyondAscii) {
  Program p("x = 'ä'; y = torch.exp(é)\n");
  EXPECT_EQ(p.where(p.use("CALL", "torch.exp(é)")), "call torch.exp");
}

TEST(Attribute, LineAndCalleeBeforePython311) {
  Program p(
      "class A:\n    def forward(self, x):\n        return F.softmax(x * 2, -1) + x.relu()\n");
  EXPECT_EQ(p.where(p.on_line("CALL_FUNCTION", 3, "softmax", "forward")), "call F.softmax");
  EXPECT_EQ(p.where(p.on_line("CALL_METHOD", 3, "aten::relu", "forward")), "call x.relu");
  EXPECT_EQ(p.where(p.on_line("BINARY_MULTIPLY", 3, "aten::mul.Tensor", "forward")), "binary x");
  // A callee that names none of them: all, rather than a guess.
  EXPECT_EQ(p.where(p.on_line("CALL_FUNCTION", 3, "wrapper", "forward")),
            "call F.softmax; call x.relu");
  EXPECT_EQ(p.where(p.on_line("CALL_FUNCTION", 1, "softmax", "forward")), "[call without a site]");
}

}  // namespace
}  // namespace opguard
