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

// Functions of which only numbers know more.
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
using Parts = std::vector<Part>;      // by monomial
using Factors = std::vector<Factor>;  // by atom
using Sum = std::map<Monomial, Rational>;
// Those that are kept: they stay where they are.
using PartList = std::span<const Part>;
using FactorList = std::span<const Factor>;

inline uint64_t hashed(const Part& p) {
  return mixed(mixed(p.monomial, static_cast<uint64_t>(p.factor.numerator())),
               static_cast<uint64_t>(p.factor.denominator()));
}
inline uint64_t hashed(const Factor& f) { return mixed(f.atom, static_cast<uint32_t>(f.exponent)); }

// factor * monomial.
struct Product {
  Rational factor;
  Monomial monomial = 0;
  bool operator==(const Product&) const = default;
};

class Terms {
 public:
  Terms();

  // ---- What there is
  PartList parts(Element e) const { return elements_[e]; }
  FactorList factors(Monomial m) const { return monomials_[m]; }
  const AtomValue& atom(Atom a) const { return atoms_[a]; }
  // Whatever is made from now on is made by this node (of_node()); 0: by nobody.
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
  // The constant that it is.
  std::optional<Rational> constant(Element e) const;
  const std::string& name(uint32_t of) const { return names_[of]; }
  uint32_t token_size(uint32_t token) const { return tokens_[token].size; }
  const std::string& token_name(uint32_t token) const { return tokens_[token].name; }
  uint32_t token_position(uint32_t token) const { return tokens_[token].position; }
  // "tokens[3]"
  std::string token_text(uint32_t token) const;

  // ---- Making them
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
  Element add(Element a, Element b) { return combine(a, b, Rational(1)); }
  Element subtract(Element a, Element b) { return combine(a, b, Rational(-1)); }
  Element scaled(Element a, const Rational& by);
  Element sum(std::span<const Element> of);
  // The sum of a[i] * b[i]: what multiply() and sum() make of them, without keeping the products.
  Element dot(std::span<const Element> a, std::span<const Element> b);
  Element multiply(Element a, Element b);
  Element divide(Element a, Element b) { return multiply(a, power(b, Rational(-1))); }
  Element power(Element e, const Rational& exponent);
  Element exp(Element e);
  Element log(Element e);
  Element function(Function f, std::vector<Element> arguments);
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
  // Whether it is 0 or 1 whatever the unknowns are; false where it cannot tell.
  bool is_truth(Element e) const;
  enum class Sign : uint8_t { unknown, not_negative, positive };
  static constexpr int kSignDepth = 3;  // of sums within sums
  Sign sign_of(Element e, int depth = kSignDepth) const;
  static bool is_step(const AtomValue& atom);

  // ---- What depends on tokens
  // The values that an element takes as the one token it depends on takes its; one where on none.
  struct Table {
    std::optional<uint32_t> token;
    std::vector<Rational> values;
  };
  // None where it is no such element.
  std::optional<Table> table(Element e) const;
  // Whether it depends on nothing but tokens, on several perhaps.
  bool is_table(Element e) const;
  // A function of elements that depend on nothing but tokens; none where they depend on reals.
  // Throws Unprovable where there are more than kMostCases.
  using OfRationals = std::function<Rational(std::span<const Rational>)>;
  std::optional<Element> map(const OfRationals& f, std::span<const Element> of);
  // condition ? a : b; throws Unprovable where the condition depends on reals.
  Element where(Element condition, Element a, Element b);
  // rows[index]; throws Unprovable.
  Element look_up(Element index, const std::function<Element(int64_t)>& row);
  static constexpr size_t kMostCases = 4096;

  // ---- Orders of reals
  // The places of the `count` greatest of a row, the greatest first. How they lie is an unknown of
  // its own, as a token is. Equal reals have no order: that there are none is assumed.
  std::vector<Element> places_in_order(std::span<const Element> row, size_t count);
  struct Order {
    std::vector<Element> row;
    size_t count = 0;  // 0: it is a token of the program
  };
  const Order& order(uint32_t token) const { return tokens_[token].order; }
  // The places that an order's value stands for.
  static std::vector<size_t> arrangement(size_t value, size_t length, size_t count);
  // Whether the program asked for an order.
  bool has_orders() const { return has_orders_; }
  static constexpr size_t kMostArrangements = 1000;

  // ---- Names of sums
  // The element as a rational times a monomial; a sum becomes one atom, common factors outside.
  Product product(Element e);
  // What product() puts outside of them: the smallest power of each atom that all have.
  Factors shared(PartList parts) const;
  // The first coefficient that is no lone constant, and the element divided by it. An eps would
  // leave large numbers behind.
  std::pair<Rational, Element> primitive(Element e);
  // An element that stands for the sum, as one atom.
  Element named(Element e);
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
