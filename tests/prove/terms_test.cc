#include "prove/terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "prove/evaluate.h"

namespace opguard::proving {
namespace {

class TermsTest : public testing::Test {
 protected:
  Element x(uint32_t i) { return terms.variable("x", i); }
  Element whole(int64_t n) { return terms.rational(Rational(n)); }

  Terms terms;
};

TEST(Rationals, AreExactOrRefused) {
  EXPECT_EQ(Rational(2, -4), Rational(-1, 2));
  EXPECT_EQ(Rational(1, 3) + Rational(1, 6), Rational(1, 2));
  EXPECT_EQ(Rational(7, 2) / Rational(7, 4), Rational(2));
  EXPECT_EQ(power(Rational(2, 3), -2), Rational(9, 4));
  EXPECT_THROW(Rational(1) / Rational(0), Unprovable);
  const Rational large(int64_t{1} << 62);
  EXPECT_THROW(large + large, Unprovable);
  EXPECT_THROW(large * Rational(3), Unprovable);
  EXPECT_EQ(large * Rational(1, int64_t{1} << 61), Rational(2));
}

TEST(Rationals, OfFloats) {
  EXPECT_EQ(rational_of(0.1), Rational(1, 10));
  EXPECT_EQ(rational_of(0.1f), Rational(1, 10));
  EXPECT_EQ(rational_of(-1.0 / 3), Rational(-1, 3));
  EXPECT_EQ(rational_of(1e-5), Rational(1, 100000));
  EXPECT_EQ(rational_of(0.999), Rational(999, 1000));
  EXPECT_EQ(rational_of(65536.0), Rational(65536));
  EXPECT_EQ(rational_of(std::ldexp(1.0, -20)), Rational(1, 1 << 20));
  EXPECT_EQ(rational_of(std::cos(1.0)), std::nullopt);
  EXPECT_EQ(rational_of(std::sqrt(0.5)), std::nullopt);
  EXPECT_EQ(rational_of(std::nan("")), std::nullopt);
  // The float64 beside 1/3 is none of its roundings.
  EXPECT_EQ(rational_of(std::nextafter(1.0 / 3, 1.0)), std::nullopt);
}

TEST_F(TermsTest, OneElementForOneReal) {
  EXPECT_EQ(terms.add(x(0), x(1)), terms.add(x(1), x(0)));
  EXPECT_EQ(terms.subtract(x(0), x(0)), terms.zero());
  EXPECT_EQ(terms.multiply(x(0), terms.power(x(0), Rational(-1))), terms.one());
  // A factor that all parts share goes outside: a loss scale cancels.
  const Element sum = terms.add(terms.multiply(x(2), x(0)), terms.multiply(x(2), x(1)));
  EXPECT_EQ(terms.product(terms.divide(sum, x(2))), terms.product(terms.add(x(0), x(1))));
  EXPECT_EQ(terms.multiply(terms.exp(x(0)), terms.exp(x(1))), terms.exp(terms.add(x(0), x(1))));
  EXPECT_EQ(terms.log(terms.exp(x(0))), x(0));
  EXPECT_EQ(terms.exp(terms.scaled(terms.log(x(0)), Rational(2))), terms.multiply(x(0), x(0)));
  // Roots of whole numbers.
  EXPECT_EQ(terms.number(1 / std::sqrt(8.0)), terms.divide(terms.number(std::sqrt(2.0)), whole(4)));
  EXPECT_EQ(terms.multiply(terms.number(std::sqrt(3.0)), terms.number(std::sqrt(3.0))), whole(3));
  // One constant, whatever type it had.
  EXPECT_EQ(terms.number(std::cos(1.0)), terms.number(static_cast<float>(std::cos(1.0))));
  EXPECT_NE(terms.add(x(0), x(1)), terms.add(x(0), x(2)));
}

TEST_F(TermsTest, ProductsAreWrittenOutOnlyWhenAsked) {
  const Element sum = terms.named(terms.add(x(0), x(1)));
  EXPECT_NE(terms.add(sum, x(2)), terms.add(terms.add(x(0), x(1)), x(2)));
  EXPECT_TRUE(terms.same(terms.add(sum, x(2)), terms.add(terms.add(x(0), x(1)), x(2))));
  EXPECT_FALSE(terms.same(terms.add(sum, x(2)), terms.add(terms.add(x(0), x(1)), x(1))));
}

TEST_F(TermsTest, TokensAreTables) {
  const Element token = terms.token("ids", 0, 4);
  const auto row = [&](int64_t v) { return x(static_cast<uint32_t>(v)); };
  const Element row_of = terms.look_up(token, row);
  // A vocabulary in two parts, each masked, and their sum.
  const Element parts[] = {token};
  const auto low =
      terms.map([](std::span<const Rational> v) { return Rational(v[0].numerator() < 2); }, parts);
  ASSERT_TRUE(low);
  const Element first =
      terms.where(*low, terms.look_up(token, [&](int64_t v) { return row(v % 2); }), terms.zero());
  const Element second = terms.where(
      *low, terms.zero(), terms.look_up(token, [&](int64_t v) { return row(v % 2 + 2); }));
  EXPECT_EQ(terms.add(first, second), row_of);
  // Two values of one token exclude each other.
  const auto is = [&](int64_t v) {
    return *terms.map([v](std::span<const Rational> r) { return Rational(r[0] == Rational(v)); },
                      parts);
  };
  EXPECT_EQ(terms.multiply(is(0), is(1)), terms.zero());
  EXPECT_EQ(terms.multiply(is(0), is(0)), is(0));
  Element all = terms.zero();
  for (int64_t v = 0; v < 4; ++v) all = terms.add(all, is(v));
  EXPECT_EQ(all, terms.one());
  EXPECT_THROW(terms.where(x(0), x(1), x(2)), Unprovable);
  const Element other[] = {token, x(0)};
  EXPECT_EQ(terms.map([](std::span<const Rational> v) { return v[0] + v[1]; }, other),
            std::nullopt);
}

// What a logarithm is taken of is positive, and its factors need not be.
TEST_F(TermsTest, ALogarithmOfAProductIsSplitAsFarAsItsFactorsArePositive) {
  const Element square = terms.multiply(x(0), x(0)), log = terms.log(square);
  EXPECT_NE(log, terms.scaled(terms.log(x(0)), Rational(2)));
  // Else the magnitude of x were x.
  EXPECT_NE(terms.exp(terms.scaled(log, Rational(1, 2))), x(0));
  EXPECT_EQ(terms.exp(log), square);
  EXPECT_EQ(terms.log(terms.multiply(square, square)), terms.scaled(log, Rational(2)));
  EXPECT_EQ(terms.log(terms.multiply(square, x(0))), terms.scaled(terms.log(x(0)), Rational(3)));
  EXPECT_EQ(terms.log(terms.multiply(square, x(1))), terms.add(log, terms.log(x(1))));
  EXPECT_EQ(terms.log(terms.multiply(terms.exp(x(1)), x(0))), terms.add(x(1), terms.log(x(0))));
  // -x is positive, and so is (-x)^3.
  const Element minus = terms.scaled(x(0), Rational(-1));
  EXPECT_EQ(terms.log(terms.power(minus, Rational(3))),
            terms.scaled(terms.log(minus), Rational(3)));
  // Two of either sign are positive together.
  const Element both = terms.multiply(x(0), x(1));
  EXPECT_NE(terms.log(both), terms.add(terms.log(x(0)), terms.log(x(1))));
  EXPECT_EQ(terms.exp(terms.log(both)), both);
  EXPECT_EQ(terms.exp(terms.log(terms.multiply(both, square))), terms.multiply(both, square));
  EXPECT_THROW(terms.log(terms.scaled(terms.exp(x(0)), Rational(-1))), Unprovable);
}

// A sum with a name within, and the same sum written out: beside a factor, and deeper.
TEST_F(TermsTest, SumsWithNamesWithinAreWrittenOutBesideFactors) {
  const Element inner = terms.add(x(0), x(1)), name = terms.named(inner);
  ASSERT_NE(name, inner);
  const auto deep = [&](Element first, Element third) {
    Element sum = terms.add(first, third);
    for (uint32_t i = 0; i < 6; ++i)
      sum = terms.add(terms.multiply(x(10 + i), sum), terms.multiply(x(20 + i), x(30 + i)));
    return terms.multiply(x(5), sum);
  };
  const Element with = deep(name, x(2)), without = deep(inner, x(2));
  EXPECT_NE(with, without);
  EXPECT_TRUE(terms.same(with, without));
  EXPECT_FALSE(terms.same(with, deep(inner, x(3))));
  EXPECT_FALSE(terms.same(with, deep(terms.scaled(inner, Rational(2)), x(2))));
}

// What needs its denominators multiplied away, and roots of squares.
TEST_F(TermsTest, FractionsOfSumsAreOneWhereTheyAre) {
  const Element sum = terms.add(terms.exp(x(0)), terms.exp(x(1)));
  const Element a = terms.divide(terms.exp(x(0)), sum), b = terms.divide(terms.exp(x(1)), sum);
  // a y + b y is y, where a + b is 1; (a + b)^2 is 1.
  const Element y = terms.add(terms.multiply(a, x(2)), terms.multiply(b, x(2)));
  EXPECT_TRUE(terms.same(y, x(2)));
  EXPECT_FALSE(terms.same(terms.add(y, terms.multiply(a, x(3))), x(2)));
  const Element norm = terms.power(terms.add(terms.multiply(x(4), x(4)), x(5)), Rational(1, 2));
  const Element whole = terms.add(terms.multiply(x(4), x(4)), x(5));
  EXPECT_TRUE(terms.same(terms.multiply(norm, norm), whole));
  EXPECT_TRUE(terms.same(terms.power(norm, Rational(-3)),
                         terms.divide(terms.power(norm, Rational(-1)), whole)));
  const Element both = terms.add(terms.multiply(norm, norm), x(6));
  EXPECT_EQ(terms.power(both, Rational(1, 2)), terms.power(terms.add(whole, x(6)), Rational(1, 2)));
}

TEST_F(TermsTest, ConditionsAreStepsOfOneForm) {
  const Element step = terms.step(x(0));
  // What is positive drops out, and a step is its own power.
  EXPECT_EQ(terms.step(terms.scaled(terms.multiply(x(0), terms.exp(x(1))), Rational(3))), step);
  EXPECT_EQ(terms.multiply(step, step), step);
  EXPECT_EQ(terms.step(terms.relu(x(0))), step);
  EXPECT_EQ(terms.relu(terms.relu(x(0))), terms.relu(x(0)));
  const Element square = terms.multiply(x(0), x(0));
  EXPECT_EQ(terms.relu(square), square);
  EXPECT_EQ(terms.less(x(1), x(0)), terms.step(terms.subtract(x(0), x(1))));
  // At 0 neither holds, so that one is not the opposite of the other.
  EXPECT_NE(terms.step(terms.scaled(x(0), Rational(-1))), terms.subtract(terms.one(), step));
  EXPECT_EQ(terms.step(terms.exp(x(0))), terms.one());
  EXPECT_EQ(terms.step(terms.scaled(terms.multiply(x(0), x(0)), Rational(-1))), terms.zero());
  EXPECT_EQ(terms.absolute(terms.scaled(x(0), Rational(-2))),
            terms.scaled(terms.absolute(x(0)), Rational(2)));
  EXPECT_EQ(terms.equal(terms.exp(x(0)), terms.zero()), terms.zero());
}

TEST_F(TermsTest, TruthsAreZeroOrOne) {
  const Element a = terms.step(x(0)), b = terms.step(x(1));
  const Element not_a = terms.subtract(terms.one(), a), not_b = terms.subtract(terms.one(), b);
  for (Element e : {a, not_a, terms.multiply(a, b), terms.multiply(not_a, not_b),
                    terms.subtract(terms.one(), terms.multiply(not_a, not_b))})
    EXPECT_TRUE(terms.is_truth(e));
  for (Element e : {x(0), terms.add(a, b), terms.scaled(a, Rational(2)), terms.subtract(a, b),
                    terms.token("ids", 0, 3)})
    EXPECT_FALSE(terms.is_truth(e));
  EXPECT_TRUE(terms.is_truth(terms.token("ids", 1, 2)));
}

TEST_F(TermsTest, WhatHasNoValueIsRefused) {
  EXPECT_THROW(terms.number(std::numeric_limits<double>::infinity()), Unprovable);
  EXPECT_THROW(terms.number(std::nan("")), Unprovable);
  EXPECT_THROW(terms.power(terms.zero(), Rational(-1)), Unprovable);
  EXPECT_THROW(terms.log(terms.zero()), Unprovable);
  EXPECT_EQ(terms.exp(terms.minus_infinity()), terms.zero());
  // Infinity is for masks: what would make another one of it, or no number, is refused.
  EXPECT_EQ(terms.add(x(0), terms.minus_infinity()), terms.minus_infinity());
  EXPECT_THROW(terms.subtract(x(0), terms.minus_infinity()), Unprovable);
  EXPECT_THROW(terms.multiply(x(0), terms.minus_infinity()), Unprovable);
  EXPECT_THROW(terms.multiply(terms.zero(), terms.minus_infinity()), Unprovable);
  EXPECT_THROW(terms.power(x(0), Rational(int64_t{1} << 40)), Unprovable);
}

// The rules of the canonical form against plain arithmetic: whatever is made, the element has the
// value that the same operations have in float64.
TEST_F(TermsTest, RandomTermsHaveTheirValues) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    Terms own;
    Point point(own, 11 + static_cast<uint64_t>(round));
    struct Known {
      Element e;
      double value;
    };
    std::vector<Known> pool;
    for (uint32_t i = 0; i < 4; ++i) {
      const Element e = own.variable("x", i);
      pool.push_back({e, point.value(e)});
    }
    const Element token = own.token("t", 0, 3);
    pool.push_back({token, point.value(token)});
    pool.push_back({own.rational(Rational(3, 2)), 1.5});
    pool.push_back({own.number(std::sqrt(2.0)), std::sqrt(2.0)});
    for (int step = 0; step < 25; ++step) {
      const Known a = pool[random() % pool.size()], b = pool[random() % pool.size()];
      Known made{own.zero(), 0};
      try {
        switch (random() % 14) {
          case 0:
            made = {own.add(a.e, b.e), a.value + b.value};
            break;
          case 1:
            made = {own.subtract(a.e, b.e), a.value - b.value};
            break;
          case 2:
          case 3:
            made = {own.multiply(a.e, b.e), a.value * b.value};
            break;
          case 4:
            if (std::fabs(b.value) < 0.1) continue;
            made = {own.divide(a.e, b.e), a.value / b.value};
            break;
          case 5:
            if (a.value < 0.1) continue;
            made = {own.power(a.e, Rational(1, 2)), std::sqrt(a.value)};
            break;
          case 6:
            if (std::fabs(a.value) > 3) continue;
            made = {own.exp(a.e), std::exp(a.value)};
            break;
          case 7:
            if (a.value < 0.1) continue;
            made = {own.log(a.e), std::log(a.value)};
            break;
          case 8:
            made = {own.named(a.e), a.value};
            break;
          case 9:
            made = {own.relu(a.e), std::max(a.value, 0.0)};
            break;
          case 10:
            made = {own.absolute(a.e), std::fabs(a.value)};
            break;
          case 11:
            made = {own.sign(a.e), a.value > 0 ? 1.0 : a.value < 0 ? -1.0 : 0.0};
            break;
          case 12:
            made = {own.less(a.e, b.e), a.value < b.value ? 1.0 : 0.0};
            break;
          case 13:
            if (std::fabs(a.value) > 3) continue;
            made = {own.sigmoid(a.e), 1 / (1 + std::exp(-a.value))};
            break;
        }
      } catch (const Unprovable&) {
        continue;
      }
      if (std::fabs(made.value) > 1e6 || (made.value != 0 && std::fabs(made.value) < 1e-6))
        continue;
      ASSERT_NEAR(point.value(made.e), made.value, 1e-7 * std::max(1.0, std::fabs(made.value)))
          << "round " << round << ", step " << step;
      pool.push_back(made);
    }
  }
}

