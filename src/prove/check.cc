// The way to a verdict, from cheap to dear. Each step leaves fewer elements open:
//
//   1  ids or products are one        equal
//   2  numbers at six points differ   refuted
//   3  same() writes sums out         equal
//   4  all once more with namesakes   steps 1 to 3 again
//   5  the solver                     equal, or the plan stays unknown
//
// Only step 2 refutes, and it never proves. Steps 3 and 5 only prove. So numbers that agree by
// chance cost time and cannot make a proof.
#include "prove/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "prove/blame.h"
#include "prove/collectives.h"
#include "prove/evaluate.h"
#include "prove/last_resort.h"
#include "prove/namesakes.h"
#include "prove/opaque.h"
#include "prove/operators.h"
#include "prove/rendezvous.h"
#include "prove/sides.h"

namespace opguard::proving {
namespace {

constexpr uint64_t kPoints = 6;      // the second half of them of positive variables
constexpr double kDifferent = 1e-6;  // of the sum of their magnitudes
constexpr double kRounded = 1000;    // times what rounding has done

// The index of the n-th element in row-major order: 5 of {2, 3} is {1, 2}.
std::vector<int64_t> position_in(const Shape& shape, size_t n) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    position[d] = static_cast<int64_t>(n) % shape[d];
    n /= static_cast<size_t>(shape[d]);
  }
  return position;
}

// Both sides once more, written down, and what they say of a wrong output. The terms are the same
// table, so what is made again has the ids that it had. `ran` are the ranks of the first run: who
// made what is in them.
Blame explain(Terms& terms, const Captured& captured, KnownSums& known, OpaqueCalls& opaque,
              const WrongOutput& output, const std::vector<Rank>& ran, Monomial right) {
  std::vector<Rank> model;
  model.push_back(model_of(terms, captured, known, &opaque));
  History of_model(model);
  for (Rank& rank = model[0]; !rank.done(); rank.advance()) {
    of_model.arrive(rank);
    apply(rank);
    of_model.leave(rank);
  }
  std::vector<Rank> ranks = ranks_of(terms, captured, known, &opaque);
  History of_plan(ranks);
  run_together(terms, ranks, &of_plan);
  return blame(terms, output, ran, right, Familiar(terms, of_model), of_plan);
}

// One output of one rank that is not, or not yet, known to be right.
struct Suspect {
  Rank* rank;
  std::string output;
  std::vector<size_t> places;
  std::vector<Element> want, got;  // of places
  Shape shape;
};

}  // namespace

