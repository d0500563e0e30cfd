// A loader's passes: each batch's digests of samples are added up until the pass ends, and compared
// with the pass before.
//
//   pass 0   1 2 3 4   ended, 2 batches of 2         complete=yes samples_distinct=yes
//   pass 1   1 2 3 4   ended                         new_order=no
//   pass 2   4 2 2 1   the second batch's 2 again    samples_distinct=no, at once
//
// Counterexample: two samples with equal digests are not always one. Of small discrete data many
// are alike. So a share of the pass must come again, and a few that do leave the cell unknown.
//
// The cost: eight bytes a sample in order and one entry in a set; two passes of each loader are
// held.
#include "invariants/views/loader_passes.h"

#include <algorithm>

#include "llvm/ADT/Hashing.h"

namespace opguard {

namespace {

// A pass of more samples is compared by these alone.
constexpr size_t kMostSamples = 1 << 20;
// Of so many samples of a pass one may be another again: small discrete ones are alike by chance.
constexpr size_t kChanceAgain = 8;
// Of fewer two that are alike may be chance.
constexpr size_t kFewestSamples = 4;

}  // namespace

void LoaderPasses::loader(const Fields& fields) {
  State& state = loaders_[fields.integer(field::loader_number).value_or(-1)];
  state.type = fields.text(field::loader_type);
  state.sampler = fields.text(field::loader_sampler);
  state.place = fields.text(field::loader_place);
  state.shuffled = fields.yes(field::loader_shuffled).value_or(false);
  state.distributed = fields.yes(field::loader_distributed).value_or(false);
  state.workers = fields.integer(field::loader_workers).value_or(0) > 0;
  state.batches = fields.integer(field::loader_batches).value_or(-1);
  state.batch_size = fields.integer(field::loader_batch_size).value_or(-1);
}

void LoaderPasses::batch(const RowContext& context, const Fields& fields) {
  State& state = loaders_[fields.integer(field::batch_loader).value_or(-1)];
  int64_t pass = fields.integer(field::batch_pass).value_or(-1);
  // The pass before was given up without a word: it is forgotten, and no row tells of it.
  if (pass != state.pass) {
    state.pass = pass;
    state.samples.clear();
    state.distinct.clear();
    state.told = false;
  }
  last_.samples.clear();
  last_loader_ = fields.integer(field::batch_loader).value_or(-1);
  for (const ObservedValue& value : fields.list(field::batch_rows)) {
    if (value.kind != ObservedKind::bits && value.kind != ObservedKind::integer) continue;
    last_.samples.push_back(value.bits);
    // The batch itself is whole in last_; only the pass is cut.
    if (state.samples.size() >= kMostSamples) continue;
    state.samples.push_back(value.bits);
    state.distinct.insert(value.bits);
  }
  last_.distributed = state.distributed;
  last_.sampler = state.sampler;
  last_.place = fields.text(field::batch_place);
  last_.shapes = 0;
  for (const TensorForm& form : fields.forms(field::batch_shapes))
    last_.shapes = llvm::hash_combine(
        last_.shapes, llvm::hash_combine_range(form.shape.begin(), form.shape.end()));
  last_.size = state.batch_size;
  last_.loader = last_loader_;
  last_.pass = pass;
  if (!last_.place.empty()) state.place = last_.place;
  if (const auto targets = fields.yes(field::batch_ends_are_targets)) {
    RowMaker row(context, ViewNumber::epoch);
    row.set(epoch::ends_are_targets, *targets);
    if (!*targets) row.detail = "the token that ends a text and pads it is no label anywhere";
    row.name = state.type;
    row.place = state.place;
    row.give();
  }
  const size_t twice = state.samples.size() - state.distinct.size();
  // Once a pass, however many come again.
  if (twice * kChanceAgain > state.samples.size() && !state.told) again(context, state);
}

// At once, and not as the pass ends.
void LoaderPasses::again(const RowContext& context, State& state) {
  state.told = true;
  RowMaker row(context, ViewNumber::epoch);
  row.set(epoch::samples_distinct, false);
  row.set(epoch::shuffled, state.shuffled);
  row.set(epoch::distributed, state.distributed);
  row.set(epoch::workers, state.workers);
  row.set(epoch::sampler, state.sampler);
  row.set(epoch::first, state.passes_ended == 0);
  row.detail = std::to_string(state.samples.size() - state.distinct.size()) + " of " +
               std::to_string(state.samples.size()) + " samples occur again in the same pass";
  row.name = state.type;
  row.place = state.place;
  row.give();
}

// A batch trains by the first backward pass behind it: a second one takes none.
void LoaderPasses::trained() {
  if (auto it = loaders_.find(last_loader_); it != loaders_.end()) {
    it->second.trains = true;
    trains_ = last_loader_;
  }
  last_loader_ = -1;
}

// Of what is evaluated: none of it is trained on, or all, as who asks how well it was learned does.
std::optional<bool> LoaderPasses::apart(const State& state, bool ended) const {
  // Asked of a whole pass of a loader that was never trained on.
  if (!ended || state.trains || state.distinct.size() < kFewestSamples) return std::nullopt;
  // Folds of a cross validation train on others in turn: the last one counts.
  const auto other = loaders_.find(trains_);
  if (other == loaders_.end() || other->second.whole.empty()) return std::nullopt;
  const size_t both = std::count_if(state.distinct.begin(), state.distinct.end(),
                                    [&](uint64_t s) { return other->second.whole.contains(s); });
  return both == 0 || both == state.distinct.size();
}

void LoaderPasses::pass(const RowContext& context, const Fields& fields) {
  auto it = loaders_.find(fields.integer(field::pass_loader).value_or(-1));
  // An iterator that ends late, when another pass has begun, tells nothing.
  if (it == loaders_.end() || it->second.pass != fields.integer(field::pass_pass)) return;
  end(context, it->second, fields.yes(field::pass_ended).value_or(false),
      fields.integer(field::pass_taken).value_or(0));
}

void LoaderPasses::end(const RowContext& context, State& state, bool ended, int64_t taken) {
  RowMaker row(context, ViewNumber::epoch);
  const std::unordered_set<uint64_t>& distinct = state.distinct;
  if (ended && state.batches >= 0) row.set(epoch::complete, taken == state.batches);
  const auto is_apart = apart(state, ended);
  row.set(epoch::apart, is_apart);
  // "no" is told by again() alone. A pass in which few come again says neither.
  if (state.samples.size() > 1 && state.samples.size() == distinct.size())
    row.set(epoch::samples_distinct, true);
  // Two samples have the same order in every second pass by chance.
  bool comparable = ended && state.before_whole && state.samples.size() > 2 && distinct.size() > 2;
  if (comparable) row.set(epoch::new_order, state.samples != state.before);
  row.set(epoch::shuffled, state.shuffled);
  row.set(epoch::distributed, state.distributed);
  row.set(epoch::workers, state.workers);
  row.set(epoch::sampler, state.sampler);
  row.set(epoch::first, state.passes_ended == 0);
  row.set(epoch::ended, ended);
  // Of a first pass nobody is told the epoch: it is 0 anyway.
  if (state.distributed && state.shuffled && state.passes_ended > 0)
    row.set(epoch::set_epoch, epochs_set_);
  if (ended && state.last_taken >= 0) row.set(epoch::as_long, taken == state.last_taken);
  if (state.samples.size() != distinct.size())
    row.detail = std::to_string(state.samples.size() - distinct.size()) + " of " +
                 std::to_string(state.samples.size()) + " samples occur again in the same pass";
  else if (comparable && state.samples == state.before)
    row.detail = "the same " + std::to_string(state.samples.size()) + " samples in the same order";
  else if (ended && state.batches >= 0 && taken != state.batches)
    row.detail = std::to_string(taken) + " batches of " + std::to_string(state.batches);
  if (!is_apart.value_or(true)) row.detail = "some of its samples are trained on";
  row.name = state.type;
  row.place = state.place;
  row.give();
  // What the next pass is held against. One that was given up is no measure.
  if (ended) {
    state.whole = std::move(state.distinct);
    state.before = std::move(state.samples);
    state.before_whole = true;
    state.last_taken = taken;
    ++state.passes_ended;
  }
  state.samples.clear();
  state.distinct.clear();
  state.told = false;
  state.pass = -1;
  epochs_set_ = false;
}

}  // namespace opguard
