// prove/terms.h: numbers that nobody knows yet, as terms in one canonical form.
//
//   Element    a linear combination: 2 * x0 * x1^-1 + 1/3 * s
//   Monomial   a product of powers of atoms: x0 * x1^-1
//   Atom       a variable, an indicator [token = v], an irrational constant,
//              a function of elements (exp, log, root, ...), a sum that has a name
//
// Each is kept once (hash consing), so that equal ids are equal reals: that is the proof. Unequal
// ids say nothing; evaluate.h then looks for numbers that tell them apart.
//
// A product does not multiply sums out. Factors that all parts of a sum share go outside, and what
// is left becomes one atom. So a loss scale, 1 / ranks and the shift of a soft maximum cancel.
// Counterexample: (x + y)^2 and x^2 + 2xy + y^2 are two elements; same() writes sums out.
//
// A token is an unknown whole number below its size. What depends on one is a table: a sum over
// its values v of [token = v] * element, of which the last indicator is left out. Of several tokens
// it is a table of tables. The order of reals that nobody knows is a token too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "prove/interned.h"
#include "prove/rational.h"

namespace opguard::proving {

using Element = uint32_t;
using Monomial = uint32_t;
using Atom = uint32_t;

// What an atom is. Beside each kind: which fields of AtomValue it uses. The others keep their
// defaults, so that comparing all fields compares the atoms.
enum class AtomKind : uint8_t {
  variable,   // first: name, second: position
  sum,        // of: the element that has the name
  exp,        // of
  log,        // of
  root,       // of, first: degree
  function,   // first: which, arguments
  indicator,  // first: token, second: value
  number,     // an irrational constant, positive
  infinity,   // -inf, in masks alone
};

// Functions of which only numbers know more: tanh(x) and tanh(y) are one where x and y are one.
// What is made of others is no such function: sinh is written by exp, min by maximum.
enum class Function : uint32_t {
  maximum,
  tanh,
  erf,
  sin,
  cos,
  tan,
  arcsine,
  arctangent,
  angle,  // atan2
  absolute,
  sign,
  step,  // 1 above 0, else 0
  inverse_erf,
  log_gamma,
  digamma,
};

struct AtomValue {
  AtomKind kind;
  uint32_t first = 0, second = 0;
  Element of = 0;
  std::vector<Element> arguments = {};
  double number = 0;  // as a float32: one constant, whatever type holds it
  bool operator==(const AtomValue&) const = default;
};

//   2 x0 x1^-1 + 1/3 s     two Parts: {x0 x1^-1, 2} and {s, 1/3}
//   x0 x1^-1               two Factors: {x0, 1} and {x1, -1}
//
// Both are sorted and hold no zero. Monomial 0 is the empty product, so {0, 5} is the number 5.
struct Part {
  Monomial monomial;
  Rational factor;
  bool operator==(const Part&) const = default;
};
struct Factor {
  Atom atom;
  int32_t exponent;
  bool operator==(const Factor&) const = default;
};
// Being made. Only intern() turns them into ids, and it takes them as they are: sorting is the
// caller's.
using Parts = std::vector<Part>;      // by monomial
using Factors = std::vector<Factor>;  // by atom
// A sum while parts are added to it, in any order. Zeros may stand in it; made() leaves them out.
using Sum = std::map<Monomial, Rational>;
// Those that are kept: they stay where they are.
using PartList = std::span<const Part>;
using FactorList = std::span<const Factor>;

inline uint64_t hashed(const Part& p) {
  return mixed(mixed(p.monomial, static_cast<uint64_t>(p.factor.numerator())),
               static_cast<uint64_t>(p.factor.denominator()));
}
inline uint64_t hashed(const Factor& f) { return mixed(f.atom, static_cast<uint32_t>(f.exponent)); }

// factor * monomial: an element of one part, or any element once its sums have names.
struct Product {
  Rational factor;
  Monomial monomial = 0;
  bool operator==(const Product&) const = default;
};

// The table of all terms of a check. Model and ranks share one, since ids are equal in one table
// only. Nothing is ever freed: memory grows with the number of different terms.
//
// Operations throw Unprovable where a coefficient needs more than 64 bits, or infinity has no
// meaning.
class Terms {
 public:
  Terms();

