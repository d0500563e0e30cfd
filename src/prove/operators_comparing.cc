// Questions about elements: comparing, truths, choices, rounding.
//
//   x <= y           1 - step(x - y)
//   a & b, a | b     a b, 1 - (1 - a) (1 - b), where a and b are 0 or 1
//   i // 3           of a token i below 6 a table: 0 0 0 1 1 1
//
// Reals and tokens can be compared. What rounds, or looks at bits, is for tokens alone: floor(x) of
// a real is no term, and Unprovable.
//
// Counterexample: a truth on reals is no choice of memory. where(x > 0, a, b) is a number made of
// both, so neither may be infinite.
#include <cmath>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// inf and nan: no real number equals them, and each is below inf. -inf is left out: masks hold it
// as an element.
bool is_no_number(const Call& c, size_t i) {
  const auto& a = c.argument(i);
  return a.is_object() && a.contains("f") && a["f"] != "-inf";
}
Results answered(const Call& c, bool answer) {
  return just(Array::filled(c.array(0).shape, answer ? c.terms().one() : c.terms().zero()));
}
bool is_nan(const Call& c, size_t i) { return is_no_number(c, i) && c.argument(i)["f"] == "nan"; }

Results lt(const Call& c) {
  if (is_no_number(c, 1)) return answered(c, !is_nan(c, 1));
  return of_two(c, [](Terms& t, Element x, Element y) { return t.less(x, y); });
}
Results gt(const Call& c) {
  if (is_no_number(c, 1)) return answered(c, false);
  return of_two(c, [](Terms& t, Element x, Element y) { return t.less(y, x); });
}
Results le(const Call& c) {
  if (is_no_number(c, 1)) return answered(c, !is_nan(c, 1));
  return of_two(c,
                [](Terms& t, Element x, Element y) { return t.subtract(t.one(), t.less(y, x)); });
}
Results ge(const Call& c) {
  if (is_no_number(c, 1)) return answered(c, false);
  return of_two(c,
                [](Terms& t, Element x, Element y) { return t.subtract(t.one(), t.less(x, y)); });
}
Results eq(const Call& c) {
  if (is_no_number(c, 1)) return answered(c, false);
  return of_two(c, [](Terms& t, Element x, Element y) { return t.equal(x, y); });
}
Results ne(const Call& c) {
  if (is_no_number(c, 1)) return answered(c, true);
  return of_two(c,
                [](Terms& t, Element x, Element y) { return t.subtract(t.one(), t.equal(x, y)); });
}

// 0b1000 is and: of its bits only number 3 is set, where both x and y hold. 0b1110 is or, 0b0110 is
// exclusive.
template <int kTruth>  // bit 2 * x + y: the answer
Element answer_of_two(Terms& t, Element x, Element y) {
  const Element both[] = {x, y};
  const auto mapped = t.map(
      [](std::span<const Rational> v) {
        return Rational(kTruth >> (2 * int{!v[0].zero()} + int{!v[1].zero()}) & 1);
      },
      both);
  if (mapped) return *mapped;
  const Element a = truth_of(t, x), b = truth_of(t, y);
  if (kTruth == 0b1000) return t.multiply(a, b);
  // As opposites of products, so that each is seen to be 0 or 1.
  const auto opposite = [&](Element e) { return t.subtract(t.one(), e); };
  if (kTruth == 0b1110) return opposite(t.multiply(opposite(a), opposite(b)));
  return opposite(
      t.multiply(opposite(t.multiply(a, opposite(b))), opposite(t.multiply(opposite(a), b))));
}
template <int kTruth>
Results logical(const Call& c) {
  return of_two(c, answer_of_two<kTruth>);
}
bool of_truths(const Call& c, size_t i) {
  return c.argument(i).is_boolean() || c.dtype(i) == "bool";
}
// Of truths the same; of whole numbers bit by bit.
template <int kTruth>
Results bitwise(const Call& c) {
  if (of_truths(c, 0) && of_truths(c, 1)) return logical<kTruth>(c);
  return of_two(c, [](Terms& t, Element x, Element y) {
    const Element both[] = {x, y};
    return mapped_or(
        t, both,
        [](std::span<const Rational> v) {
          const int64_t a = v[0].numerator(), b = v[1].numerator();
          return Rational(kTruth == 0b1000 ? a & b : kTruth == 0b1110 ? a | b : a ^ b);
        },
        "bits of values");
  });
}
Results logical_not(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.subtract(t.one(), truth_of(t, x)); });
}
// Of whole numbers -1 - x, as two's complement has it.
Results bitwise_not(const Call& c) {
  if (of_truths(c, 0)) return logical_not(c);
  return of_one(c, [](Terms& t, Element x) { return t.subtract(t.rational(-1), x); });
}
// Times or by a power of two, rounded down: so a shift to the right keeps the sign.
template <bool kLeft>
Results shifted(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element y) {
    const Element both[] = {x, y};
    return mapped_or(
        t, both,
        [](std::span<const Rational> v) {
          const int64_t n = v[1].numerator();
          if (n < 0 || n > 40) throw Unprovable("a shift by many bits");
          const Rational by(int64_t{1} << n);
          return kLeft ? v[0] * by : Rational(floor_of(v[0] / by));
        },
        "bits of values");
  });
}

