// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/object_token.hpp>

#include <memory>
#include <stdexcept>
#include <typeinfo>

#include <gtest/gtest.h>

namespace muster::object_token_test {

struct visible {};

namespace {

struct hidden {};
template <class T>
struct box {};

const int constant = 1;
int initialized = 2;
int zero = 0;

TEST(ObjectToken, NamesStaticObjectsOfTheProgram) {
  EXPECT_NE(token_of(&constant), object_token::none);
  EXPECT_NE(token_of(&initialized), object_token::none);
  EXPECT_NE(token_of(&zero), object_token::none);
  EXPECT_NE(token_of(&typeid(visible)), object_token::none);
  EXPECT_NE(token_of(&constant), token_of(&zero));
  EXPECT_EQ(token_of(&constant), token_of(&constant));
}

TEST(ObjectToken, NamesStaticObjectsOfLibraries) {
  EXPECT_NE(token_of(&typeid(std::runtime_error)), object_token::none);
  EXPECT_NE(token_of(&typeid(std::runtime_error)), token_of(&typeid(std::logic_error)));
}

TEST(ObjectToken, NamesNothingElse) {
  const int local = 0;
  EXPECT_EQ(token_of(&local), object_token::none);
  EXPECT_EQ(token_of(std::make_unique<int>(1).get()), object_token::none);
  EXPECT_EQ(token_of(nullptr), object_token::none);
}

TEST(ObjectToken, TypesOfUnnamedNamespacesHaveInternalLinkage) {
  EXPECT_TRUE(has_internal_linkage(typeid(hidden)));
  EXPECT_TRUE(has_internal_linkage(typeid(box<hidden>)));
  EXPECT_FALSE(has_internal_linkage(typeid(visible)));
  EXPECT_FALSE(has_internal_linkage(typeid(std::runtime_error)));
  EXPECT_NE(local_token_of(typeid(hidden)), object_token::none);
  EXPECT_EQ(local_token_of(typeid(visible)), object_token::none);
}

}  // namespace
}  // namespace muster::object_token_test
