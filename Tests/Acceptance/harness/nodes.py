"""Several servers on one history in etcd."""

from harness.client import Client
from harness.etcd import free_ports
from harness.metrics import figures_of
from harness.server import Server


class Nodes:
    """Servers on one history, which end and come back; with `are_led` one of them writes for all."""

    def __init__(self, workspace, etcds, name, count=3, are_led=False):
        self.servers = [Server(workspace, etcds.address(name), {}) for _ in range(count)]
        if are_led:
            for server, port in zip(self.servers, free_ports(count)):
                server.fixed_port = port
                server.settings["cluster_address"] = f"http://127.0.0.1:{port}"
        for server in self.servers:
            server.start()
        self.ports = [server.port for server in self.servers]

    def restart(self, index):
        """Starts a server that has ended; the clients find its new port."""
        self.servers[index].start(seconds=60)
        self.ports[index] = self.servers[index].port

    def states(self):
        """Version and state of each server."""
        found = []
        for port in self.ports:
            with Client(port) as client:
                answer = client.get("/v1/state")
                found.append((answer.fields["state-cursor"], answer.body))
        return found

    def figures(self, index):
        with Client(self.ports[index]) as client:
            return figures_of(client)

    def writers(self, indices=None):
        """The numbers of the servers that say that they write."""
        indices = range(len(self.servers)) if indices is None else indices
        return [index for index in indices if self.figures(index)["cluster_writer"] == 1]