  // ---- What there is
  // These two stay valid for good: lists lie in an arena.
  PartList parts(Element e) const { return elements_[e]; }
  FactorList factors(Monomial m) const { return monomials_[m]; }
  // Only until the next atom is made, which may move them. So a loop that makes terms copies the
  // value.
  const AtomValue& atom(Atom a) const { return atoms_[a]; }
  // Whatever is made from now on is made by this node (Rank::as_maker()); 0: by nobody. A monomial
  // keeps its first maker: with that blame.h finds who began a wrong sum.
  void set_maker(uint64_t maker) { maker_ = maker; }
  uint64_t maker(Monomial m) const { return makers_[m]; }
  size_t monomials() const { return monomials_.size(); }
  // An irrational constant, as exact as it was met first.
  double number_of(Atom a) const {
    auto at = numbers_.find(a);
    return at == numbers_.end() ? atoms_[a].number : at->second;
  }
  size_t elements() const { return elements_.size(); }
  size_t atoms() const { return atoms_.size(); }
  Element zero() const { return zero_; }
  Element one() const { return one_; }
  Element minus_infinity() const { return minus_infinity_; }
  // The rational that it is; none of a variable, a token, an irrational constant.
  std::optional<Rational> constant(Element e) const;
  const std::string& name(uint32_t of) const { return names_[of]; }
  uint32_t token_size(uint32_t token) const { return tokens_[token].size; }
  const std::string& token_name(uint32_t token) const { return tokens_[token].name; }
  uint32_t token_position(uint32_t token) const { return tokens_[token].position; }
  // "tokens[3]"
  std::string token_text(uint32_t token) const;

  // ---- Making them
  //   number(0.1)          1/10: a float is the fraction that it is the rounding of
  //   number(0.70710678f)  root(2) / 2
  //   number(0.54030231f)  an atom: a cosine is neither
  Element rational(const Rational& value);
  Element number(double value);  // what rational_of() finds; a root; else an atom
  Element variable(const std::string& name, uint32_t position);
  // A variable that stands for a value nobody can compute: no number of it says anything.
  Element stand_in(const std::string& name, uint32_t position);
  bool is_stand_in(const AtomValue& atom) const {
    return atom.kind == AtomKind::variable && stand_ins_.contains(atom.first);
  }
  // One of the whole numbers 0 to size - 1, nobody knows which.
  Element token(const std::string& name, uint32_t position, uint32_t size);
  // A sum of parts, by merging: linear in the parts of both. minus_infinity() swallows what is
  // added to it.
  Element add(Element a, Element b) { return combine(a, b, Rational(1)); }
  Element subtract(Element a, Element b) { return combine(a, b, Rational(-1)); }
  Element scaled(Element a, const Rational& by);
  Element sum(std::span<const Element> of);
  // The sum of a[i] * b[i]: what multiply() and sum() make of them. The products are not kept as
  // elements: of a matrix product nobody else would ask for them.
  Element dot(std::span<const Element> a, std::span<const Element> b);
  //   (x + y) * z    one part: the atom [x + y] beside z. Sums are not multiplied out
  //   2x * 3y        6 x y
  //   table * any    term by term, so that [t = 0] [t = 1] is seen to be nothing
  Element multiply(Element a, Element b);
  Element divide(Element a, Element b) { return multiply(a, power(b, Rational(-1))); }
  //   power(2 x y, -1)      1/2 x^-1 y^-1: that x y is not zero is assumed
  //   power(4 x, 3/2)       8 root(x)^3
  //   power(x^2, 1/2)       a root: it is not x, which may be negative
  Element power(Element e, const Rational& exponent);
  //   exp(x + 2 y)          exp(x) exp(y)^2
  //   exp(3 log(x))         x^3
  //   log(x^2 exp(y))       log(x^2) + y
  Element exp(Element e);
  Element log(Element e);
  Element function(Function f, std::vector<Element> arguments);
  // Maxima within are taken apart, equal ones are one. max(x, 0) is relu(x); max(-inf, x) is x.
  Element maximum(std::span<const Element> of);
  // An element of a Sum, of a product, of an atom.
  Element made(const Sum& sum);
  Element of_product(const Product& p) {
    const Part part{p.monomial, p.factor};
    return intern(PartList(&part, 1));
  }
  Element of_atom(Atom a, int32_t exponent = 1, const Rational& factor = 1);

