"""The tutorial as it is printed: each block of one terminal, with the servers of the other one behind it."""

import os
import signal
import subprocess

from harness.etcd import free_ports
from harness.expectations import expect, expect_equal, wait_until
from harness.pages import all_blocks
from harness.tools import need

BLOCKS = [block for block in all_blocks() if block.page == "Tutorial.md" and block.language == "sh"]

def is_server(block):
    return block.text.startswith("storekeeper --")

def test_the_tutorial(workspace):
    need("curl", "jq", "python3")
    [port] = free_ports(1)
    folder = workspace.path("tutorial")
    os.makedirs(folder + "/bin")
    os.symlink(workspace.binary, folder + "/bin/storekeeper")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
    environment["PATH"] = f"{folder}/bin:{environment['PATH']}"
    server = None
    for block in BLOCKS:
        text = block.text.replace("localhost:8080", f"127.0.0.1:{port}")
        if is_server(block):
            if server:
                server.send_signal(signal.SIGINT)
                expect_equal(server.wait(20), 0, "the exit code of a server that ends by Ctrl-C")
            log = open(workspace.path("log"), "w+")
            command = f"exec {text.strip()} --listen 127.0.0.1:{port}"
            server = subprocess.Popen(["bash", "-c", command], cwd=folder, env=environment, stdout=log, stderr=log)
            workspace.started.append(server)
            ready = ["curl", "-s", "-o", "/dev/null", f"127.0.0.1:{port}/readyz"]
            wait_until(lambda: subprocess.run(ready).returncode == 0, "the server is ready")
            continue
        done = subprocess.run(
            ["bash", "-c", "set -e\n" + text], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
        expect_equal(done.returncode, 0, f"the exit code of {block}, which says {done.stdout[-500:]} {done.stderr[-500:]}")
        if block.output is not None:
            expect_equal(done.stdout, block.output, f"what {block} prints")
        elif "free.py" in text:
            # Two programs print at the same time.
            wanted = ["free: []", "['3']", "tickets.taken", "bob has ticket 2"]
            expect(all(text in done.stdout for text in wanted), f"{block} prints", done.stdout)