// With `by_namesakes` the ranks' elements are compared with the model's as they arise. `open` is
// set where outputs have other ids, and neither numbers nor same() decide. Then the caller tries
// once more with namesakes.
static Result checked(const Captured& captured, const Grants& grants, bool by_namesakes,
                      Solver* solver, bool& open) {
  Result result;
  open = false;
  result.thin = thin_inputs(captured);
  Terms terms;
  KnownSums known;
  OpaqueCalls opaque(grants.opaque);
  Rank model = model_of(terms, captured, known, &opaque);
  result.logical_operators = captured.logical.nodes.size();
  while (!model.done()) {
    try {
      if (meets(model.node())) throw Unprovable("the logical model communicates");
      apply(model);
    } catch (const Unprovable& e) {
      result.why = std::string("the logical model: ") + e.what();
      result.at = statement_of(model, model.node());
      return result;
    }
    model.advance();
  }
  std::map<std::string, Array> want;
  for (const auto& [name, tensor] : captured.logical.outputs) want[name] = model.read(tensor);

  for (const std::string& name : grants.dropped)
    if (want.erase(name) > 0) result.dropped.insert(name);
  // The ranks have not begun: every monomial below this number is the model's own. Blame goes by
  // that.
  const auto right = static_cast<Monomial>(terms.monomials());
  std::optional<Namesakes> namesakes;
  if (by_namesakes) namesakes.emplace(terms, static_cast<Element>(terms.elements()));
  std::vector<Rank> ranks =
      ranks_of(terms, captured, known, &opaque, namesakes ? &*namesakes : nullptr);
  for (const Trace& trace : captured.ranks) result.plan_operators += trace.nodes.size();
  if (const std::optional<Stopped> stopped = run_together(terms, ranks)) {
    result.verdict = stopped->refuted ? Verdict::refuted : Verdict::unknown;
    result.why = stopped->why;
    result.at = stopped->at;
    result.waiting = stopped->waiting;
    result.terms = terms.elements();
    result.opaque = opaque.used();
    return result;
  }
  result.opaque = opaque.used();

  result.orders = terms.has_orders();
  std::vector<Suspect> suspects;
  std::set<std::string> seen;
  // Of each output of the model's: which elements some rank has. Replicas have them several times;
  // a gap is refuted.
  std::map<std::string, std::vector<bool>> covered;
  for (Rank& rank : ranks)
    for (const auto& [name, tensor] : rank.trace().outputs) {
      auto logical = want.find(name);
      if (result.dropped.contains(name)) continue;
      if (logical == want.end()) {
        if (std::find(result.not_compared.begin(), result.not_compared.end(), name) ==
            result.not_compared.end())
          result.not_compared.push_back(name);
        continue;
      }
      seen.insert(name);
      Array expected = logical->second;
      if (const std::vector<int64_t>* place = place_of_output(rank.trace(), name)) {
        Array mine{tensor.shape, {}};
        std::vector<bool>& cover = covered[name];
        cover.resize(expected.at.size());
        for (int64_t i : *place) {
          if (static_cast<size_t>(i) >= expected.at.size()) {
            result.verdict = Verdict::refuted;
            result.why = name + " on rank " + std::to_string(rank.number()) + " has element " +
                         std::to_string(i) + " of a tensor, the model's has " +
                         std::to_string(expected.at.size()) + " elements";
            return result;
          }
          mine.at.push_back(expected.at.at(static_cast<size_t>(i)));
          cover[static_cast<size_t>(i)] = true;
        }
        expected = std::move(mine);
      } else {
        covered[name].assign(expected.at.size(), true);
      }
      const Array found = rank.look(tensor);
      if (found.at.size() != expected.at.size()) {
        result.verdict = Verdict::refuted;
        result.why = name + " on rank " + std::to_string(rank.number()) + " has " +
                     std::to_string(found.at.size()) + " elements, its part of the model's has " +
                     std::to_string(expected.at.size());
        return result;
      }
      ++result.outputs;
      result.elements += found.at.size();
      Suspect s{&rank, name, {}, {}, {}, found.shape};
      for (size_t i = 0; i < found.at.size(); ++i) {
        if (found.at[i] == expected.at[i]) continue;
        // Refuted and not unknown: the plan gives memory as its output that it never wrote.
        if (found.at[i] == Rank::kUnwritten) {
          result.verdict = Verdict::refuted;
          result.why = name + " on rank " + std::to_string(rank.number()) + " is never written";
          return result;
        }
        if (terms.product(found.at[i]) == terms.product(expected.at[i])) continue;
        s.places.push_back(i);
        s.want.push_back(expected.at[i]);
        s.got.push_back(found.at[i]);
      }
      if (!s.places.empty()) suspects.push_back(std::move(s));
    }
  result.terms = terms.elements();
  for (const auto& [name, array] : want)
    if (!seen.contains(name)) {
      result.verdict = Verdict::refuted;
      result.why = "no rank has " + name;
      return result;
    }
  for (const auto& [name, cover] : covered)
    if (const auto gap = std::find(cover.begin(), cover.end(), false); gap != cover.end()) {
      result.verdict = Verdict::refuted;
      result.why =
          "no rank has element " + std::to_string(gap - cover.begin()) + " of the model's " + name;
      return result;
    }
  if (suspects.empty()) {
    result.verdict = Verdict::proved;
    return result;
  }
  // Ids that differ say nothing: numbers do. An output that numbers tell apart is refuted. Where
  // none is, and some stay open, nothing is known.
  std::vector<Point> points;
  for (uint64_t seed = 1; seed <= kPoints; ++seed)
    points.emplace_back(terms, seed, seed > kPoints / 2);
  // The first point that tells them apart, whatever rounding has done to the numbers. The distance
  // has to be above both bounds: a millionth of the two, and a thousand times the rounding that was
  // seen.
  const auto apart = [&](Element want_, Element got_) -> Point* {
    for (Point& point : points) {
      const Number x = point.number(want_), y = point.number(got_);
      const long double distance = std::fabs(x.wide - y.wide);
      if (!x.outside && !y.outside &&
          distance > kDifferent * (std::fabs(x.wide) + std::fabs(y.wide)) &&
          distance > kRounded * (x.rounding() + y.rounding()))
        return &point;
    }
    return nullptr;
  };
  // A wrong output keeps only the places that numbers tell apart. Others of it may be equal, and
  // are not counted.
  std::vector<Suspect*> wrong;
  for (Suspect& s : suspects) {
    Suspect different{s.rank, s.output, {}, {}, {}, s.shape};
    for (size_t i = 0; i < s.places.size(); ++i)
      if (apart(s.want[i], s.got[i]) != nullptr) {
        different.places.push_back(s.places[i]);
        different.want.push_back(s.want[i]);
        different.got.push_back(s.got[i]);
      }
    if (different.places.empty()) continue;
    s = std::move(different);
    wrong.push_back(&s);
  }
  if (wrong.empty()) {
    // Where the assumptions hold nowhere, everything follows from them.
    const auto holds_somewhere = [&](Element want_, Element got_) {
      return std::any_of(points.begin(), points.end(), [&](Point& point) {
        return !point.number(want_).outside && !point.number(got_).outside;
      });
    };
    LastResort last(terms, solver);
    for (const Suspect& s : suspects)
      for (size_t i = 0; i < s.places.size(); ++i) {
        if (terms.same(s.want[i], s.got[i])) continue;
        if (holds_somewhere(s.want[i], s.got[i]) && last.equal(s.want[i], s.got[i])) continue;
        result.why = s.output + " on rank " + std::to_string(s.rank->number()) +
                     ": no proof, and no numbers that tell the two apart";
        if (!result.opaque.empty()) result.why += "; what --opaque grants has no numbers";
        open = true;
        if (!last.why().empty()) result.why += "; " + last.why();
        return result;
      }
    result.verdict = Verdict::proved;
    result.decided_by_solver = last.decided();
    if (last.decided() > 0) result.solver = solver->version();
    return result;
  }
  result.verdict = Verdict::refuted;
  // The first wrong element of each output stands for it.
  std::vector<WrongOutput> candidates;
  for (const Suspect* s : wrong)
    candidates.push_back({s->rank, s->output, s->want.front(), s->got.front()});
  const size_t first = earliest(candidates);
  const Suspect* chosen = wrong[first];
  for (const Suspect* s : wrong)
    if (s != chosen && s->output != chosen->output &&
        std::find(result.other_outputs.begin(), result.other_outputs.end(), s->output) ==
            result.other_outputs.end())
      result.other_outputs.push_back(s->output);
  Difference d;
  d.output = chosen->output;
  d.rank = chosen->rank->number();
  d.position = position_in(chosen->shape, chosen->places[0]);
  d.elements = static_cast<uint64_t>(size_of(chosen->shape));
  d.differing = chosen->places.size();
  Point& point = *apart(chosen->want[0], chosen->got[0]);
  d.logical = point.value(chosen->want[0]);
  d.plan = point.value(chosen->got[0]);
  d.point = point.met();
  const Product a = terms.product(chosen->want[0]), b = terms.product(chosen->got[0]);
  if (a.monomial == b.monomial && !a.factor.zero() && !b.factor.zero())
    d.factor = (b.factor / a.factor).value();
  Blame blamed;
  try {
    blamed = explain(terms, captured, known, opaque, candidates[first], ranks, right);
  } catch (const Unprovable&) {
    // A coefficient on the way is too large to be compared: the refutation stands without a place.
  }
  const auto statement = [&](NodeAt at) {
    return statement_of(ranks[at.rank], ranks[at.rank].trace().nodes[at.node]);
  };
  if (blamed.made) d.made = statement(*blamed.made);
  if (blamed.passed) d.passed = statement(*blamed.passed);
  if (blamed.used) d.used = statement(*blamed.used);
  for (const Fed& from : blamed.fed)
    d.fed.push_back(from.node
                        ? statement(*from.node)
                        : statement_of(ranks[from.rank].trace(),
                                       from.kind == Fed::Kind::passage ? "passed" : "constant",
                                       from.stack, from.kind == Fed::Kind::passage));
  result.difference = std::move(d);
  return result;
}