TEST_F(TermsTest, WhatDependsOnSeveralTokensIsATableOfTables) {
  const Element a = terms.token("t", 0, 3), b = terms.token("t", 1, 3);
  const auto larger = [](std::span<const Rational> v) {
    return Rational((v[0] - v[1]).numerator() > 0);
  };
  const auto found = terms.map(larger, std::vector<Element>{a, b});
  ASSERT_TRUE(found);
  EXPECT_TRUE(terms.is_table(*found) && !terms.table(*found));
  EXPECT_EQ(terms.step(terms.subtract(a, b)), *found);
  // However it is counted, it is one element.
  EXPECT_EQ(terms.equal(terms.add(a, b), whole(0)),
            terms.multiply(terms.equal(a, whole(0)), terms.equal(b, whole(0))));
  EXPECT_NE(terms.equal(terms.add(a, b), whole(1)),
            terms.multiply(terms.equal(a, whole(0)), terms.equal(b, whole(1))));
  EXPECT_EQ(terms.where(*found, x(0), x(0)), x(0));
  EXPECT_EQ(terms.look_up(terms.add(a, b), [&](int64_t) { return x(3); }), x(3));
  std::vector<Element> many;
  for (uint32_t i = 0; i < 12; ++i) many.push_back(terms.token("u", i, 3));
  const auto mix = [](std::span<const Rational> v) {
    int64_t n = 0;
    for (const Rational& r : v) n = n * 3 + r.numerator();
    return Rational(n * n % 1009);
  };
  EXPECT_THROW(terms.map(mix, many), Unprovable);
}

