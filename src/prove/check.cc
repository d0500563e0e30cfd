#include "prove/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "prove/blame.h"
#include "prove/collectives.h"
#include "prove/evaluate.h"
#include "prove/last_resort.h"
#include "prove/operators.h"

namespace opguard::proving {
namespace {

constexpr uint64_t kPoints = 6;      // the second half of them of positive variables
constexpr double kDifferent = 1e-6;  // of the sum of their magnitudes
constexpr double kRounded = 1000;    // times what rounding has done

Statement statement_of(const Rank& rank, const Node& node) {
  Statement s;
  s.rank = rank.number();
  s.op = node.op;
  s.backward = node.backward;
  const auto& stack = rank.trace().stacks[node.stack];
  if (!stack.empty()) {
    s.file = stack[0].file;
    s.line = stack[0].line;
    s.function = stack[0].function;
  }
  return s;
}

// An error at the node that a rank is at.
struct Stopped {
  Verdict verdict;
  std::string why;
  std::optional<Statement> at;
};

// All ranks to their ends, together.
class Simulation {
 public:
  Simulation(Terms& terms, std::vector<Rank>& ranks) : terms_(terms), ranks_(ranks) {}

  void run() {
    waiting_.assign(ranks_.size(), std::nullopt);
    for (;;) {
      bool progress = false;
      for (size_t r = 0; r < ranks_.size(); ++r) progress |= advance(r);
      while (meet_some()) progress = true;
      if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.done(); })) return;
      if (!progress) throw Stopped{Verdict::refuted, deadlock(), where_stuck()};
    }
  }

 private:
  bool advance(size_t r) {
    Rank& rank = ranks_[r];
    bool progress = false;
    while (!rank.done() && !waiting_[r]) {
      const Node& node = rank.node();
      try {
        if (!meets(node)) {
          apply(rank);
        } else {
          Meeting m = meeting_of(node);
          if (m.group.empty()) throw Unprovable("a collective whose group is not known");
          if (m.kind == Meets::send) {
            send(rank, m);
          } else if (m.kind == Meets::receive) {
            if (!receive(rank, m)) return progress;
          } else {
            waiting_[r] = std::move(m);
            return true;
          }
        }
      } catch (const Refuted& e) {
        throw Stopped{Verdict::refuted, e.what(), statement_of(rank, node)};
      } catch (const Unprovable& e) {
        throw Stopped{Verdict::unknown, e.what(), statement_of(rank, node)};
      }
      rank.advance();
      progress = true;
    }
    return progress;
  }

  using Mail = std::map<std::tuple<uint32_t, uint32_t, int64_t>, std::vector<std::vector<Array>>>;
  uint32_t other(const Meeting& m) const {
    return static_cast<size_t>(m.root) < m.group.size() ? m.group[static_cast<size_t>(m.root)]
                                                        : static_cast<uint32_t>(m.root);
  }
  void send(Rank& rank, const Meeting& m) {
    std::vector<Array> sent;
    for (const Tensor& t : m.inputs) sent.push_back(rank.read(t));
    mail_[{rank.number(), other(m), m.tag}].push_back(std::move(sent));
  }
  bool receive(Rank& rank, const Meeting& m) {
    auto& box = mail_[{other(m), rank.number(), m.tag}];
    if (box.empty()) return false;
    for (size_t i = 0; i < m.outputs.size(); ++i) {
      const Array& got = box.front().at(i);
      if (static_cast<size_t>(size_of(m.outputs[i].shape)) != got.at.size())
        throw Refuted("rank " + std::to_string(rank.number()) + " receives " +
                      std::to_string(size_of(m.outputs[i].shape)) + " elements, and rank " +
                      std::to_string(other(m)) + " sends " + std::to_string(got.at.size()));
      rank.write(m.outputs[i], reshaped(got, m.outputs[i].shape));
    }
    box.erase(box.begin());
    return true;
  }

  bool meet_some() {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!waiting_[r] || waiting_[r]->group.empty() || waiting_[r]->group[0] != r) continue;
      const std::vector<uint32_t> group = waiting_[r]->group;
      if (!std::all_of(group.begin(), group.end(), [&](uint32_t m) {
            return m < ranks_.size() && waiting_[m] && waiting_[m]->group == group;
          }))
        continue;
      std::vector<Rank*> members;
      std::vector<Meeting> parts;
      for (uint32_t m : group) {
        members.push_back(&ranks_[m]);
        parts.push_back(*waiting_[m]);
      }
      for (size_t i = 1; i < parts.size(); ++i)
        if (parts[i].kind != parts[0].kind)
          throw Stopped{Verdict::refuted,
                        "rank " + std::to_string(group[0]) + " calls " + name_of(parts[0].kind) +
                            " at " + members[0]->place() + ", rank " + std::to_string(group[i]) +
                            " " + name_of(parts[i].kind) + " at " + members[i]->place(),
                        statement_of(*members[i], members[i]->node())};
      try {
        meet(terms_, members, parts);
      } catch (const Refuted& e) {
        throw Stopped{Verdict::refuted, e.what(), statement_of(*members[0], members[0]->node())};
      } catch (const Unprovable& e) {
        throw Stopped{Verdict::unknown, e.what(), statement_of(*members[0], members[0]->node())};
      }
      for (uint32_t m : group) {
        ranks_[m].advance();
        waiting_[m].reset();
      }
      return true;
    }
    return false;
  }

  std::string deadlock() const {
    std::string text = "a deadlock:";
    size_t told = 0;
    for (size_t r = 0; r < ranks_.size() && told < 4; ++r) {
      if (ranks_[r].done()) continue;
      ++told;
      text += (told > 1 ? "; rank " : " rank ") + std::to_string(r) + " waits ";
      if (waiting_[r]) {
        text += std::string("in ") + name_of(waiting_[r]->kind) + " of ranks";
        for (uint32_t m : waiting_[r]->group) text += " " + std::to_string(m);
      } else {
        text += "for a message of rank " + std::to_string(other(meeting_of(ranks_[r].node())));
      }
      text += " at " + ranks_[r].place();
    }
    std::string ended;
    for (const Rank& rank : ranks_)
      if (rank.done()) ended += (ended.empty() ? "" : ", ") + std::to_string(rank.number());
    return ended.empty() ? text : text + "; ended: " + ended;
  }
  std::optional<Statement> where_stuck() const {
    for (const Rank& rank : ranks_)
      if (!rank.done()) return statement_of(rank, rank.node());
    return {};
  }

  Terms& terms_;
  std::vector<Rank>& ranks_;
  std::vector<std::optional<Meeting>> waiting_;
  Mail mail_;
};

