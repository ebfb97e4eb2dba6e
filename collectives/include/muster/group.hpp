// SPDX-License-Identifier: BSL-1.0
#pragma once

// Groups of ranks: collectives, messages, and graphs of them.

#include <muster/collectives/graph.hpp>
#include <muster/collectives/group.hpp>
#include <muster/collectives/group_objects.hpp>
