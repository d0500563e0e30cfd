// Each heuristic of the judgement on two examples written by hand. One it decides; on its negative
// twin, nearly the same, it must have no part.
//
//   decides   judged without the heuristic, another operator is named: that one would be wrong
//   twin      judged with it and without it, the same operator is named
#include "align/judge/heuristics.h"

#include <gtest/gtest.h>

#include <map>

#include "align/judge/judged.h"

namespace opguard::test {
namespace {

struct Named {
  std::string a, b;  // boundaries of the pivot; "": that run has no such operator
  PivotKind kind;
  bool operator==(const Named&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Named& named) {
  return out << "a: " << named.a << ", b: " << named.b << ", kind " << int(named.kind);
}

struct Example {
  LogBuilder a, b;
  Named with, without;
  bool shown = true;  // among what the verdict says it was argued by
};

// Both runs' logs at once: `n` is 0 in a, 10 in b.
template <class Add>
Example two_runs(Add add) {
  Example example;
  add(example.a, /*second=*/false, uint64_t{0});
  add(example.b, /*second=*/true, uint64_t{10});
  return example;
}

S with_digest(S slot, uint64_t digest) {
  slot.digest = digest;
  return slot;
}
S in_block(S slot, uint32_t storage) {
  slot.storage = storage;
  return slot;
}
S shaped(S slot, std::vector<int64_t> shape) {
  slot.shape = std::move(shape);
  return slot;
}

// var() in one run and rms() in the other read what both hold: who made that is not asked. The
// twin: 48 is held by an operator beside it, but the count's counterpart holds 24.
Example known_by_name(bool decides) {
  if (decides) {
    Example example = two_runs([](LogBuilder& log, bool second, uint64_t n) {
      log.add(op("m.embed:0", {in(9), out(1)}));
      log.add(op(second ? "m.rms:b" : "m.var:a", {in(1), out(2 + n)}));
      log.add(op("m.mul:1", {in(2 + n), out(3 + n)})).add(loss(3 + n));
    });
    example.with = {"m.var:a", "m.rms:b", PivotKind::structure};
    // The walk ends at the embedding, an equal pair: no candidate.
    example.without = {"m.mul:1", "m.mul:1", PivotKind::input};
    return example;
  }
  Example example = two_runs([](LogBuilder& log, bool second, uint64_t n) {
    log.add(op("t.full:1", {out(48)}))
        .add(op("t.equal:2", {in(1), out(50 + n)}, second ? "4" : "5"));
    log.add(op("t.sum:3", {in(50 + n), out(second ? 48 : 24)}));
    log.add(op("t.div:4", {in(second ? 48 : 24), out(5 + n)})).add(loss(5 + n));
  });
  example.with = example.without = {"t.equal:2", "t.equal:2", PivotKind::scalar};
  return example;
}

// b adds zeros that no operator of a ever held. The twin: what a fills with ones is zeros in b.
Example zeros_are_known(bool decides) {
  if (decides) {
    Example example = two_runs([](LogBuilder& log, bool second, uint64_t n) {
      log.add(op("m.embed:0", {in(9), out(1)}));
      if (second) log.add(op("b.zeros:1", {out(0)}));
      if (second) log.add(op("b.add:2", {in(1), in(0, "arg1"), out(11)}));
      log.add(op("m.mul:3", {in(1 + n), out(2 + n)})).add(loss(2 + n));
    });
    example.with = {"", "b.add:2", PivotKind::structure};
    example.without = {"", "b.zeros:1", PivotKind::structure};
    return example;
  }
  Example example = two_runs([](LogBuilder& log, bool second, uint64_t n) {
    log.add(op("m.full:1", {in(9), out(second ? 0 : 1)}, second ? "0" : "1"));
    log.add(op("m.mul:2", {in(second ? 0 : 1), out(2 + n)})).add(loss(2 + n));
  });
  example.with = example.without = {"m.full:1", "m.full:1", PivotKind::scalar};
  return example;
}

// One run repeats a table over the batch before it computes on it: four times its elements. The
// twin: the table has other elements.
Example repeated_value(bool decides) {
  Example example;
  auto add = [](LogBuilder& log, std::vector<int64_t> rows, uint64_t table, uint64_t elements,
                uint64_t cosine, uint64_t of_cosine, uint64_t product) {
    log.add(op("m.cos:1", {shaped(with_digest(in(table), elements), rows),
                           shaped(with_digest(out(cosine), of_cosine), rows)}));
    log.add(op("m.mul:2",
               {shaped(with_digest(in(cosine), of_cosine), rows), in(7, "arg1"), out(product)}));
    log.add(loss(product));
  };
  add(example.a, {1, 8}, 2, 2, 3, 3, 4);
  add(example.b, {4, 8}, 12, decides ? 8 : 9, 13, decides ? 12 : 11, 14);
  example.with = {"m.mul:2", "m.mul:2", PivotKind::structure};
  example.without = {"m.cos:1", "m.cos:1", PivotKind::input};
  if (!decides) example.with = example.without;
  return example;
}

// b packs the two tensors that a's optimizer lists into one buffer. The twin: something else.
Example listed_elements(bool decides) {
  Example example = two_runs([&](LogBuilder& log, bool second, uint64_t n) {
    log.add(op("m.grad:0", {in(1), out(2)}));
    log.add(
        op("m.check:1", {with_digest(in(30, "arg0[0]"), 7), with_digest(in(31, "arg0[1]"), 8)}));
    const uint64_t packed = decides ? 15 : 16;
    if (second) log.add(op("b.pack:2", {in(2), with_digest(out(20), packed)}));
    if (second) log.add(op("b.norm:3", {with_digest(in(20), packed), out(21)}));
    std::vector<S> slots = {in(2, "self"), out(3 + n)};
    if (second) slots.insert(slots.begin() + 1, in(21));
    log.add(op("m.scale:4", slots)).add(loss(3 + n));
  });
  example.with = {"", "b.norm:3", PivotKind::structure};
  example.without = {"", "b.pack:2", PivotKind::structure};
  if (!decides) example.with = example.without;
  return example;
}

// `sum(b.aux for b in blocks)` of one block leaves what aux is, and reads no argument. The twin:
// full(48) beside a count that is 48 in both runs.
Example read_unseen(bool decides) {
  Example example = two_runs([&](LogBuilder& log, bool second, uint64_t n) {
    const uint64_t made = decides ? 3 + n : second ? 48 : 24;
    log.add(op("m.count:1", {in(1), out(decides ? made : 48)}, decides && second ? "min=1" : ""));
    log.add(op("m.sum:2", {in_block(out(made), 7)}, second && !decides ? "48" : ""));
    E end = loss(made);
    end.slots[0].storage = 7;
    log.add(end);
  });
  example.with = {"m.count:1", "m.count:1", PivotKind::scalar};
  example.without = {"m.sum:2", "m.sum:2", PivotKind::value};
  if (!decides) example.with = example.without = {"m.sum:2", "m.sum:2", PivotKind::scalar};
  return example;
}

// A fused kernel beside scores and a mask: both stretches begin at what reads 9, and what prepared
// the masks stands behind. The twin: the kernel reads something else.
Example shared_input(bool decides) {
  Example example;
  LogBuilder &a = example.a, &b = example.b;
  for (LogBuilder* log : {&a, &b}) log->add(op("m.load:0", {out(1), out(5), out(8), out(9)}));
  a.add(op("m.to:1", {in(1), out(2)})).add(op("m.fill:2", {in(2), out(30)}));
  b.add(op("m.sub:3", {in(5), out(20)})).add(op("m.times:4", {in(20), out(31)}));
  a.add(op("m.mm:5", {in(9), out(10)}));
  a.add(op("m.add:6", {in(10, "self"), in(30), out(11)})).add(loss(11));
  b.add(op("m.sdpa:7", {in(decides ? 9 : 8, "self"), in(31), out(12)})).add(loss(12));
  example.with = {"m.mm:5", "m.sdpa:7", PivotKind::structure};
  example.without = {"m.to:1", "m.sub:3", PivotKind::structure};
  if (!decides) example.with = example.without;
  return example;
}

// Scores are masked by where() in one run and by a sum in the other. The product before them
// differs: the stretches that read it only pass it on. The twin: the product agrees.
Example inherited(bool decides) {
  Example example = two_runs([&](LogBuilder& log, bool second, uint64_t n) {
    const S mask{SlotKind::out, 2, "out0", {4, 8}, 0, "bool"};
    S given = mask;
    given.kind = SlotKind::in, given.name = "arg1";
    if (!second) log.add(op("m.tril:1", {in(1), mask}));
    if (second) log.add(op("m.ids:0", {in(1)}));
    const uint64_t product = decides ? 10 + n : 10;
    log.add(op("m.mm:3", {in(9), out(product)}));
    if (second)
      log.add(op("m.add:5", {in(product), out(21)})).add(loss(21));
    else
      log.add(op("m.where:4", {in(product), given, out(11)})).add(loss(11));
  });
  example.with = {"m.mm:3", "m.mm:3", PivotKind::value};
  example.without = {"m.tril:1", "", PivotKind::structure};
  if (!decides) example.with = example.without = {"m.where:4", "m.add:5", PivotKind::structure};
  example.shown = false;  // of the stretch, which comes behind
  return example;
}

// b.y makes the loss of values that both runs hold. m.x reads noise of b alone, so that its other
// result there is no news. The twin: it reads the same in both runs.
Example echo(bool decides) {
  Example example = two_runs([&](LogBuilder& log, bool second, uint64_t) {
    log.add(op("m.embed:0", {in(9), out(1)}));
    if (second) log.add(op("b.noise:1", {in(1), out(90)}));
    log.add(op("m.x:2", {in(second && decides ? 90 : 1), out(second ? 91 : 2)}));
    if (second) log.add(op("b.y:3", {in(1), out(12)}));
    log.add(loss(second ? 12 : 2));
  });
  example.with = {"", "b.y:3", PivotKind::structure};
  example.without = {"m.x:2", "m.x:2", PivotKind::input};
  if (!decides) example.with = example.without = {"m.x:2", "m.x:2", PivotKind::value};
  example.shown = false;  // of m.x, which is no candidate then
  return example;
}

// What pick() left was read by code without operators, which made what m.use reads. The twin:
// another operator read it, and nothing says that code did as well.
Example behind_hole(bool decides) {
  Example example = two_runs([&](LogBuilder& log, bool second, uint64_t n) {
    log.add(op("m.pick:1", {in(1), out(2 + n)}, second ? "2" : "1"));
    if (!decides) log.add(op("m.print:2", {in(2 + n)}));
    log.add(op("m.use:3", {in(3 + n), out(4 + n)})).add(loss(4 + n));
  });
  example.with = {"m.pick:1", "m.pick:1", PivotKind::scalar};
  example.without = {"m.use:3", "m.use:3", PivotKind::input};
  if (!decides) example.with = example.without;
  return example;
}

// Within opt.step() both runs write the same number into a tensor, b into another one. The twin:
// into the same, but b adds another number.
//   a  v.addcmul_(g, g); max(m, v, out=m); m.add_(eps)
//   b  v.addcmul_(g, g); max(m, v.add_(eps), out=m)
Example one_sided_write(bool decides) {
  constexpr uint32_t kSecond = 8, kLargest = 9;
  Example example = two_runs([&](LogBuilder& log, bool second, uint64_t n) {
    const uint64_t added = decides ? 30 : 30 + n;
    const bool elsewhere = second && decides;
    auto write = [&](const std::string& boundary, uint64_t from, uint64_t to, uint32_t storage) {
      const std::string eps = second && !decides ? "2" : "1";
      log.add(op(boundary, {in_block(in(from, "self"), storage), in_block(written(to), storage)},
                 boundary == "opt.add_:4" ? eps : ""));
    };
    log.add(loss(3));
    log.add(op("opt.zeros:1", {in_block(out(4), kSecond)}));
    log.add(op("opt.zeros:2", {in_block(out(4), kLargest)}));
    write("opt.addcmul_:3", 4, 20, kSecond);
    if (elsewhere) write("opt.add_:4", 20, added, kSecond);
    log.add(op(elsewhere ? "opt.max:b" : "opt.max:a",
               {in_block(in(elsewhere ? added : 20), kSecond),
                in_block(written(elsewhere ? added : 20, "out"), kLargest)}));
    if (!elsewhere) write("opt.add_:4", 20, added, kLargest);
    E step = optimizer({parameter(6), in_block(out(elsewhere ? added : 20, "state:w.v"), kSecond),
                        in_block(out(added, "state:w.m"), kLargest)});
    step.inside = 5;
    log.add(step);
  });
  example.with = {"opt.add_:4", "opt.add_:4", PivotKind::input};
  example.without = {"train.step:o", "train.step:o", PivotKind::value};
  if (!decides) example.with = example.without = {"opt.add_:4", "opt.add_:4", PivotKind::scalar};
  return example;
}

// padding_idx is read by the backward alone. The twin: the forward was given the same.
Example backward_argument(bool decides) {
  Example example = two_runs([&](LogBuilder& log, bool second, uint64_t n) {
    log.add(op("m.embedding:1", {in(1), out(2)}, second && decides ? "padding_idx=0" : ""));
    log.add(loss(2));
    add_node(log, "m.embedding:1", 0, {in(3), out(4 + n)});
    log.add(optimizer({in(4 + n, "grad0"), parameter(5 + n)}));
  });
  example.with = {"m.embedding:1", "m.embedding:1", PivotKind::scalar};
  example.without = {"m.embedding:1", "m.embedding:1", PivotKind::value};
  if (!decides) example.with = example.without;
  return example;
}

// b detaches the mean, so that no gradient comes back to the product behind it. The twin: all of it
// is in the graph in both runs, and that one node is missing has another reason.
Example graph_cut(bool decides) {
  Example example = two_runs([&](LogBuilder& log, bool second, uint64_t) {
    E mean = op("m.mean:1", {in(1), out(2)}), mul = op("m.mul:2", {in(2), out(3)});
    if (!second || !decides) mean.flags = mul.flags = kInGraph;
    log.add(mean).add(mul).add(loss(3));
    if (!second) add_node(log, "m.mul:2", 1, {in(3), out(40)});
    log.add(optimizer({in(second ? 3 : 40, "grad0"), parameter(second ? 16 : 6)}));
  });
  example.with = {"m.mean:1", "m.mean:1", PivotKind::structure};
  example.without = {"m.mul:2", "", PivotKind::structure};
  if (!decides) example.with = example.without;
  return example;
}

const std::map<Heuristic, Example (*)(bool decides)> kExamples = {
    {Heuristic::known_by_name, known_by_name},
    {Heuristic::zeros_are_known, zeros_are_known},
    {Heuristic::repeated_value, repeated_value},
    {Heuristic::listed_elements, listed_elements},
    {Heuristic::read_unseen, read_unseen},
    {Heuristic::shared_input, shared_input},
    {Heuristic::inherited, inherited},
    {Heuristic::echo, echo},
    {Heuristic::behind_hole, behind_hole},
    {Heuristic::one_sided_write, one_sided_write},
    {Heuristic::backward_argument, backward_argument},
    {Heuristic::graph_cut, graph_cut},
};

class EachHeuristic : public testing::TestWithParam<HeuristicText> {
 protected:
  static Judged judged_without(const Example& example, std::optional<Heuristic> off) {
    Heuristics none;
    if (off) none.add(*off);
    return judged({example.a}, {example.b}, none);
  }
  static Named named(const Judged& j) { return {j.pivot_a(), j.pivot_b(), j.kind()}; }

