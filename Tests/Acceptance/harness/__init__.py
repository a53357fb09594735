"""What the tests share: servers, clients on raw sockets, workers in processes, and judges of what comes back."""
