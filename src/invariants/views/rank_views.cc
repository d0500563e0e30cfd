// Equality over ranks is told by classes: each rank has the number of the first rank that holds the
// same digest.
//
//   four ranks hold   5f 5f 90 5f     classes 0 0 2 0
//   a step later      77 12 31 77     classes 0 1 2 0: rank 1 has left rank 0, so `equal` is no
//
// So nobody has to know the layout. In a pipeline of two stages with two replicas each, ranks are
// equal in pairs, and only a pair that parts is a finding.
//
// Counterexample: "all ranks hold the same" as the rule, which no sharded program keeps. And a
// parameter that one rank lacks is not compared: stages have their own.
//
// The cost of a step: of each parameter ranks^2 comparisons of digests at worst, and one map of
// names.
#include "invariants/views/rank_views.h"

#include <algorithm>
#include <set>

#include "invariants/views/rank_words.h"

namespace opguard {

namespace {

// A rank that is so many steps ahead of the others waits for nobody: the others are believed over.
constexpr size_t kMostStepsHeld = 4096;

// Which ranks hold equal values: a number for each rank, that of the first one of its class. A rank
// without a value is in a class of its own; so is one of zeros, which says nothing.
//
//   {7, 7, none, 0, 0, 7} -> 0 0 2 3 4 0
std::vector<uint32_t> classes_of(const std::vector<std::optional<uint64_t>>& values) {
  std::vector<uint32_t> classes(values.size());
  for (uint32_t i = 0; i < values.size(); ++i) {
    classes[i] = i;
    for (uint32_t j = 0; j < i && values[i].value_or(0) != 0; ++j)
      if (values[j] == values[i]) {
        classes[i] = classes[j];
        break;
      }
  }
  return classes;
}

// Do any two ranks hold the same?
bool has_company(const std::vector<uint32_t>& classes) {
  for (uint32_t i = 0; i < classes.size(); ++i)
    if (classes[i] != i) return true;
  return false;
}

// Have two ranks that were in one class come apart? Who joins a class splits nothing. Of another
// number of ranks nothing can be said: one has ended.
bool splits(const std::vector<uint32_t>& before, const std::vector<uint32_t>& now) {
  if (before.size() != now.size()) return false;
  for (size_t i = 0; i < now.size(); ++i)
    if (before[i] != i && now[i] != now[before[i]]) return true;
  return false;
}

// Ranks that are in one class of both. The numbers are new ones: only equal or not can be told from
// them.
std::vector<uint32_t> refined(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
  std::vector<uint32_t> both;
  for (size_t i = 0; i < a.size(); ++i)
    both.push_back(numbers.try_emplace({a[i], b[i]}, numbers.size()).first->second);
  return both;
}

}  // namespace

void RankViews::joined(int32_t rank, int32_t world) {
  Rank& known = ranks_[rank];
  // A rank whose process has ended begins anew: what was held of the old one is gone.
  if (known.over) known = {};
  world_ = std::max(world_, world);
}

void RankViews::parameter(int32_t rank, uint32_t step, const std::string& name,
                          RankParameter parameter) {
  ranks_[rank].steps[step].parameters.insert_or_assign(name, std::move(parameter));
}

void RankViews::call(int32_t rank, uint32_t step, const std::string& module, RankCall call) {
  ranks_[rank].steps[step].calls[module].push_back(std::move(call));
}

void RankViews::batch(int32_t rank, uint32_t step, RankBatch batch) {
  ranks_[rank].steps[step].batches.push_back(std::move(batch));
}

void RankViews::collective(int32_t rank, uint32_t step, const std::string& group, int64_t sequence,
                           RankCollective collective) {
  if (step == 0 && collective.reads_alike && collective.left) left_alike_.insert(*collective.left);
  collectives_[{group, sequence}].push_back({rank, {step, std::move(collective)}});
}

void RankViews::message(uint32_t step, RankMessage message) {
  messages_[{message.from, message.to, message.tag, message.number}].push_back(
      {step, std::move(message)});
}

void RankViews::step_ended(int32_t rank, uint32_t step, uint64_t order, uint64_t event) {
  Rank& known = ranks_[rank];
  known.steps[step].order = order;
  known.steps[step].event = event;
  known.ended = std::max(known.ended, step + 1);
  if (known.steps.size() > kMostStepsHeld)
    for (auto& [number, other] : ranks_)
      if (number != rank && other.ended < known.steps.begin()->first + 1) other.over = true;
  compare_ready();
}

void RankViews::process_ended(int32_t rank) {
  auto it = ranks_.find(rank);
  if (it == ranks_.end()) return;
  it->second.over = true;
  compare_ready();
}

void RankViews::finish() {
  for (auto& [number, rank] : ranks_) rank.over = true;
  compare_ready();
  compare_collectives(kNone);
  compare_messages();
}

// Compares steps in order, as long as no rank is missing. Missing is who has not joined, and who is
// not over and has not ended the step.
void RankViews::compare_ready() {
  if (world_ < 2 || ranks_.size() < 2) return;
  while (true) {
    bool all_over = true, any = false;
    for (auto& [number, rank] : ranks_) {
      all_over = all_over && rank.over;
      any = any || rank.ended > compared_;
      if (!rank.over && rank.ended <= compared_) return;
    }
    if (!any) return;
    if (!all_over && ranks_.size() < static_cast<size_t>(world_)) return;
    compare(compared_++);
  }
}

RowContext RankViews::context(uint32_t step, const Step& first) {
  // Rows of collectives and of messages have no time of their own: they get the last one.
  order_ = std::max(order_, first.order);
  return {texts_, sink_, step, -1, first.order, first.event};
}

void RankViews::compare(uint32_t step) {
  std::vector<std::pair<int32_t, Step*>> there;
  for (auto& [number, rank] : ranks_) {
    auto it = rank.steps.find(step);
    if (it != rank.steps.end()) there.push_back({number, &it->second});
  }
  if (there.size() > 1) {
    compare_parameters(step, there);
    compare_optimizers(step, there);
    compare_calls(step, there);
    compare_batches(step, there);
  }
  compare_collectives(step);
  compare_messages();
  for (auto& [number, rank] : ranks_)
    rank.steps.erase(rank.steps.begin(), rank.steps.upper_bound(step));
}

void RankViews::compare_parameters(uint32_t step,
                                   const std::vector<std::pair<int32_t, Step*>>& ranks) {
  struct Seen {
    std::vector<const RankParameter*> held;
    std::vector<uint32_t> classes, gradients, began;
  };
  std::map<std::string, Seen> seen;
  for (const auto& [name, of_first] : ranks[0].second->parameters) {
    Seen at;
    for (const auto& [number, of_rank] : ranks) {
      auto it = of_rank->parameters.find(name);
      if (it != of_rank->parameters.end()) at.held.push_back(&it->second);
    }
    if (at.held.size() == ranks.size()) seen.emplace(name, std::move(at));
  }
  size_t equal_ones = 0, telling = 0, began_ones = 0;
  // Ranks that hold all parameters alike, split ones too: a class of each.
  std::vector<uint32_t> replicas(ranks.size(), 0);
  for (auto& [name, at] : seen) {
    std::vector<std::optional<uint64_t>> values, gradients, began;
    for (const RankParameter* p : at.held) {
      values.push_back(p->value);
      began.push_back(p->before);
      gradients.push_back(p->has_grad ? p->gradient : std::nullopt);
    }
    at.classes = classes_of(values);
    at.gradients = classes_of(gradients);
    at.began = classes_of(began);
    if (at.held[0]->constant) continue;
    replicas = refined(replicas, at.classes);
    if (at.held[0]->split) continue;
    ++telling;
    if (has_company(at.classes)) ++equal_ones;
    if (has_company(at.began)) ++began_ones;
  }
  // One parameter alone tells nothing of the model.
  bool most_equal = telling > 1 && equal_ones * 2 > telling;
  replicas_ = most_equal ? replicas : std::vector<uint32_t>{};
  bool reduced = true, wrapped = true, sent = false;
  for (const auto& [number, of_rank] : ranks) {
    reduced = reduced && of_rank->reduced;
    wrapped = wrapped && ranks_[number].wrapped;
    sent = sent || of_rank->sent;
  }
  // Where some parameters are parts of one over all ranks, the others are whole on each.
  const bool parts = std::any_of(seen.begin(), seen.end(), [](const auto& one) {
    return one.second.held[0]->placed && one.second.held[0]->split;
  });
  // Ranks that exchange something in each step, and all of whose parameters part in the first one,
  // are no replicas any more. Two stages of a pipeline that were seeded alike never were.
  const bool all_part = reduced && !sent && telling > 1 && began_ones * 2 > telling && !equal_ones;
  together_ = reduced || wrapped || parts;
  for (auto& [name, at] : seen) {
    const RankParameter& first = *at.held[0];
    History& history = histories_[name];
    RowContext where = context(step, *ranks[0].second);
    RowMaker row(where, ViewNumber::rank_parameters);
    bool shapes_alike = std::all_of(at.held.begin(), at.held.end(), [&](const RankParameter* p) {
      return p->shape == first.shape;
    });
    bool grads_alike = std::all_of(at.held.begin(), at.held.end(), [&](const RankParameter* p) {
      return p->has_grad == first.has_grad;
    });
    const bool alike = wrapped || most_equal || (parts && !first.placed);
    bool began = !first.constant && has_company(at.began) && alike;
    // One that was sent to all of them before the first step was meant to be the same.
    const bool was_sent = first.before && left_alike_.contains(*first.before) && (reduced || sent);
    // They are apart where the next step begins so: between two of them who owns a part may send
    // it.
    const bool began_equal = !history.began.empty();
    const bool began_apart = began_equal && splits(history.began, at.began);
    const bool all_hold =
        std::all_of(at.held.begin(), at.held.end(), [](const RankParameter* p) { return p->held; });
    // Looked at in the first step, and asked in the second one alone: `began` is empty from then
    // on.
    const bool promises = all_hold && !history.met && !first.constant && !first.split &&
                          has_company(at.began) && (was_sent || all_part);
    history.began = promises ? at.began : std::vector<uint32_t>{};
    // Against the last step where ranks were equal in it, else against how this step began.
    bool came_apart = history.equal > 0 ? splits(history.classes, at.classes)
                      : began           ? splits(at.began, at.classes)
                                        : false;
    // Two updates in a row are no chance. One is enough where the ranks are replicas by other
    // signs.
    bool was_equal = history.equal >= 2 || began || (history.equal > 0 && alike);
    bool equal = has_company(at.classes) && !came_apart;
    if (first.value) {
      const bool apart = came_apart || began_apart;
      // Of those that were equal: none has left its class. Of others: are any two equal?
      row.set(rank_parameters::equal, was_equal || began_equal ? !apart : has_company(at.classes));
      row.set(rank_parameters::was_equal, was_equal);
      row.set(rank_parameters::began_equal, began_equal);
    }
    bool gradients_equal = has_company(at.gradients);
    bool gradients_apart =
        history.gradients_equal > 0 && splits(history.gradient_classes, at.gradients);
    if (first.has_grad && grads_alike) {
      bool gradients_were = history.gradients_equal >= 2 && history.equal >= 1;
      row.set(rank_parameters::gradient_equal, gradients_were ? !gradients_apart : gradients_equal);
      row.set(rank_parameters::gradient_was_equal, gradients_were);
    }
    row.set(rank_parameters::has_grad_alike, grads_alike);
    row.set(rank_parameters::constant, first.constant);
    row.set(rank_parameters::same_shape, shapes_alike);
    row.set(rank_parameters::split, first.split);
    row.set(rank_parameters::reduced, reduced);
    row.set(rank_parameters::wrapped, wrapped);
    row.set(rank_parameters::placed, first.placed);
    row.set(rank_parameters::module, first.module);
    row.set(rank_parameters::attr, first.attr);
    row.set(rank_parameters::dims, std::to_string(first.dims));
    row.set(rank_parameters::requires_grad, first.requires_grad);
    row.set(rank_parameters::held, first.held);
    row.set(rank_parameters::finite, first.finite);
    row.name = name;
    row.module = first.module_words;
    row.place = first.place;
    if (!equal || (first.has_grad && !gradients_equal)) {
      row.detail = values_by_rank(ranks, at.held, equal);
      if (history.equal > 0 && step > 0)
        row.detail += "; equal until step " + std::to_string(step - 1);
    }
    row.give();
    history.equal = equal ? history.equal + 1 : 0;
    history.met = true;
    history.classes = at.classes;
    history.gradients_equal = gradients_equal && !gradients_apart ? history.gradients_equal + 1 : 0;
    history.gradient_classes = at.gradients;
  }
}

void RankViews::compare_calls(uint32_t step, const std::vector<std::pair<int32_t, Step*>>& ranks) {
  // One rank alone may evaluate: what is called without gradients stands besides.
  const auto of_training = [](const std::vector<RankCall>& calls) {
    std::vector<const RankCall*> found;
    for (const RankCall& call : calls)
      if (call.grad) found.push_back(&call);
    return found;
  };
  for (const auto& [module, every] : ranks[0].second->calls) {
    const std::vector<const RankCall*> calls = of_training(every);
    // The k-th call of a module on one rank is held against the k-th on each other.
    for (size_t k = 0; k < calls.size(); ++k) {
      bool shapes = true, modes = true;
      size_t met = 0;
      const RankCall* other = nullptr;
      int32_t other_rank = 0;
      for (const auto& [number, of_rank] : ranks) {
        auto it = of_rank->calls.find(module);
        if (it == of_rank->calls.end()) continue;
        const std::vector<const RankCall*> others = of_training(it->second);
        if (others.size() <= k) continue;
        ++met;
        const RankCall& call = *others[k];
        if (call.shapes != calls[k]->shapes && shapes) {
          shapes = false;
          other = &call;
          other_rank = number;
        }
        modes = modes && call.training == calls[k]->training;
      }
      // Only calls that all ranks made are compared.
      if (met < ranks.size()) continue;
      RowContext where = context(step, *ranks[0].second);
      RowMaker row(where, ViewNumber::rank_calls);
      row.set(rank_calls::module, calls[k]->module);
      row.set(rank_calls::same_shape, shapes);
      row.set(rank_calls::same_mode, modes);
      row.set(rank_calls::training, calls[k]->training);
      row.set(rank_calls::grad, calls[k]->grad);
      row.set(rank_calls::type, calls[k]->type);
      row.name = module;
      row.module = calls[k]->type;
      row.place = calls[k]->place;
      if (other)
        row.detail = calls[k]->words + " on rank " + std::to_string(ranks[0].first) + ", " +
                     other->words + " on rank " + std::to_string(other_rank);
      row.give();
    }
  }
}

void RankViews::compare_collectives(uint32_t before) {
  for (auto it = collectives_.begin(); it != collectives_.end();) {
    auto& calls = it->second;
    // Those of a step wait until the next step is compared; at the end `before` is above all steps.
    bool ready = std::all_of(calls.begin(), calls.end(),
                             [&](auto& call) { return call.second.first < before; });
    if (!ready) {
      ++it;
      continue;
    }
    // A call that one rank alone made is dropped: there is nothing to hold it against.
    if (calls.size() > 1) {
      const auto& [first_rank, first] = calls[0];
      bool same = true, shape = true, dtype = true, left = true, known = true;
      for (const auto& [rank, call] : calls) {
        same = same && call.second.function == first.second.function;
        shape = shape && call.second.shape == first.second.shape;
        dtype = dtype && call.second.dtype == first.second.dtype;
        left = left && call.second.left == first.second.left;
        known = known && call.second.left.has_value();
      }
      RowContext where{texts_, sink_, first.first, -1, order_, kNone};
      RowMaker row(where, ViewNumber::collective);
      row.set(collective::function, first.second.function);
      row.set(collective::same_call, same);
      if (same) {
        row.set(collective::same_shape, shape);
        row.set(collective::same_dtype, dtype);
        if (known && first.second.reads_alike) row.set(collective::left_equal, left);
      }
      row.set(collective::grouped, calls.size() < static_cast<size_t>(world_));
      row.name = first.second.function;
      row.place = first.second.place;
      if (!same || !shape) row.detail = collective_words(calls);
      row.give();
    }
    it = collectives_.erase(it);
  }
}

// A message that only one side has told waits, to the end if need be.
void RankViews::compare_messages() {
  for (auto it = messages_.begin(); it != messages_.end();) {
    auto& [key, entries] = *it;
    const RankMessage *sent = nullptr, *received = nullptr;
    uint32_t step = 0;
    for (auto& [at, message] : entries) {
      // `number` counts within the pair and the tag, so both sides number a message alike.
      (message.sent ? sent : received) = &message;
      step = std::max(step, at);
    }
    if (!sent || !received) {
      ++it;
      continue;
    }
    RowContext where{texts_, sink_, step, -1, order_, kNone};
    RowMaker row(where, ViewNumber::p2p);
    if (sent->value && received->value) row.set(p2p::read_is_sent, sent->value == received->value);
    row.set(p2p::same_shape, sent->shape == received->shape);
    row.set(p2p::same_dtype, sent->dtype == received->dtype);
    const std::string name =
        "from rank " + std::to_string(sent->from) + " to " + std::to_string(sent->to);
    row.name = name;
    row.place = received->place;
    row.give();
    it = messages_.erase(it);
  }
}

}  // namespace opguard
