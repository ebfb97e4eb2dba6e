# SPDX-License-Identifier: BSL-1.0
"""Each type has one definition: two of one name, in headers of different rooms, are one to the linker, which takes the
functions of either for both. Usage: one_definition.py ROOT."""
import collections
import pathlib
import re
import sys

ROOMS = "async base collectives device memory parallel params pool process queue rpc serialize".split()
token = re.compile(
    r"namespace\s*([\w:]*)\s*\{"
    r"|(?:struct|class)\s+(?:alignas\([^)]*\)\s*|\[\[\w+\]\]\s*)?([\w:]+)(?:\s*final)?\s*(?::(?!:)[^;{}()]*)?\{"
    r"|\{|\}")


def without_comments(text):
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(?:\\.|[^'\\\n])'", "' '", text)
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", text), flags=re.S)


def types_in(path):
    around = []
    for found in token.finditer(without_comments(path.read_text())):
        if found.group(1) is not None:
            around.append(found.group(1) or "(none)")
        elif found.group(2):
            name = found.group(2)
            if None not in around and "(none)" not in around and "::" not in name:
                yield "::".join(around + [name])
            around.append(None)
        elif found.group(0) == "{":
            around.append(None)
        elif around:
            around.pop()


def main(root):
    where = collections.defaultdict(set)
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.[hc]pp")):
            if "kernels" in path.parts:  # of the device's compiler
                continue
            for name in types_in(path):
                where[name].add(str(path.relative_to(root)))
    several = {name: sorted(paths) for name, paths in where.items() if len(paths) > 1}
    for name, paths in sorted(several.items()):
        print(f"{name} is defined {len(paths)} times: {', '.join(paths)}; give one another name")
    if len(where) < 500:
        print(f"only {len(where)} types were found: this check reads them no more")
        return 1
    return 1 if several else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
