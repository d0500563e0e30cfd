// invariants/views/columns.h: the columns of each view, as numbers for those who fill them.
//
//   RowMaker row(context, ViewNumber::parameter);
//   row.set(parameter::has_grad, true);
//
// tables.cc says what each is called and what may be concluded of it, in the same order.
#pragma once

#include <cstdint>

namespace opguard {

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
namespace random {
enum : uint8_t {
  function,
  on,
  p_same,
  draws_same,
  module_training,
  root_training,
  grad,
  again,
  frozen,
  columns
};
}
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
namespace rank_batches {
enum : uint8_t { disjoint, replicas, distributed, sampler, same_shapes, columns };
}
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
namespace init {
enum : uint8_t { function, filled_once, fills_le2, after_load, module, attr, columns };
}
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
namespace loss {
enum : uint8_t { finite, repeats, several, columns };
}
namespace argument {
enum : uint8_t { function, output, argument, relation, columns };
}
namespace told {
enum : uint8_t { name, holds, columns };
}
namespace rank_steps {
enum : uint8_t { same_lr, same_clip, draws_apart, together, columns };
}
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
