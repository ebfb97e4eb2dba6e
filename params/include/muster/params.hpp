// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values under keys, with versions, that many processes share.

#include <muster/params/assign.hpp>
#include <muster/params/gradient_server.hpp>
#include <muster/params/kv_store.hpp>
#include <muster/params/model_server.hpp>
#include <muster/params/ordered_server.hpp>
#include <muster/params/store.hpp>
