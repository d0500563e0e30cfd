// invariants/views/columns.h: the columns of each view, as numbers for those who fill them.
//
//   RowMaker row(context, ViewNumber::parameter);
//   row.set(parameter::has_grad, true);
//
// tables.cc says what each is called and what may be concluded of it, in the same order. What each
// one means is in docs/formats/invariants.md. Files of rules name views and columns by text, so
// numbers here may change.
//
// Counterexample: the view `sequence` has no namespace. call_sequence.cc makes its columns from a
// list of calls.
#pragma once

#include <cstdint>

namespace opguard {

// In the order of views().
enum class ViewNumber : uint16_t {
  parameter,
  optimizer,
  call,
  root,
  random,
  sequence,
  backward,
  save,
  load,
  epoch,
  rank_batches,
  rank_parameters,
  rank_calls,
  collective,
  p2p,
  init,
  buffer,
  loss,
  argument,
  told,
  criterion,
  rank_steps
};

// ProcessViews::parameter_row(), as the optimizer's step is observed.
namespace parameter {
enum : uint8_t {
  requires_grad,
  held,
  used,
  has_grad,
  gradient_zero,
  gradient_slight,
  gradient_finite,
  finite,
  changed,
  changed_lately,
  moved,
  noticeable,
  dtype,
  gradient_dtype_same,
  training,
  tied,
  copied,
  repeated,
  as_loaded,
  master_wide,
  twin_held,
  called,
  leaf,
  first,
  decays,
  lr_zero,
  skipped,
  backward,
  had_grad,
  module,
  attr,
  dims,
  optimizer,
  several,
  name,
  columns
};
}
// ProcessViews::optimizer_row().
namespace optimizer {
enum : uint8_t {
  type,
  strangers,
  holds_all_trainable,
  holds_trainable,
  changes_some,
  moves_models,
  gradient_zero,
  finite,
  lr_positive,
  decays,
  noise_fresh,
  clipped_all,
  own_memory,
  state_loaded,
  rest_loaded,
  skipped,
  backward_before,
  several,
  first,
  columns
};
}
// ProcessViews::call(), as a module returns.
namespace call {
enum : uint8_t {
  module,
  training,
  grad,
  autocast,
  dtype,
  out_is_in,
  out_is_parameter,
  out_is_autocast,
  wants,
  in_wants,
  parameter_wants,
  dim0_kept,
  dim0_equal,
  spreads,
  batch_where_expected,
  drew,
  type,
  columns
};
}
// ProcessViews::root_call(): of a module that no other called.
namespace root {
enum : uint8_t {
  training,
  grad,
  uniform,
  mode_shows,
  dim0_equal,
  trained_before,
  train_called,
  drew,
  wants,
  several,
  module,
  type,
  columns
};
}
// ProcessViews::random_row(): once as it is called, and again behind the step where `frozen`
// matters.
namespace random {
enum : uint8_t { function, on, p_same, draws_same, module_training, grad, again, frozen, columns };
}
// ProcessViews::backward_rows(), when it is known where the gradients went.
namespace backward {
enum : uint8_t {
  reaches_step,
  training,
  wants,
  finite,
  forward_before,
  stale,
  several,
  accumulates,
  masters,
  columns
};
}
// ProcessViews::save() and load().
namespace save {
enum : uint8_t { has_all, has_trained, equals_live, mixed, some, columns };
}
namespace load {
enum : uint8_t {
  type,
  complete,
  nothing_unexpected,
  fills_some,
  names_match,
  equals_given,
  given_is_other,
  columns
};
}
// LoaderPasses, as a pass ends; two columns have rows of their own while it runs.
namespace epoch {
enum : uint8_t {
  complete,
  samples_distinct,
  apart,
  ends_are_targets,
  new_order,
  shuffled,
  distributed,
  workers,
  sampler,
  first,
  ended,
  set_epoch,
  as_long,
  columns
};
}
// RankViews::compare_batches(), in rank_steps.cc.
namespace rank_batches {
enum : uint8_t { disjoint, replicas, distributed, sampler, same_shapes, columns };
}
// RankViews::compare_parameters(), as are the next three by their own compare function.
namespace rank_parameters {
enum : uint8_t {
  equal,
  was_equal,
  began_equal,
  gradient_equal,
  gradient_was_equal,
  has_grad_alike,
  constant,
  same_shape,
  split,
  reduced,
  wrapped,
  placed,
  module,
  attr,
  dims,
  requires_grad,
  held,
  finite,
  columns
};
}
namespace rank_calls {
enum : uint8_t { module, same_shape, same_mode, training, grad, type, columns };
}
namespace collective {
enum : uint8_t { function, same_call, same_shape, same_dtype, left_equal, grouped, columns };
}
namespace p2p {
enum : uint8_t { read_is_sent, same_shape, same_dtype, columns };
}
// ProcessViews::init_rows(), at the first step behind the filling.
namespace init {
enum : uint8_t { function, filled_once, fills_le2, after_load, module, attr, columns };
}
// ProcessViews::buffer_row().
namespace buffer {
enum : uint8_t {
  changed,
  finite,
  slow,
  training,
  called,
  called_in_training,
  called_for_gradients,
  frozen,
  still,
  wants,
  module,
  attr,
  columns
};
}
// ProcessViews::backward(), at once.
namespace loss {
enum : uint8_t { finite, repeats, several, columns };
}
// argument_rows(), from events.
namespace argument {
enum : uint8_t { function, output, argument, relation, columns };
}
// ProcessViews::told(): what the program says of itself.
namespace told {
enum : uint8_t { name, holds, columns };
}
// RankViews::compare_optimizers().
namespace rank_steps {
enum : uint8_t { same_lr, same_clip, draws_apart, together, columns };
}
// ProcessViews::criterion().
namespace criterion {
enum : uint8_t {
  function,
  fits,
  spreads,
  layers_cast,
  wide,
  target_wants,
  autocast,
  grad,
  columns
};
}

}  // namespace opguard
