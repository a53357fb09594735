"""Functions that run in processes of their own."""

import multiprocessing
import signal
import traceback

from harness.expectations import Failure, expect

processes = multiprocessing.get_context("fork")


class Worker:
    """A function in a process of its own."""

    def __init__(self, function, arguments):
        self.name = function.__name__
        self.receiver, sender = processes.Pipe(duplex=False)
        self.process = processes.Process(target=self._run, args=(function, arguments, sender), daemon=True)
        self.process.start()
        sender.close()

    @staticmethod
    def _run(function, arguments, sender):
        signal.alarm(0)
        try:
            sender.send((True, function(*arguments)))
        except Failure as failure:
            sender.send((False, f"{failure}"))
        except BaseException:  # The test reports every failure of its workers.
            sender.send((False, traceback.format_exc(limit=-4)))

    def result(self, seconds=60):
        """What the function has returned."""
        expect(self.receiver.poll(seconds), f"{self.name} was not done within {seconds} s")
        try:
            is_good, value = self.receiver.recv()
        except EOFError:
            raise Failure(f"{self.name} ended without a result") from None
        expect(is_good, f"{self.name}: {value}")
        self.process.join(10)
        return value

    def end(self):
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
