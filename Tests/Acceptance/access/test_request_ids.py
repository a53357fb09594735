"""Request IDs tell their client nothing of the requests of others."""

from harness.expectations import expect


def test_two_refused_clients_cannot_count_the_requests_between_them(workspace):
    server = workspace.server(data="none")
    numbers = []
    with server.client() as client:
        for _ in range(200):
            name = client.get("/v1/nosuch").json["requestId"]
            numbers.append(int(name[1:], 36))
    differences = {after - before for before, after in zip(numbers, numbers[1:])}
    expect(len(set(numbers)) == 200 and len(differences) == 199, "IDs repeat, or their differences do")
    rising = sum(before < after for before, after in zip(numbers, numbers[1:]))
    expect(60 < rising < 140, f"{rising} of 199 are greater than the one before")
