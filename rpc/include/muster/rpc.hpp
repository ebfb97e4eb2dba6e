// SPDX-License-Identifier: BSL-1.0
#pragma once

// Processes that call one another by name: services, values that stay where they are, actors.

#include <muster/rpc/rpc_group.hpp>
#include <muster/rpc/this_call.hpp>
