#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <muster/pool/pool.hpp>

/// How often each word occurs.
using word_counts = std::map<std::string, std::size_t>;

/// Counts the words of one file; runs in a worker. Throws std::runtime_error for a file that cannot be read.
word_counts count_words(const std::string& path);

/// Counts the words of all files, in the workers of the pool. A file that cannot be counted, because it cannot be read
/// or because its worker dies, adds nothing but a line to `problems`.
word_counts count_words_of(muster::pool& pool, const std::vector<std::string>& paths,
                           std::vector<std::string>& problems);
