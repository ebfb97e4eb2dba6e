# SPDX-License-Identifier: BSL-1.0
@0xd2c1a7f05b9e4c11;

interface Adder {
  add @0 (a :Int32, b :Int32) -> (value :Int32);
}
