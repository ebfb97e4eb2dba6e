// SPDX-License-Identifier: BSL-1.0
#pragma once

// Queues and events, which any processes of a domain share.

#include <muster/queue/event.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>
