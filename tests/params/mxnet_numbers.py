#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What MXNet's key-value store makes of the program of kv_beside_mxnet_test.cpp: a line for each value that rank 0
pulls, NAME NUMBER. Usage: mxnet_numbers.py WORKERS SERVERS. It starts scheduler, servers and workers itself."""
import os
import socket
import subprocess
import sys

import numpy

numpy.bool = bool  # MXNet 1.9.1 asks for the older name


def free_port():
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def start_all(workers, servers):
    around = dict(os.environ, DMLC_PS_ROOT_URI="127.0.0.1", DMLC_PS_ROOT_PORT=str(free_port()),
                  DMLC_NUM_WORKER=str(workers), DMLC_NUM_SERVER=str(servers), DMLC_NODE_HOST="127.0.0.1",
                  OMP_NUM_THREADS="1")
    roles = ["scheduler"] + ["server"] * servers + ["worker"] * workers
    here = [sys.executable, os.path.abspath(__file__)]
    all_of_them = [subprocess.Popen(here, env=dict(around, DMLC_ROLE=role)) for role in roles]
    for _ in all_of_them:
        status = os.waitstatus_to_exitcode(os.wait()[1])
        if status == 0:
            continue
        for each in all_of_them:  # which would wait for the one that has failed
            each.kill()
        sys.exit(abs(status))


def work():
    import mxnet as mx  # servers and the scheduler stay in this line

    kv = mx.kv.create("dist_sync")
    rank = kv.rank
    shapes = {"small": ((2, 3), "float32"), "half": ((2, 3), "float16"), "odd": ((1211, 11), "float32")}

    def show(name, value):
        found = value.asnumpy()
        assert found.min() == found.max(), name
        if rank == 0:
            print(name, float(found.min()), flush=True)

    def ones(key, value):
        shape, dtype = shapes[key]
        return mx.nd.full(shape, value, dtype=dtype)

    def push_and_show(name, key, value):
        kv.push(key, ones(key, value))
        out = ones(key, 0)
        kv.pull(key, out=out)
        show(name, out)

    for key in shapes:
        kv.init(key, ones(key, 1))
    for step in range(3):
        for key in shapes:
            push_and_show(f"sum {key} {step}", key, rank + 1)
    kv.set_optimizer(mx.optimizer.create("test", rescale_grad=2))
    for step in range(7):
        for key in shapes:
            push_and_show(f"updated {key} {step}", key, rank + 1)

    shapes["bits"] = ((2, 3), "float32")
    kv.init("bits", ones("bits", 0))
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv._barrier()  # rank 0 tells the servers, which abort when another's bits are there first
    for step, value in enumerate((0.4, 0.1, 0.2, 0.3, 0.5, -0.7, 0.05)):
        push_and_show(f"compressed {step}", "bits", value)


if len(sys.argv) == 3:
    start_all(int(sys.argv[1]), int(sys.argv[2]))
else:
    work()
