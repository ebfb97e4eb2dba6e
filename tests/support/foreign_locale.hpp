// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <locale>
#include <string>

namespace muster::test {

/// While it lives, the program's locale has numbers written as in French: "12 345,5".
///
/// Thread safety: one at a time.
class foreign_locale {
public:
  foreign_locale() : before_(std::locale::global(std::locale(std::locale::classic(), new numbers))) {}
  foreign_locale(const foreign_locale&) = delete;
  foreign_locale& operator=(const foreign_locale&) = delete;
  ~foreign_locale() { std::locale::global(before_); }

private:
  struct numbers final : std::numpunct<char> {  // the locale's, which deletes it
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] char do_thousands_sep() const override { return ' '; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };

  std::locale before_;
};

}  // namespace muster::test
