// SPDX-License-Identifier: BSL-1.0
// Macros that the headers of other libraries define, and then every public header of muster: none may be broken. What
// libstdc++ itself undefines or uses (min, max) is not among them, nor what only kernels' own sources have (current).
#include <what_headers_include.hpp>

// The C library's and the kernel's.
#include <arpa/inet.h>
#include <complex.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/input.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <regex.h>
#include <semaphore.h>
#include <sys/param.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/ttydefaults.h>
#include <sys/user.h>
#include <syslog.h>
#include <termios.h>

// With GNU's extensions these are 1.
#undef linux
#undef unix
#undef i386
#define linux 1
#define unix 1
#define i386 1
// Of C's complex numbers (complex itself is undone in C++), and of C libraries where these are no names of themselves.
#undef I
#undef stdin
#undef stdout
#undef stderr
#define I _Complex_I
#define stdin (stdin)
#define stdout (stdout)
#define stderr (stderr)
// The kernel's style, in many libraries for systems.
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define container_of(pointer, type, member) ((type*)((char*)(pointer) - offsetof(type, member)))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define READ_ONCE(x) (*(const volatile __typeof__(x)*)&(x))
#define PAGE_SHIFT 12
#undef PAGE_SIZE
#define PAGE_SIZE 4096
#undef BLOCK_SIZE
#define BLOCK_SIZE 1024

// Qt without QT_NO_KEYWORDS.
#define signals public
#define slots
#define emit
#define foreach(variable, container) for (variable : container)
#define forever for (;;)

// X11/X.h, Xlib.h, Xutil.h.
#define Bool int
#define Status int
#define True 1
#define False 0
#define None 0L
#define Success 0
#define BadRequest 1
#define BadValue 2
#define BadWindow 3
#define BadAccess 10
#define BadAlloc 11
#define Always 2
#define Never 0
#define WhenMapped 1
#define Above 0
#define Below 1
#define Opposite 4
#define Unsorted 0
#define YSorted 1
#define Complex 0
#define Nonconvex 1
#define Convex 2
#define CursorShape 0
#define TileShape 1
#define StippleShape 2
#define StaticGray 0
#define GrayScale 1
#define StaticColor 2
#define PseudoColor 3
#define TrueColor 4
#define DirectColor 5
#define KeyPress 2
#define KeyRelease 3
#define ButtonPress 4
#define ButtonRelease 5
#define FocusIn 9
#define FocusOut 10
#define Expose 12
#define ControlMask (1 << 2)
#define InputOnly 2
#define InputOutput 1
#define CopyFromParent 0L
#define ParentRelative 1L
#define PointerRoot 1L
#define CurrentTime 0L
#define NoSymbol 0L
#define AnyKey 0L
#define AllocNone 0
#define AllocAll 1
#define NotifyNormal 0
#define GrabSuccess 0
#define RevertToNone 0
#define LineSolid 0
#define FillSolid 0
#define EvenOddRule 0
#define Bottom 1
#define Font unsigned long
#define Window unsigned long
#define Display void

// ncurses, GLib, and Windows' headers by way of compatibility libraries.
#define OK 0
#define ERR (-1)
#undef TRUE
#undef FALSE
#define TRUE 1
#define FALSE 0
#undef MIN
#undef MAX
#undef ABS
#undef CLAMP
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ABS(a) ((a) < 0 ? -(a) : (a))
#define CLAMP(x, low, high) ((x) > (high) ? (high) : (x) < (low) ? (low) : (x))
#define interface struct
#define near
#define far
#define small char
#define IN
#define OUT
#define ERROR 0
#define NO_ERROR 0
#define DELETE 1

// Logging libraries, test frameworks and others.
#define LOG(severity) abort()
#define CHECK(condition) ((void)0)
#define VERIFY(condition) ((void)0)
#define ASSERT(condition) ((void)0)
#define REQUIRE(condition) ((void)0)
#define DEBUG 1
#define INFO 1
#define WARNING 1
#define FATAL 1
#define TRACE 1
#define VERSION "1"
#define PACKAGE "other"

#include <all_headers.hpp>
