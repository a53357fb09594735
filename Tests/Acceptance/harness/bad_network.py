"""Connections that break, and answers that get lost, are late, or end anywhere: bad_network.py SEED PORT..."""

import asyncio
import functools
import json
import random
import subprocess
import sys


class BadNetwork:
    """A proxy: who asks one of its `ports` reaches the port in its place."""

    def __init__(self, workspace, ports):
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(workspace.seed), *map(str, ports)], stdout=subprocess.PIPE, text=True)
        workspace.started.append(self.process)
        self.ports = json.loads(self.process.stdout.readline())

    def stop(self):
        """Ends it, and returns how often each thing has happened."""
        self.process.terminate()
        return json.loads(self.process.communicate(timeout=10)[0])


class Proxy:
    """Phases of a good and of a bad network follow each other."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.is_bad = False
        self.counts = {}

    async def change(self):
        while True:
            self.is_bad = not self.is_bad
            await asyncio.sleep(self.chance.uniform(0.1, 1.2))

    def happens(self, what, share):
        if not self.is_bad or self.chance.random() >= share:
            return False
        self.counts[what] = self.counts.get(what, 0) + 1
        return True

    def part(self, data):
        return data[: self.chance.randrange(len(data))]

    async def pause(self):
        await asyncio.sleep(self.chance.choice([0.05, 0.3, 1, 2.5]))

    async def serve(self, target, client, to_client):
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            return to_client.transport.abort()
        lost = asyncio.Event()

        async def carry_requests():
            while data := await client.read(65536):
                if self.happens("request reset", 0.03):
                    return
                if self.happens("request cut off", 0.03):
                    to_server.write(self.part(data))
                    return await to_server.drain()
                if self.happens("answer lost", 0.05):
                    lost.set()
                if self.happens("request late", 0.03):
                    await self.pause()
                to_server.write(data)
                await to_server.drain()

        async def carry_answers():
            while (data := await server.read(65536)) and not lost.is_set():
                if self.happens("answer cut off", 0.02):
                    to_client.write(self.part(data))
                    return await to_client.drain()
                if self.happens("answer late", 0.03):
                    await self.pause()
                if self.happens("answer in bytes", 0.03):
                    for index in range(min(len(data), 40)):
                        to_client.write(data[index : index + 1])
                        await to_client.drain()
                    data = data[40:]
                to_client.write(data)
                await to_client.drain()

        async def carry(one_way):
            try:
                await one_way
            except OSError:
                pass
            finally:
                to_server.transport.abort()
                to_client.transport.close()

        await asyncio.gather(carry(carry_requests()), carry(carry_answers()))


async def run(seed, ports):
    proxy = Proxy(seed)
    doors = [await asyncio.start_server(functools.partial(proxy.serve, port), "127.0.0.1", 0) for port in ports]
    print(json.dumps([door.sockets[0].getsockname()[1] for door in doors]), flush=True)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(15, stopped.set)
    changes = asyncio.create_task(proxy.change())
    await stopped.wait()
    changes.cancel()
    print(json.dumps(proxy.counts), flush=True)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2:]))