  // ---- Conditions on reals: 1 where they hold, else 0
  Element step(Element e);  // e > 0
  Element less(Element a, Element b);
  Element equal(Element a, Element b);
  Element relu(Element e);
  Element absolute(Element e);
  Element sign(Element e);
  Element sigmoid(Element e);  // 1 / (1 + exp(-e))
  // Whether it is 0 or 1 whatever the unknowns are; false where it cannot tell. relu(x) is none,
  // step(x) step(y) is.
  bool is_truth(Element e) const;
  // What is negative counts as unknown: who wants to know asks about scaled(e, -1). exp(x) + y^2 is
  // positive, x y is unknown.
  enum class Sign : uint8_t { unknown, not_negative, positive };
  static constexpr int kSignDepth = 3;  // of sums within sums
  Sign sign_of(Element e, int depth = kSignDepth) const;
  static bool is_step(const AtomValue& atom);

  // The values that an element takes as the one token it depends on takes its; one where on none.
  //   1 + 4 [ids[0] = 2], of 4 values     ids[0]: 1 1 5 1
  struct Table {
    std::optional<uint32_t> token;
    std::vector<Rational> values;
  };
  // None where it is no such element.
  std::optional<Table> table(Element e) const;
  // Whether it depends on nothing but tokens, on several perhaps. A constant does.
  bool is_table(Element e) const;
  // A function of elements that depend on nothing but tokens; none where they depend on reals.
  //   map(floor(v[0] / 2), {t}), t of 4 values     0 0 1 1
  // It is asked once for each case that leaves other elements. Throws Unprovable where there are
  // more than kMostCases of them.
  using OfRationals = std::function<Rational(std::span<const Rational>)>;
  std::optional<Element> map(const OfRationals& f, std::span<const Element> of);
  // condition ? a : b; throws Unprovable where the condition depends on reals.
  Element where(Element condition, Element a, Element b);
  // rows[index]; throws Unprovable. `row` is asked for each value that the index may have, and
  // checks its bounds.
  Element look_up(Element index, const std::function<Element(int64_t)>& row);
  static constexpr size_t kMostCases = 4096;

  // The places of the `count` greatest of a row, the greatest first. How they lie is an unknown of
  // its own, as a token is. Equal reals have no order: that there are none is assumed.
  //   places_in_order({a, b, c}, 1)     0, 1 or 2, as the row's unknown is
  std::vector<Element> places_in_order(std::span<const Element> row, size_t count);
  struct Order {
    std::vector<Element> row;
    size_t count = 0;  // 0: it is a token of the program
  };
  const Order& order(uint32_t token) const { return tokens_[token].order; }
  // The places that an order's value stands for, the greatest first.
  //   arrangement(1, 3, 2)     {0, 2}: row[0] is the greatest, row[2] the next
  static std::vector<size_t> arrangement(size_t value, size_t length, size_t count);
  // Whether the program asked for an order.
  bool has_orders() const { return has_orders_; }
  static constexpr size_t kMostArrangements = 1000;

