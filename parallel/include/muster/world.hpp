// SPDX-License-Identifier: BSL-1.0
#pragma once

// Data-parallel functions over ranks that are processes.

#include <muster/parallel/batches.hpp>
#include <muster/parallel/data.hpp>
#include <muster/parallel/detail/apply_rule.hpp>
#include <muster/parallel/function.hpp>
#include <muster/parallel/rules.hpp>
#include <muster/parallel/variable.hpp>
#include <muster/parallel/world.hpp>