// Unknowns of a name, in logical order.
std::vector<Element> unknowns(Terms& terms, const std::string& name, const Input& input) {
  std::vector<Element> all;
  for (uint32_t i = 0; i < static_cast<uint32_t>(size_of(input.shape)); ++i)
    all.push_back(input.token ? terms.token(name, i, input.size) : terms.variable(name, i));
  return all;
}

std::vector<int64_t> position_in(const Shape& shape, size_t n) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    position[d] = static_cast<int64_t>(n) % shape[d];
    n /= static_cast<size_t>(shape[d]);
  }
  return position;
}

// A sum over one element is its mean, and a transposed [n, 1] looks like a [1, n].
bool is_thin(const Shape& own, const Shape& whole) {
  for (size_t d = 0; d < own.size() && own.size() == whole.size(); ++d)
    if (own[d] == 1 && whole[d] > 1) return true;
  return false;
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

static Result checked(const Captured& captured, Solver* solver) {
  Result result;
  Terms terms;
  KnownSums known;
  std::map<std::string, std::vector<Element>> logical_inputs;
  for (const auto& [name, input] : captured.inputs)
    logical_inputs[name] = unknowns(terms, name, input);

  Rank model(terms, captured.logical, known, true);
  result.logical_operators = captured.logical.nodes.size();
  for (const auto& [name, tensor] : captured.logical.inputs)
    model.set(tensor, logical_inputs.at(name));
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

  const auto right = static_cast<Monomial>(terms.monomials());
  std::vector<Rank> ranks;
  ranks.reserve(captured.ranks.size());
  for (const Trace& trace : captured.ranks) {
    result.plan_operators += trace.nodes.size();
    Rank& rank = ranks.emplace_back(terms, trace, known, false);
    for (const auto& [name, tensor] : trace.inputs) {
      const std::vector<Element>& all = logical_inputs.at(name);
      if (is_thin(tensor.shape, captured.inputs.at(name).shape) &&
          std::find(result.thin.begin(), result.thin.end(), name) == result.thin.end())
        result.thin.push_back(name);
      std::vector<Element> mine;
      for (int64_t i : trace.place.at(name)) mine.push_back(all.at(static_cast<size_t>(i)));
      rank.set(tensor, mine);
    }
  }
  try {
    Simulation(terms, ranks).run();
  } catch (const Stopped& stopped) {
    result.verdict = stopped.verdict;
    result.why = stopped.why;
    result.at = stopped.at;
    result.terms = terms.elements();
    return result;
  }

  std::vector<Suspect> suspects;
  std::set<std::string> seen;
  std::map<std::string, std::vector<bool>> covered;
  for (Rank& rank : ranks)
    for (const auto& [name, tensor] : rank.trace().outputs) {
      auto logical = want.find(name);
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
  // The first point that tells them apart, whatever rounding has done to the numbers.
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
        if (!last.why().empty()) result.why += "; " + last.why();
        return result;
      }
    result.verdict = Verdict::proved;
    result.decided_by_solver = last.decided();
    if (last.decided() > 0) result.solver = solver->version();
    return result;
  }
  result.verdict = Verdict::refuted;
  const Suspect* chosen = wrong.front();
  std::vector<WrongOutput> candidates;
  for (const Suspect* s : wrong)
    candidates.push_back({s->rank, s->output, s->want.front(), s->got.front()});
  const size_t first = earliest(candidates);
  chosen = wrong[first];
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
  const Blame blamed = blame(terms, candidates[first], ranks, right);
  if (blamed.made_by != nullptr) d.made = statement_of(*blamed.made_on, *blamed.made_by);
  if (blamed.fed_by != nullptr) d.fed = statement_of(*blamed.made_on, *blamed.fed_by);
  if (blamed.passed_by != nullptr) d.passed = statement_of(*blamed.passed_on, *blamed.passed_by);
  result.difference = std::move(d);
  return result;
}

Result check(const Captured& captured, Solver* solver) {
  const auto begin = std::chrono::steady_clock::now();
  Result result;
  try {
    result = checked(captured, solver);
  } catch (const Unprovable& e) {
    result.verdict = Verdict::unknown;
    result.why = e.what();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace opguard::proving