  // The element as a rational times a monomial; a sum becomes one atom, common factors outside.
  //   3 x y + 6 x z     3 * x [y + 2 z]
  // So what two spellings share cancels: it is compared where ids differ.
  Product product(Element e);
  // What product() puts outside of them: the smallest power of each atom that all have.
  Factors shared(PartList parts) const;
  // The first coefficient that is no lone constant, and the element divided by it. An eps would
  // leave large numbers behind.
  //   1/100000 + 2 x + 4 y     2 and 1/200000 + x + 2 y
  std::pair<Rational, Element> primitive(Element e);
  // An element that stands for the sum, as one atom. Its primitive() has the name, so that a sum
  // and twice the sum have one.
  Element named(Element e);
  // Equal over the reals though ids differ: names are written out until nothing is left. True is a
  // proof, false says nothing. term_sums.cc and term_equality.cc have the two ways.
  bool same(Element a, Element b) { return same_by_sums(a, b) || same_by_products(a, b); }
  bool same_by_sums(Element a, Element b);
  bool same_by_products(Element a, Element b);
  // By all questions of same_by_products() so far: parts of sums that were looked at or made.
  uint64_t effort_spent() const { return effort_spent_; }

 private:
  struct Token {
    std::string name;
    uint32_t position, size;
    Order order = {};
  };
  struct AtomHash {
    size_t operator()(const AtomValue& a) const;
  };

  // sign * monomial * conditions, up to a positive factor.
  struct Bare {
    int sign;
    Monomial monomial;
    Element conditions;
  };
  Bare bare(Element e);
  Sign sign_of_atom(const AtomValue& atom, int depth) const;
  bool is_truth_negated(Element e) const;
  Atom intern(AtomValue value);
  Monomial intern(FactorList factors);
  Element intern(PartList parts);
  Element collected(Parts& all);
  Element combine(Element a, Element b, const Rational& of_b);
  Element root(const Rational& of);
  // factor 0: two values of one token exclude each other.
  Product times(Monomial a, Monomial b);
  Product normal(Factors& factors);
  Product without_whole_root(const Factors& factors, Atom root);
  Product raised(Monomial m, int32_t by);
  Element expanded(Element a, Element b);
  Sum without_lone_sums(const Sum& sum) const;
  bool same_within(Element a, Element b, int& rounds);
  bool vanishes_by_factors(const Sum& rest, bool youngest, int& rounds);
  bool vanishes_by_sums(Sum rest, int& rounds);
  struct Effort;
  bool seems_nothing(const Sum& sum, Effort& effort) const;
  bool vanishes(Sum rest, Effort& effort);
  std::optional<Sum> written_out(const std::map<int32_t, Sum>& beside, PartList of, Effort& effort);
  bool has_indicator(Element e) const;
  std::optional<uint32_t> first_token(std::span<const Element> of) const;
  using CasesDone = std::map<std::vector<Element>, Element>;
  Element where_within(Element condition, Element a, Element b, size_t& cases);
  Element look_up_within(Element index, const std::function<Element(int64_t)>& row, size_t& cases);
  Element mapped(const OfRationals& f, std::vector<Element> of, CasesDone& done);
  std::vector<Element> ordered_as(std::span<const Element> row);
  Element restricted(Element e, uint32_t token, uint32_t value);
  Element by_cases(uint32_t token, const std::function<Element(uint32_t)>& of);
  bool lone(Monomial m, AtomKind kind) const {
    const FactorList f = monomials_[m];
    return f.size() == 1 && f[0].exponent == 1 && atoms_[f[0].atom].kind == kind;
  }

  std::vector<AtomValue> atoms_;
  Interned<Factor> monomials_;
  std::vector<uint64_t> makers_;  // of monomials
  uint64_t maker_ = 0;
  Interned<Part> elements_;
  std::unordered_map<AtomValue, Atom, AtomHash> atom_of_;
  llvm::DenseMap<Element, Product> product_of_;  // of sums
  Parts scratch_;                                // of dot()
  Factors together_;                             // of times()
  std::unordered_map<Atom, double> numbers_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> name_of_;
  std::set<uint32_t> stand_ins_;  // names
  std::vector<Token> tokens_;
  std::map<std::pair<std::string, uint32_t>, uint32_t> token_of_;
  std::map<std::pair<std::vector<Element>, size_t>, uint32_t> order_of_;
  bool has_orders_ = false;
  uint64_t effort_spent_ = 0;
  Element zero_ = 0, one_ = 0, minus_infinity_ = 0;
};

}  // namespace opguard::proving
