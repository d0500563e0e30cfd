// Each identity stands for all terms at once, where algebra.h asks about single calls. Powers are
// written out for small exponents: x^-2 as 1 / (x x). Roots are numbers r with r r = x, so that no
// law of roots is assumed.
//
// Counterexample: nothing about exp and log is here. Their laws are assumptions (kLaws), and cannot
// be proved by arithmetic.
#include "prove/identities.h"

#include <sstream>

namespace opguard::proving {
namespace {

// In SMT-LIB 2. (step x) and the like are defined below. t, v, w are a token and its values.
constexpr Identity kIdentities[] = {
    {"powers of one base add up", "Terms::times", "x", "(distinct x 0.0)",
     "(* x x (/ 1.0 (* x x x)))", "(/ 1.0 x)"},
    {"a shared factor goes outside of a sum", "Terms::product", "c x y", "true",
     "(+ (* c x) (* c y))", "(* c (+ x y))"},
    {"a shared denominator goes outside of a sum", "Terms::product", "c x y", "(distinct c 0.0)",
     "(+ (/ x c) (/ y c))", "(* (/ 1.0 c) (+ x y))"},
    {"a power of a product is the product of powers", "Terms::power", "c x",
     "(and (distinct c 0.0) (distinct x 0.0))", "(/ 1.0 (* c x c x))",
     "(* (/ 1.0 (* c c)) (/ 1.0 (* x x)))"},
    {"a root, squared, is what it is of", "Terms::without_whole_root", "x r",
     "(and (> x 0.0) (>= r 0.0) (= (* r r) x))", "(* r r r)", "(* r x)"},
    {"so below a line", "Terms::without_whole_root", "x r",
     "(and (> x 0.0) (>= r 0.0) (= (* r r) x))", "(/ 1.0 (* r r r))", "(* (/ 1.0 r) (/ 1.0 x))"},
    {"a third root, cubed", "Terms::without_whole_root", "x r",
     "(and (> x 0.0) (>= r 0.0) (= (* r r r) x))", "(* r r r r)", "(* r x)"},
    {"whole squares stand before a root", "Terms::root", "x p r s",
     "(and (> x 0.0) (> p 0.0) (>= r 0.0) (= (* r r) (* p p x)) (>= s 0.0) (= (* s s) x))", "r",
     "(* p s)"},
    {"a root of a fraction", "Terms::root", "n d r s",
     "(and (> n 0.0) (> d 0.0) (>= r 0.0) (= (* r r) (/ n d)) (>= s 0.0) (= (* s s) (* n d)))", "r",
     "(/ s d)"},
    {"a power of a root is the root's power", "Terms::power", "x r s",
     "(and (> x 0.0) (>= r 0.0) (= (* r r) x) (>= s 0.0) (= (* s s) (* x x x)))", "s", "(* r r r)"},
    {"an indicator is its own power", "Terms::normal", "t v", "true", "(* (is t v) (is t v))",
     "(is t v)"},
    {"two values of a token exclude each other", "Terms::normal", "t v w", "(distinct v w)",
     "(* (is t v) (is t w))", "0.0"},
    {"a table leaves its last value out", "Terms::by_cases", "t x y z", "true",
     "(ite (= t 0.0) x (ite (= t 1.0) y z))",
     "(+ z (* (is t 0.0) (- x z)) (* (is t 1.0) (- y z)))"},
    {"a product of tables goes value by value", "Terms::expanded", "t x y a b", "true",
     "(* (+ y (* (is t 0.0) (- x y))) (+ b (* (is t 0.0) (- a b))))",
     "(+ (* y b) (* (is t 0.0) (- (* x a) (* y b))))"},
    {"a step is its own power", "Terms::normal", "x", "true", "(* (step x) (step x))", "(step x)"},
    {"what is positive drops out of a step", "Terms::bare", "c x", "(> c 0.0)", "(step (* c x))",
     "(step x)"},
    {"a condition stands outside of a step", "Terms::bare", "c x", "(or (= c 0.0) (= c 1.0))",
     "(step (* c x))", "(* c (step x))"},
    {"only the parity of an exponent counts in a step", "Terms::bare", "x y", "true",
     "(step (* y x x x))", "(step (* y x))"},
    {"so of a denominator", "Terms::bare", "x y", "(distinct x 0.0)", "(step (/ y (* x x x)))",
     "(step (* y x))"},
    {"so of a sign", "Terms::sign", "c x y", "(and (> c 0.0) (distinct x 0.0))",
     "(sign (* c y x x x))", "(sign (* y x))"},
    {"a condition stands outside of a sign", "Terms::sign", "c x", "(or (= c 0.0) (= c 1.0))",
     "(sign (* c x))", "(* c (sign x))"},
    {"a negative factor turns a sign", "Terms::sign", "c x", "(< c 0.0)", "(sign (* c x))",
     "(- (sign x))"},
    {"x < y is a step", "Terms::less", "x y", "true", "(ite (< x y) 1.0 0.0)", "(step (- y x))"},
    {"x = y is two of them", "Terms::equal", "x y", "true", "(ite (= x y) 1.0 0.0)",
     "(* (- 1.0 (step (- y x))) (- 1.0 (step (- x y))))"},
    {"a relu is a product", "Terms::relu", "x", "true", "(ite (> x 0.0) x 0.0)", "(* x (step x))"},
    {"the maximum of x and 0 is a relu", "Terms::maximum", "x", "true", "(most x 0.0)",
     "(* x (step x))"},
    {"a maximum of maxima is one", "Terms::maximum", "x y z", "true", "(most (most x y) z)",
     "(most x (most z (most y x)))"},
    {"a factor stands outside of a magnitude", "Terms::absolute", "c x", "true", "(size (* c x))",
     "(* (size c) (size x))"},
    {"what is not negative is its magnitude", "Terms::absolute", "x", "(>= x 0.0)", "(size x)",
     "x"},
    {"two spellings of the sigmoid", "Terms::sigmoid", "e", "(> e 0.0)",
     "(/ 1.0 (+ 1.0 (/ 1.0 e)))", "(/ e (+ e 1.0))"},
    {"the shift of a soft maximum cancels", "Terms::product", "p q m",
     "(and (> p 0.0) (> q 0.0) (> m 0.0))", "(/ (/ p m) (+ (/ p m) (/ q m)))", "(/ p (+ p q))"},
    {"one factor of odd power has the product's sign", "Terms::log", "c x y",
     "(and (> c 0.0) (> (* c x x x y y) 0.0))", "(step x)", "1.0"},
    {"several of them have it together", "Terms::log", "c x y z",
     "(and (> c 0.0) (> (* c x x x y z z) 0.0))", "(step (* x y))", "1.0"},
    {"what is positive and what is not negative add up to what is positive", "Terms::sign_of",
     "x y", "(and (> x 0.0) (>= y 0.0))", "(step (+ x y))", "1.0"},
    {"an even power is not negative", "Terms::sign_of", "x", "true", "(size (* x x x x))",
     "(* x x x x)"},
    {"a factor beside two sums", "Terms::vanishes_by_factors", "c x y", "true",
     "(- (* c x) (* c y))", "(* c (- x y))"},
    {"a fraction is zero where it is, times its denominators", "Terms::vanishes_by_sums", "a b x y",
     "(and (distinct x 0.0) (distinct y 0.0))", "(* x y (+ (/ a x) (/ b y)))",
     "(+ (* a y) (* b x))"},
};

constexpr const char* kDefinitions =
    "(define-fun step ((x Real)) Real (ite (> x 0.0) 1.0 0.0))\n"
    "(define-fun size ((x Real)) Real (ite (< x 0.0) (- x) x))\n"
    "(define-fun sign ((x Real)) Real (ite (> x 0.0) 1.0 (ite (< x 0.0) (- 1.0) 0.0)))\n"
    "(define-fun most ((x Real) (y Real)) Real (ite (> x y) x y))\n"
    "(define-fun is ((t Real) (v Real)) Real (ite (= t v) 1.0 0.0))\n";

}  // namespace

std::span<const Identity> identities() { return kIdentities; }

AlgebraQuestion question_of(const Identity& identity) {
  AlgebraQuestion question{std::string(identity.name) + " (" + identity.where + ")", kDefinitions};
  std::istringstream reals(identity.reals);
  for (std::string name; reals >> name;) question.script += "(declare-const " + name + " Real)\n";
  question.script += std::string("(assert ") + identity.given + ")\n(assert (distinct " +
                     identity.left + " " + identity.right + "))\n";
  return question;
}

}  // namespace opguard::proving
