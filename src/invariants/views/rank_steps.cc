// What ranks step with: samples, learning rates, clipping, random numbers. Rows of RankViews.
//
//   step 0   learning rate 0.1 on rank 0, 0.2 on rank 1             same_lr=no
//   step 1   a norm of 3 was clipped on rank 0, of 2 on rank 1      same_clip=no
//   step 2   the generators' states were 10 and 11, and are 7, 7    draws_apart=no
//
// Counterexample: equal samples on two ranks are no fault where the ranks hold different models, as
// the stages of a pipeline do. So replicas are asked for first, where it is known which ranks are
// some.
//
// The cost of a batch: for each pair of ranks a set of one rank's samples. Of a pass each rank's
// samples are held once.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <unordered_set>

#include "invariants/views/rank_views.h"

namespace opguard {

namespace {

// Of so many samples of a batch one may be another rank's by chance.
constexpr size_t kChance = 4;
constexpr size_t kChanceOfPass = 8;
// A rank's samples beyond these are not held: a long pass is compared by its first ones.
constexpr size_t kMostSamplesOfPass = 1 << 20;
// Of one norm that each rank has computed for itself.
constexpr double kSameNorm = 1e-3;

}  // namespace

void RankViews::compare_optimizers(uint32_t step,
                                   const std::vector<std::pair<int32_t, Step*>>& ranks) {
  for (size_t k = 0; k < ranks[0].second->optimizers.size(); ++k) {
    std::vector<const RankOptimizer*> all;
    for (const auto& [number, of_rank] : ranks)
      if (of_rank->optimizers.size() > k) all.push_back(&of_rank->optimizers[k]);
    // The k-th step of each rank, and only where all have one.
    if (all.size() != ranks.size()) return;
    const RankOptimizer& first = *all[0];
    bool rates = true, known = true, norms = true, clipped = true, drawn = true;
    std::set<uint64_t> states;
    for (const RankOptimizer* one : all) {
      rates = rates && one->lr == first.lr;
      known = known && std::none_of(one->lr.begin(), one->lr.end(),
                                    [](double rate) { return std::isnan(rate); });
      clipped = clipped && one->clip_norm && std::isfinite(*one->clip_norm);
      norms = norms && clipped &&
              std::abs(*one->clip_norm - *first.clip_norm) <= kSameNorm * *first.clip_norm;
      drawn = drawn && one->noise;
      if (one->noise) states.insert(*one->noise);
    }
    // All in different states. Two of eight that draw alike are as wrong as all.
    const bool apart = drawn && states.size() == all.size();
    RowContext where = context(step, *ranks[0].second);
    RowMaker row(where, ViewNumber::rank_steps);
    row.set(rank_steps::together, together_);
    if (known) row.set(rank_steps::same_lr, rates);
    if (clipped) row.set(rank_steps::same_clip, norms);
    // Ranks that were seeded alike draw alike on purpose. Only who was apart twice in a row is
    // asked.
    if (drawn && steps_apart_ > 1) row.set(rank_steps::draws_apart, apart);
    row.name = first.type;
    row.place = first.place;
    const auto numbers = [&](const char* of, auto number) {
      std::string words;
      for (size_t i = 0; i < all.size() && i < 8; ++i) {
        char text[32];
        std::snprintf(text, sizeof text, "%.4g", number(*all[i]));
        words += (i ? ", " : "") + std::string(text) + " on rank " + std::to_string(ranks[i].first);
      }
      return std::string(of) + " " + words;
    };
    if (known && !rates) {
      row.detail = numbers("learning rate", [](const RankOptimizer& one) {
        return one.lr.empty() ? NAN : one.lr[0];
      });
      if (!first.lr_place.empty()) row.place = first.lr_place;
    } else if (clipped && !norms) {
      row.detail =
          numbers("clipped by a norm of", [](const RankOptimizer& one) { return *one.clip_norm; });
      if (!first.clip_place.empty()) row.place = first.clip_place;
    } else if (drawn && !apart && steps_apart_ > 1) {
      row.detail = "ranks that drew other random numbers draw the same ones";
    }
    row.give();
    if (drawn && k == 0) steps_apart_ = apart ? steps_apart_ + 1 : 0;
  }
}

void RankViews::follow_pass(const std::vector<std::pair<int32_t, const RankBatch*>>& batches) {
  const auto pass = batches[0].second->pass;
  // The first rank says which pass it is: its loader's number and the pass over it.
  if (pass_.pass != pass) pass_ = {.pass = pass, .given = {}, .shared = {}};
  for (size_t j = 0; j < batches.size(); ++j) {
    auto& own = pass_.given[batches[j].first];
    if (own.size() > kMostSamplesOfPass) continue;
    for (uint64_t sample : batches[j].second->samples) {
      // A sample that a rank is given twice is shared once.
      if (!own.insert(sample).second) continue;
      for (auto& [rank, given] : pass_.given)
        if (rank != batches[j].first && given.contains(sample))
          ++pass_.shared[std::minmax(rank, batches[j].first)];
    }
  }
}

void RankViews::compare_batches(uint32_t step,
                                const std::vector<std::pair<int32_t, Step*>>& ranks) {
  size_t batches = 0;
  for (const auto& [number, of_rank] : ranks) batches = std::max(batches, of_rank->batches.size());
  for (size_t k = 0; k < batches; ++k) {
    std::vector<std::pair<int32_t, const RankBatch*>> there;
    for (const auto& [number, of_rank] : ranks)
      if (of_rank->batches.size() > k) there.push_back({number, &of_rank->batches[k]});
    if (there.size() != ranks.size()) continue;
    follow_pass(there);
    size_t shared = 0, of_pass = 0;
    int32_t one = -1, two = -1;
    bool shapes = true, distributed = true, replicas = false;
    for (size_t j = 1; j < there.size(); ++j) {
      shapes = shapes && there[j].second->shapes == there[0].second->shapes;
      for (size_t i = 0; i < j; ++i) {
        // Of ranks of which nothing is known each pair counts.
        bool pair = replicas_.size() == ranks.size() && replicas_[j] == replicas_[i];
        replicas = replicas || pair;
        if (!replicas_.empty() && !pair) continue;
        std::unordered_set<uint64_t> samples(there[i].second->samples.begin(),
                                             there[i].second->samples.end());
        size_t both =
            std::count_if(there[j].second->samples.begin(), there[j].second->samples.end(),
                          [&](uint64_t s) { return samples.contains(s); });
        const size_t so_far = pass_.shared[std::minmax(there[i].first, there[j].first)];
        if (so_far > of_pass) {
          of_pass = so_far;
          if (shared == 0) one = there[i].first, two = there[j].first;
        }
        if (both > shared) shared = both, one = there[i].first, two = there[j].first;
      }
    }
    for (const auto& [number, batch] : there) distributed = distributed && batch->distributed;
    RowContext where = context(step, *ranks[0].second);
    RowMaker row(where, ViewNumber::rank_batches);
    // Of small discrete samples two may be alike by chance: a few of a batch tell nothing.
    const size_t batch = std::min(there[0].second->samples.size(), there[1].second->samples.size());
    const size_t given = pass_.given[there[0].first].size();
    // A distributed sampler repeats a few, as all ranks get as many.
    const bool of_many = of_pass * kChanceOfPass > given && of_pass > static_cast<size_t>(world_);
    const bool many = shared * kChance > batch || of_many;
    // In between the cell stays unknown: too few to be told, too many to be praised.
    if (many || (shared == 0 && of_pass == 0)) row.set(rank_batches::disjoint, !many);
    row.set(rank_batches::replicas, replicas);
    row.set(rank_batches::distributed, distributed);
    row.set(rank_batches::sampler, there[0].second->sampler);
    row.set(rank_batches::same_shapes, shapes);
    row.place = there[0].second->place;
    const std::string name = "batch " + std::to_string(k);
    row.name = name;
    if (many && shared * kChance <= batch)
      row.detail = std::to_string(of_pass) + " of " + std::to_string(given) +
                   " samples of this pass on rank " + std::to_string(one) + " and on rank " +
                   std::to_string(two);
    else if (shared > 0)
      row.detail = std::to_string(shared) + " of " +
                   std::to_string(there[0].second->samples.size()) + " samples on rank " +
                   std::to_string(one) + " and on rank " + std::to_string(two);
    row.give();
  }
}

}  // namespace opguard