// x - y * rounded(x / y), or rounded(x / y). By floor_of it is remainder(), with the sign of y. By
// trunc_of it is fmod(), with the sign of x.
template <int64_t (*kRounded)(const Rational&), bool kQuotient>
Results remainder(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element y) {
    const Element both[] = {x, y};
    return mapped_or(
        t, both,
        [](std::span<const Rational> v) {
          const Rational q(kRounded(v[0] / v[1]));
          return kQuotient ? q : v[0] - q * v[1];
        },
        "a remainder of values");
  });
}
int64_t ceil_of(const Rational& x) { return -floor_of(-x); }
template <int64_t (*kRounded)(const Rational&)>
Results rounded(const Call& c) {
  if (c.whole(9, 0, "decimals") != 0) throw Unprovable("a rounding to decimals");
  return of_one(c, [](Terms& t, Element x) {
    const Element only[] = {x};
    return mapped_or(
        t, only, [](std::span<const Rational> v) { return Rational(kRounded(v[0])); },
        "a rounding of values");
  });
}
Results fraction(const Call& c) {
  return of_one(c, [](Terms& t, Element x) {
    const Element only[] = {x};
    return mapped_or(
        t, only, [](std::span<const Rational> v) { return v[0] - Rational(trunc_of(v[0])); },
        "a rounding of values");
  });
}

Results where(const Call& c) { return of_three(c, chosen); }
Results masked_fill(const Call& c) {
  return of_three(c, [](Terms& t, Element x, Element mask, Element value) {
    return chosen(t, mask, value, x);
  });
}
Results maximum(const Call& c) { return of_two(c, greatest_of); }
Results minimum(const Call& c) { return of_two(c, least); }
// The elements, no less than argument i (below), or no more; as they are where it is not given.
Array bounded(const Call& c, Array a, size_t i, const char* name, bool below) {
  if (!c.given(i, name)) return a;
  Terms& t = c.terms();
  return each(a, c.array(i, name),
              [&](Element x, Element y) { return below ? greatest_of(t, x, y) : least(t, x, y); });
}
Results clamp(const Call& c) {
  return just(bounded(c, bounded(c, c.array(0), 1, "min", true), 2, "max", false));
}
Results clamp_min(const Call& c) { return just(bounded(c, c.array(0), 1, "min", true)); }
Results clamp_max(const Call& c) { return just(bounded(c, c.array(0), 1, "max", false)); }

// Reals are neither infinite nor no number. Only a mask's constants are.
Results is_infinite(const Call& c) {
  return of_one(c,
                [](Terms& t, Element x) { return x == t.minus_infinity() ? t.one() : t.zero(); });
}
Results is_not_a_number(const Call& c) { return answered(c, false); }
// Only minus infinity is met here. Its replacement has to be given: the default is a float's, not a
// real's.
Results without_nan(const Call& c) {
  Terms& t = c.terms();
  c.pass_over(1, "nan");
  c.pass_over(2, "posinf");
  c.pass_over(3, "neginf");
  return of_one(c, [&](Terms&, Element x) {
    if (x != t.minus_infinity()) return x;
    if (!c.given(3, "neginf")) throw Unprovable("the least float of a type");
    return t.number(c.number(3, 0, "neginf"));
  });
}
// The sign of y on |x|. A real 0 has none, and counts as positive.
Results with_sign_of(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element y) {
    return t.multiply(t.absolute(x),
                      t.subtract(t.one(), t.scaled(t.step(negative(t, y)), Rational(2))));
  });
}
// step(x), and the second argument where x is 0.
Results heaviside(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element at_zero) {
    return t.add(t.step(x), t.multiply(t.equal(x, t.zero()), at_zero));
  });
}

}  // namespace

std::vector<OperatorEntry> comparing_operators() {
  return {{"lt", lt},
          {"gt", gt},
          {"le", le},
          {"ge", ge},
          {"eq", eq},
          {"ne", ne},
          {"bitwise_and", bitwise<0b1000>},
          {"bitwise_or", bitwise<0b1110>},
          {"bitwise_xor", bitwise<0b0110>},
          {"bitwise_not", bitwise_not},
          {"bitwise_left_shift", shifted<true>},
          {"bitwise_right_shift", shifted<false>},
          {"__lshift__", shifted<true>},
          {"__rshift__", shifted<false>},
          {"logical_and", logical<0b1000>},
          {"logical_or", logical<0b1110>},
          {"logical_xor", logical<0b0110>},
          {"logical_not", logical_not},
          {"floor_divide", remainder<floor_of, true>},
          {"remainder", remainder<floor_of, false>},
          {"fmod", remainder<trunc_of, false>},
          {"floor", rounded<floor_of>},
          {"ceil", rounded<ceil_of>},
          {"trunc", rounded<trunc_of>},
          {"round", rounded<round_of>},
          {"frac", fraction},
          {"where", where},
          {"masked_fill", masked_fill},
          {"maximum", maximum},
          {"minimum", minimum},
          {"fmax", maximum},
          {"fmin", minimum},
          {"clamp", clamp},
          {"clamp_min", clamp_min},
          {"clamp_max", clamp_max},
          {"isinf", is_infinite},
          {"isneginf", is_infinite},
          {"isposinf", is_not_a_number},
          {"isnan", is_not_a_number},
          {"nan_to_num", without_nan},
          {"copysign", with_sign_of},
          {"heaviside", heaviside}};
}

}  // namespace opguard::proving
