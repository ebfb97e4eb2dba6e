// SPDX-License-Identifier: BSL-1.0
#pragma once

// The names of muster's classes, declared: for headers that refer to one and use none.
//
// Thread safety: declarations only.

#include <cstdint>

#include <muster/base/requirements.hpp>

/// All that programs name of muster, but for its macros.
namespace muster {

// <muster/pool.hpp>
class pool;
class p2p_pool;
class serial_pool;
class thread_pool;
template <class C>
class ctx_pool;
template <class C>
class ctx_thread_pool;
struct pool_options;
struct task_options;
template <class R>
class future;
template <class R>
class result;
template <class R>
class stream;
template <class R>
class result_stream;
template <class T, class R>
class feed_stream;
class process;
class thread;
class deadline;

// errors
class error;
class error_info;
class task_error;
class worker_died;
class remote_exception;

// <muster/queue.hpp>
class event;
class combined_event;
template <class T>
class shared_queue;
template <class T>
class p2p_queue;

// <muster/tensor.hpp>
class device;
class tensor;
struct safetensors;
struct sparse_rows;
enum class dtype : std::uint8_t;

// <muster/group.hpp>
class group;
class group_ticket;
struct group_options;
class graph;
class work;

// <muster/rpc.hpp>
class rpc_group;
class rpc_ticket;
template <class T>
class remote_ref;
template <class Signature>
class service;
class member_lost;

// <muster/params.hpp>
class gradient_server;
class kv_store;
class kv_ticket;
class model_server;
class ordered_server;
class state_dict;
class versioned_store;
struct gradient_compression;
struct kv_async_options;
struct kv_options;
class store;
class store_key;
class store_ticket;
struct store_options;

// <muster/world.hpp>
class data;
class variable;
class world;
struct rank_context;
struct world_options;

// shared memory, and what values are written to and read from
class domain;
struct domain_options;
class input_archive;
class output_archive;

}  // namespace muster
