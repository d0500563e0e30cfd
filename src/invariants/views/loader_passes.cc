#include "invariants/views/loader_passes.h"

#include <unordered_set>

#include "llvm/ADT/Hashing.h"

namespace opguard {

namespace {

// A pass of more samples is compared by these alone.
constexpr size_t kMostSamples = 1 << 20;

}  // namespace

void LoaderPasses::loader(const Fields& fields) {
  State& state = loaders_[fields.integer(field::loader_number).value_or(-1)];
  state.type = fields.text(field::loader_type);
  state.sampler = fields.text(field::loader_sampler);
  state.place = fields.text(field::loader_place);
  state.shuffled = fields.yes(field::loader_shuffled).value_or(false);
  state.distributed = fields.yes(field::loader_distributed).value_or(false);
  state.drop_last = fields.yes(field::loader_drop_last).value_or(false);
  state.workers = fields.integer(field::loader_workers).value_or(0) > 0;
  state.length = fields.integer(field::loader_length).value_or(-1);
  state.batches = fields.integer(field::loader_batches).value_or(-1);
  state.batch_size = fields.integer(field::loader_batch_size).value_or(-1);
}

void LoaderPasses::batch(const Fields& fields) {
  State& state = loaders_[fields.integer(field::batch_loader).value_or(-1)];
  int64_t pass = fields.integer(field::batch_pass).value_or(-1);
  if (pass != state.pass) {
    state.pass = pass;
    state.samples.clear();
  }
  last_.samples.clear();
  for (const ObservedValue& value : fields.list(field::batch_rows)) {
    if (value.kind != ObservedKind::bits && value.kind != ObservedKind::integer) continue;
    last_.samples.push_back(value.bits);
    if (state.samples.size() < kMostSamples) state.samples.push_back(value.bits);
  }
  last_.distributed = state.distributed;
  last_.sampler = state.sampler;
  last_.place = fields.text(field::batch_place);
  last_.shapes = 0;
  for (const TensorForm& form : fields.forms(field::batch_shapes))
    last_.shapes = llvm::hash_combine(
        last_.shapes, llvm::hash_combine_range(form.shape.begin(), form.shape.end()));
  if (!last_.place.empty()) state.place = last_.place;
}

void LoaderPasses::pass(const RowContext& context, const Fields& fields) {
  auto it = loaders_.find(fields.integer(field::pass_loader).value_or(-1));
  if (it == loaders_.end() || it->second.pass != fields.integer(field::pass_pass)) return;
  end(context, it->second, fields.yes(field::pass_ended).value_or(false),
      fields.integer(field::pass_taken).value_or(0));
}

void LoaderPasses::end(const RowContext& context, State& state, bool ended, int64_t taken) {
  RowMaker row(context, ViewNumber::epoch);
  std::unordered_set<uint64_t> distinct(state.samples.begin(), state.samples.end());
  if (ended && state.batches >= 0) row.set(epoch::complete, taken == state.batches);
  if (state.samples.size() > 1)
    row.set(epoch::samples_distinct, distinct.size() == state.samples.size());
  bool comparable = ended && state.before_whole && state.samples.size() > 2 && distinct.size() > 2;
  if (comparable) row.set(epoch::new_order, state.samples != state.before);
  row.set(epoch::shuffled, state.shuffled);
  row.set(epoch::distributed, state.distributed);
  row.set(epoch::workers, state.workers);
  row.set(epoch::sampler, state.sampler);
  row.set(epoch::first, state.passes_ended == 0);
  row.set(epoch::ended, ended);
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
  row.name = state.type;
  row.place = state.place;
  row.give();
  if (ended) {
    state.before = std::move(state.samples);
    state.before_whole = true;
    state.last_taken = taken;
    ++state.passes_ended;
  }
  state.samples.clear();
  state.pass = -1;
  epochs_set_ = false;
}

}  // namespace opguard