TEST_F(TermsTest, AnArrangementForEachNumber) {
  EXPECT_EQ(Terms::arrangement(0, 3, 2), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(Terms::arrangement(1, 3, 2), (std::vector<size_t>{0, 2}));
  EXPECT_EQ(Terms::arrangement(5, 3, 2), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(Terms::arrangement(23, 4, 4), (std::vector<size_t>{3, 2, 1, 0}));
}

TEST_F(TermsTest, ARowThatLiesTheSameWayHasOneOrder) {
  const std::vector<Element> row = {x(0), x(1), x(2)};
  std::vector<Element> scaled, raised, turned = {x(2), x(0), x(1)};
  for (Element e : row) {
    scaled.push_back(terms.multiply(terms.exp(x(9)), terms.scaled(e, Rational(3))));
    raised.push_back(terms.exp(e));
  }
  const auto places = terms.places_in_order(row, 2);
  EXPECT_TRUE(terms.has_orders());
  EXPECT_EQ(terms.places_in_order(scaled, 2), places);
  EXPECT_EQ(terms.places_in_order(raised, 2), places);
  const auto taken = [&](const std::vector<Element>& of, Element place) {
    return terms.look_up(place, [&](int64_t v) { return of[static_cast<size_t>(v)]; });
  };
  EXPECT_EQ(taken(turned, terms.places_in_order(turned, 2)[1]), taken(row, places[1]));
  EXPECT_NE(taken(row, places[0]), taken(row, places[1]));
  // Numbers agree with it.
  Point point(terms, 5);
  std::vector<double> values;
  for (Element e : row) values.push_back(point.value(e));
  std::sort(values.rbegin(), values.rend());
  EXPECT_EQ(point.value(taken(row, places[0])), values[0]);
  EXPECT_EQ(point.value(taken(row, places[1])), values[1]);
  EXPECT_THROW(terms.places_in_order(std::vector<Element>{x(0), x(1), x(0)}, 1), Unprovable);
  std::vector<Element> long_row;
  for (uint32_t i = 0; i < 40; ++i) long_row.push_back(x(i));
  EXPECT_THROW(terms.places_in_order(long_row, 2), Unprovable);
}

TEST_F(TermsTest, OfANumberThatIsEqualToAnotherNothingIsSaid) {
  const Element greatest = terms.places_in_order(std::vector<Element>{x(0), x(1)}, 1)[0];
  Given given;
  given["x"] = {2, 2};
  EXPECT_TRUE(Point(terms, given).number(greatest).outside);
  given["x"] = {2, 3};
  EXPECT_FALSE(Point(terms, given).number(greatest).outside);
  EXPECT_EQ(Point(terms, given).value(greatest), 1);
}

// Attention's gradient: sum_j p_j (sum_d g_d v_jd) is sum_d g_d (sum_j p_j v_jd). Each g is a sum
// of many that need not be written out.
TEST_F(TermsTest, ProductsOfSumsAreComparedBySumsThatMayStayLetters) {
  constexpr uint32_t kWidth = 4, kLong = 60;
  std::vector<Element> g, by_columns, by_rows;
  for (uint32_t d = 0; d < kWidth; ++d) {
    std::vector<Element> parts;
    for (uint32_t i = 0; i < kLong; ++i)
      parts.push_back(terms.multiply(terms.variable("a", i), terms.variable("w", d * kLong + i)));
    g.push_back(terms.named(terms.sum(parts)));
  }
  const auto v = [&](uint32_t j, uint32_t d) { return terms.variable("v", j * kWidth + d); };
  const auto p = [&](uint32_t j) { return terms.exp(x(j)); };
  for (uint32_t j = 0; j < 3; ++j) {
    std::vector<Element> parts;
    for (uint32_t d = 0; d < kWidth; ++d) parts.push_back(terms.multiply(g[d], v(j, d)));
    by_columns.push_back(terms.multiply(p(j), terms.named(terms.sum(parts))));
  }
  for (uint32_t d = 0; d < kWidth; ++d) {
    std::vector<Element> parts;
    for (uint32_t j = 0; j < 3; ++j) parts.push_back(terms.multiply(p(j), v(j, d)));
    by_rows.push_back(terms.multiply(g[d], terms.named(terms.sum(parts))));
  }
  EXPECT_TRUE(terms.same(terms.sum(by_columns), terms.sum(by_rows)));
  EXPECT_FALSE(terms.same(terms.sum(by_columns), terms.scaled(terms.sum(by_rows), Rational(2))));
  by_rows.pop_back();
  EXPECT_FALSE(terms.same(terms.sum(by_columns), terms.sum(by_rows)));
}

}  // namespace
}  // namespace opguard::proving
