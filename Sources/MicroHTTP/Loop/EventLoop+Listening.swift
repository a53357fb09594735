import CMicroHTTPD
import Glibc

/// Lets new clients in.
///
/// libmicrohttpd could do it itself, but knows nothing of the connections that it has given up, which count too.
extension EventLoop {
    /// Takes in everybody who stands at the door, as far as there is room.
    func acceptClients() {
        guard let listener, isListening else { return }
        while statistics.connections < configuration.connectionsMax + configuration.overCapacityMax {
            guard daemon.accept(from: listener.descriptor) < 0 else { continue }
            switch errno {
            case EAGAIN: return
            case EINTR, ECONNABORTED, EPROTO: continue
            default:
                // No descriptors, no memory: those who stand at the door can wait a little.
                handlers.debugLog("no client can be let in: \(ServerError.words(for: errno))")
                stopListening()
                alarms.set(.listening, at: .now + .milliseconds(100))
                return
            }
        }
        stopListening()
    }

    /// Listens again if there is room again.
    func listenIfPossible() {
        guard let listener, !isListening,
            statistics.connections < configuration.connectionsMax + configuration.overCapacityMax
        else { return }
        do {
            try poller.watchListener(listener.descriptor)
            isListening = true
        } catch {
            handlers.debugLog(error.description)
            alarms.set(.listening, at: .now + .milliseconds(100))
        }
    }

    private func stopListening() {
        guard let listener, isListening else { return }
        poller.unwatch(listener.descriptor)
        isListening = false
    }

    func stopAccepting() {
        guard let listener else { return }
        stopListening()
        Glibc.close(listener.descriptor)
        self.listener = nil
    }
}