  Example example(bool decides) const { return kExamples.at(GetParam().heuristic)(decides); }
};

TEST_P(EachHeuristic, DecidesItsExample) {
  const Heuristic heuristic = GetParam().heuristic;
  const Example e = example(/*decides=*/true);
  ASSERT_FALSE(e.with == e.without);
  const Judged with = judged_without(e, std::nullopt), without = judged_without(e, heuristic);
  EXPECT_EQ(named(with), e.with);
  EXPECT_EQ(named(without), e.without);
  EXPECT_EQ(with.verdict.candidates[0].heuristics.has(heuristic), e.shown);
  EXPECT_FALSE(without.verdict.candidates[0].heuristics.has(heuristic));
}

TEST_P(EachHeuristic, HasNoPartInItsTwin) {
  const Example e = example(/*decides=*/false);
  ASSERT_EQ(e.with, e.without);
  EXPECT_EQ(named(judged_without(e, std::nullopt)), e.with);
  EXPECT_EQ(named(judged_without(e, GetParam().heuristic)), e.with);
}

INSTANTIATE_TEST_SUITE_P(Heuristics, EachHeuristic, testing::ValuesIn(kHeuristics),
                         [](const testing::TestParamInfo<HeuristicText>& info) {
                           std::string name(info.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace opguard::test