// The first run goes without the solver. Namesakes are tried before it. Sends that wait are tried
// last, behind a proof: values play no part in them.
Result check(const Captured& captured, const Grants& grants, Solver* solver) {
  const auto begin = std::chrono::steady_clock::now();
  Result result;
  try {
    bool open = false;
    result = checked(captured, grants, false, nullptr, open);
    if (open) result = checked(captured, grants, true, solver, open);
  } catch (const Unprovable& e) {
    result.verdict = Verdict::unknown;
    result.why = e.what();
  }
  if (result.verdict == Verdict::proved) result.relies_on_sends = stuck_in_sends(captured.ranks);
  if (grants.blocking_sends && !result.relies_on_sends.empty()) {
    result.verdict = Verdict::refuted;
    result.waiting = std::move(result.relies_on_sends);
    result.at = result.waiting[0];
    result.why = "a deadlock where sends wait for their receivers: " + places_of(result.waiting);
    result.relies_on_sends.clear();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void refuse_thin_inputs(Result& result, const Grants& grants) {
  if (result.verdict != Verdict::proved) return;
  std::string refused;
  for (const ThinInput& thin : result.thin) {
    if (!thin.hides) continue;
    if (grants.extents_of_1 &&
        (grants.extents_of_1->empty() || grants.extents_of_1->contains(thin.name)))
      continue;
    refused += (refused.empty() ? "" : ", ") + thin_text(thin);
  }
  if (refused.empty()) return;
  result.verdict = Verdict::unknown;
  result.why = "equal at these dims, but there is one element along " + refused +
               ": what sums and what averages over it are the same here; --dims gives it more, "
               "--accept-extent-1 takes it as it is";
}

}  // namespace opguard::proving
