// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/call_header.hpp>

#include <muster/base/text.hpp>

namespace muster::detail {

const char* name_of(collective kind) noexcept {
  switch (kind) {
    case collective::none: return "nothing";
    case collective::barrier: return "barrier";
    case collective::broadcast: return "broadcast";
    case collective::reduce: return "reduce";
    case collective::all_reduce:
    case collective::all_reduce_of_several: return "all_reduce";
    case collective::gather: return "gather";
    case collective::all_gather: return "all_gather";
    case collective::scatter: return "scatter";
    case collective::reduce_scatter: return "reduce_scatter";
    case collective::all_to_all: return "all_to_all";
    case collective::split: return "split";
    case collective::broadcast_bytes: return "broadcast of an object";
    case collective::refused: return "refused call";
  }
  return "unknown call";
}

namespace {

bool reduces(collective kind) {
  return kind == collective::reduce || kind == collective::all_reduce || kind == collective::all_reduce_of_several ||
         kind == collective::reduce_scatter;
}

}  // namespace

std::string call_header::describe() const {
  text_writer out;
  out << name_of(kind);
  if (reduces(kind)) out << '(' << reduction_op_name(op) << ')';
  if (kind == collective::barrier || kind == collective::split) return out.str();
  if (root != no_root) out << " with root " << root;
  if (kind != collective::broadcast_bytes) out << " of " << count << " elements " << dtype_name(type);
  if (kind == collective::all_reduce_of_several) out << " in several tensors";
  return out.str();
}

}  // namespace muster::detail
