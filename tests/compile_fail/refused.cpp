// SPDX-License-Identifier: BSL-1.0
// The sentences about types that cannot be sent, all in one source, because its headers take long to read. Each type
// gives one sentence: Clang's -verify counts them. refusal_test.cpp has more types for each reason.
#include <any>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>

using namespace muster;

template <class T>
void take(const T& value);
template <class T>
T give();

class hidden {
public:
  explicit hidden(int value);

private:
  int number;
};
struct with_hidden {
  hidden inner;
};
struct with_pointer {
  const char* text;
};
union number {
  int whole;
  float real;
};
struct named {
  std::string name;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name);
  }
};
struct inherits : named {
  int more;
};
struct shape {
  virtual ~shape() = default;
  virtual void draw() = 0;
};
struct by_modulus {
  int modulus;
  bool operator()(int a, int b) const { return a % modulus < b % modulus; }
};
struct without_default {
  explicit without_default(int value);
  std::string text;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text);
  }
};
template <class T>
struct holds {
  T part;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(part);
  }
};

// expected-error@*:* 4 {{muster: the compiler cannot see that this class is plain bytes}}
void hidden_members(const pool& processes) {
  processes.apply(take<hidden>, hidden(1));
  processes.apply(give<std::vector<with_hidden>>);
  processes.apply(give<with_pointer>);
  processes.apply(give<number>);
}

// expected-error@*:* 3 {{muster: a pointer, view, iterator or reference means nothing in another process}}
void pointers(const pool& processes) {
  processes.apply(give<std::vector<int>::iterator>);
  processes.apply(give<std::vector<std::string_view>>);
  processes.apply(give<holds<int*>>);
}

// expected-error@*:* 2 {{muster: this class of the standard library stands for something in this process}}
void standard_classes(const pool& processes) {
  processes.apply(give<std::vector<std::any>>);
  processes.apply(give<holds<std::function<void()>>>);
}

// expected-error@*:* 1 {{muster: a lambda cannot be an argument, result or element}}
void lambdas(const pool& processes) {
  processes.apply([](int x) { return [x] { return x; }; }, 1);
}

// expected-error@*:* 1 {{muster: this class would be sent by the serialize function of its base}}
void inherited(const pool& processes) { processes.apply(give<inherits>); }

// expected-error@*:* 1 {{muster: the comparator or hash of this container has state}}
void stateful(const pool& processes) { processes.apply(give<std::set<int, by_modulus>>); }

// expected-error@*:* 1 {{muster: the deleter of a std::unique_ptr is not sent with it}}
void deleters(const pool& processes) { processes.apply(give<std::unique_ptr<int, void (*)(int*)>>); }

// expected-error@*:* 1 {{muster: nothing can be received into a constant}}
void constants(const pool& processes) { processes.apply(give<std::vector<std::pair<const int, std::string>>>); }

// expected-error@*:* 1 {{muster: a value of this type is constructed before it is received into}}
void no_default(const pool& processes) { processes.apply(give<without_default>); }

// expected-error@*:* 1 {{muster: an object of an abstract class cannot be sent by value}}
void abstract_classes(const pool& processes, const shape& given) {
  processes.apply([](const shape&) {}, given);
}

// expected-error@*:* 1 {{muster: a callable that a call may change is copied for each element}}
struct changing {
  std::unique_ptr<int> count;
  int operator()(int x) { return ++*count + x; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(count);
  }
};
void changing_callables(const pool& processes) { processes.map(changing(), std::vector<int>()); }

// expected-error@*:* 1 {{muster: this type cannot be sent to another process: give it a cereal serialize() function}}
struct writer {
  void put(const std::string& text);
};
struct of_another_library {
  std::string text;
  void serialize(writer& to) const { to.put(text); }
};
void functions_of_another_library(const pool& processes) {
  processes.apply(take<of_another_library>, of_another_library());
}

// expected-error@*:* 1 {{muster: the callable cannot be called with these arguments}}
void variadic_functions(const pool& processes, const thread_pool& threads) {
  processes.apply(std::printf, "text");
  threads.apply(std::printf, "text");
}

// expected-error@*:* 0+ {{}}
// expected-note@*:* 0+ {{}}
