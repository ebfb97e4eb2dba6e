#include <gtest/gtest.h>
#include <muster/pool/pool.hpp>

int main(int argc, char** argv) {
  muster::init(argc, argv);  // workers of the tests are the test program
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
