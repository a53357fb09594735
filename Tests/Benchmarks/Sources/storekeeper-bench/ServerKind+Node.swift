internal import Benchmarking
internal import Foundation

extension ServerKind {
    /// Node, with a handwritten server for the same requests; it keeps its state in memory only.
    static let node = ServerKind(who: "Node") { workplace, storage in
        guard storage == .memory, let node = workplace.installed("node") else { return nil }
        let process = try ChildProcess(node, [workplace.file("server.js", script).path], in: workplace, ending: .anyhow)
        let port = try process.awaiting("a port") {
            process.text.hasSuffix("\n") ? UInt16(process.text.dropLast()) : nil
        }
        let conversation = Conversation(
            get: .get("/state"), post: .post("/actions", json: Conversation.action),
            wait: { .get("/state?wait=50", fields: [("If-None-Match", $0)]) },
            stream: .get("/state", fields: [("Accept", "text/event-stream")]))
        return Server(who: "Node", processes: [process], port: port, conversation: conversation)
    }

    private static let script = """
        let value = 0, waiting = [], streams = [];
        const fields = (body, extra) => ({
            'Content-Type': 'application/json', 'State-Cursor': 'a.' + value, 'X-Content-Type-Options': 'nosniff',
            'Content-Length': body.length, ...extra });
        const read = response => {
            const body = JSON.stringify({ value, note: 'as long as a small state is' });
            response.writeHead(200, fields(body, { ETag: `"${value}"`, 'Cache-Control': 'private, no-cache' }));
            response.end(body);
        };
        const server = require('http').createServer((request, response) => {
            if (request.method === 'POST') {
                let text = '';
                request.on('data', piece => text += piece);
                request.on('end', () => {
                    value += JSON.parse(text).payload.amount;
                    const body = JSON.stringify({ cursor: 'a.' + value, version: value, changed: true });
                    response.writeHead(200, fields(body, { 'Cache-Control': 'no-store' }));
                    response.end(body);
                    const woken = waiting;
                    waiting = [];
                    for (const one of woken) read(one);
                    const event = `id: a.${value}\\ndata: ${body}\\n\\n`;
                    for (const one of streams) one.write(event);
                });
            } else if (request.headers.accept === 'text/event-stream') {
                response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
                response.flushHeaders();
                streams.push(response);
            } else if (request.headers['if-none-match'] === `"${value}"`) {
                waiting.push(response);
            } else {
                read(response);
            }
        });
        server.keepAliveTimeout = 75000;
        server.listen(0, '127.0.0.1', 4096, () => console.log(server.address().port));
        process.on('SIGTERM', () => process.exit(0));

        """
}
