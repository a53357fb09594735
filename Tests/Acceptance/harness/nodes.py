"""Several servers on one history in etcd."""

import contextlib
import functools

from harness.actions import action
from harness.bad_network import BadNetwork
from harness.client import Client, ConnectionLost
from harness.expectations import Failure, expect, wait_until
from harness.metrics import figures_of
from harness.programs import free_port, free_ports
from harness.server import Server


def led(workspace, address, each):
    """Servers with these settings on one history, one of which writes for all."""
    servers = []
    for settings in each:
        port, arguments = free_port(), settings.get("arguments")
        server = Server(workspace, address, settings | {"cluster_address": f"http://127.0.0.1:{port}", "arguments": None})
        server.fixed_port, server.arguments = port, arguments or []
        servers.append(server.start())
    return servers


def writer_of(servers):
    """The server that says that it writes, or none."""
    for server in servers:
        if server.process.poll() is None:
            with server.client() as client:
                if server.metric(client, "cluster_writer") == 1:
                    return server
    return None


class Nodes:
    """Servers on one history, which end and come back; with `are_led` one of them writes for all.

    Where the etcds are on machines of their own, each server is on one of these. Clients ask `ports`; with `is_far` a bad
    network is between them and the servers, and between these, too.
    """

    def __init__(self, workspace, etcds, name, count=3, are_led=False, environment=None, is_far=False, **settings):
        self.machines = etcds.machines
        self.servers = [Server(workspace, etcds.address(name), dict(settings)) for _ in range(count)]
        for server in self.servers:
            server.environment = dict(environment or {})
            server.settings["cluster_directory"] = workspace.path(f"of-one{workspace.count()}")
        for number, server in enumerate(self.servers if self.machines else []):
            server.prepare, server.address = functools.partial(self.machines.enter, number), "0.0.0.0"
            server.arguments = ["--open"]
        self.network = None
        if are_led or is_far:
            reached = ports = free_ports(count)
            if is_far:
                self.network = BadNetwork(workspace, ports)
                reached = self.network.ports
            for server, host, port, door in zip(self.servers, etcds.hosts, ports, reached):
                server.fixed_port = port
                if are_led:
                    server.settings["cluster_address"] = f"http://{host}:{door}"
        for server in self.servers:
            server.start()
        self.ports = self.network.ports if is_far else [server.port for server in self.servers]

    def client(self, index, timeout=60):
        """A client on the server's machine."""
        with self.machines.inside(index) if self.machines else contextlib.nullcontext():
            return Client(self.servers[index].port, timeout)

    def asked(self, chance, ask):
        """What one of the servers answers, chosen at random; nothing, where the answer is lost."""
        try:
            with Client(chance.choice(self.ports), timeout=15) as client:
                return ask(client)
        except (ConnectionLost, Failure):
            return None

    def restart(self, index):
        """Starts a server that has ended; the clients find its new port."""
        self.servers[index].start(seconds=60)
        if self.network is None:
            self.ports[index] = self.servers[index].port

    def states(self):
        """Version and state of each server."""
        return list(self.known(range(len(self.servers))).values())

    def known(self, indices):
        """Version and state of these servers, by their numbers."""
        found = {}
        for index in indices:
            try:
                with self.client(index) as client:
                    answer = client.get("/v1/state")
            except ConnectionLost:
                server = self.servers[index]
                expect(server.process.poll() is None, f"server {index} has ended with {server.process.poll()}:", server.log_text())
                raise
            found[index] = answer.fields["state-cursor"], answer.body
        return found

    def figures(self, index):
        with self.client(index) as client:
            return figures_of(client)

    def writer(self):
        """The number of the server that writes, when the others know it, too."""
        wait_until(lambda: len(self.writers()) == 1, "one server writes")
        [writer] = self.writers()
        for index in set(range(len(self.servers))) - {writer}:
            wait_until(lambda: self.sends_on(index), f"server {index} sends actions to the writer")
        return writer

    def sends_on(self, index):
        """Whether another server answers an action, which is refused."""
        sent = lambda: self.figures(index).by("forwards_total", "outcome").get(("answered",), 0)
        before = sent()
        with self.client(index) as client:
            client.post(action("counter/add", {"amount": 1}, expect=[{"path": "/counter/value", "value": -1}]))
        return sent() > before

    def writers(self, indices=None):
        """The numbers of the servers that say that they write."""
        indices = range(len(self.servers)) if indices is None else indices
        return [index for index in indices if self.figures(index)["cluster_writer"] == 1]
