internal import FoundationEssentials
internal import Glibc
internal import MicroHTTP
internal import StateJournal
internal import StateStore

struct SampledMetric: Sendable {
    let name: String
    let help: String
    let read: @Sendable (ServerReport) -> Int?

    private init(_ name: String, _ help: String, read: @escaping @Sendable (ServerReport) -> Int?) {
        (self.name, self.help, self.read) = (name, help, read)
    }

    static let all = ofServer + ofClients + ofJournal + ofHooks

    private static let ofServer: [SampledMetric] = [
        .init("ready", "1 while the probe readyz answers with 200.") {
            $0.isDurable && !$0.isDraining && $0.unreadableReason == nil ? 1 : 0
        },
        .init("token_file_up", "1 while the newest token file counts, and without one.") {
            $0.handler.authenticator.faults.tokens == nil ? 1 : 0
        },
        .init("key_file_up", "1 while the newest key file counts, and without one.") {
            $0.handler.authenticator.faults.keys == nil ? 1 : 0
        },
        .init("version", "Version of the published state.") { Int($0.hub.latest) },
        .init("state_bytes", "Bytes of the published state as JSON.") { $0.latest.jsonBytes ?? 0 },
        .init("state_limit_bytes", "How many bytes the state may have as JSON.") { $0.settings.stateBytesMax },
        .init("state_memory_bytes", "Bytes of memory of a document's or a model's state.") { $0.latest.memoryBytes },
        .init("state_memory_limit_bytes", "How many bytes of memory such a state may take.") {
            $0.settings.stateMemoryBytesMax
        },
        .init("mailbox_actions", "Transactions that wait for a turn or for the journal.") { $0.store.waitingCount },
        .init("mailbox_actions_limit", "How many transactions may wait.") { $0.settings.mailboxActionsMax },
        .init("idempotency_keys", "Idempotency keys that are remembered.") { $0.store.idempotencyKeysCount },
        .init("idempotency_keys_limit", "How many idempotency keys may be remembered.") {
            $0.settings.idempotencyKeysMax
        },
        .init("scheduled_actions", "Actions that are to be dispatched later.") { $0.latest.schedule.count },
        .init("scheduled_actions_limit", "How many actions may be scheduled.") { $0.settings.scheduleMax },
    ]

    private static let ofClients: [SampledMetric] = [
        .init("connections", "Open connections.") { $0.transport.connections },
        .init("connections_limit", "How many connections may be open.") { $0.settings.connectionsLimit },
        .init("waiters", "Requests that wait, and streams.") {
            $0.hub.waits.values.reduce(0, +) + $0.hub.streams.values.reduce(0, +)
        },
        .init("waiters_limit", "How many requests and streams may wait.") { $0.settings.watchLimits.watchesMax },
        .init("memory_bytes", "Bytes of requests in hand and of long unread answers.") { $0.memory.bytes },
        .init("memory_limit_bytes", "How many bytes requests and answers may have.") { $0.settings.memoryBytesMax },
        .init("memory_clients", "Clients with requests in hand that count in the memory.") {
            $0.memory.shares.clientsCount
        },
        .init("memory_share_bytes", "Bytes of the requests of the client with the most.") {
            $0.memory.shares.largestBytes
        },
    ]

    private static let ofJournal: [SampledMetric] = [
        .init("journal_up", "1 while the journal takes commits; 1 without a journal.") { $0.isDurable ? 1 : 0 },
        .init("cluster_writer", "1 while this server of a cluster writes by choice.") {
            $0.handler.cluster?.isWriter ?? false ? 1 : 0
        },
        .init("cluster_stale_seconds", "For how long this server may have missed commits; 0: it has all.") {
            Int($0.handler.staleness?.components.seconds ?? 0)
        },
        .init("journal_turns", "Turns that are computed and not yet in the journal.") { $0.store.turnsInFlightCount },
        .init("journal_bytes", "Bytes of the files of the journal.") { $0.journal?.bytesCount },
        .init("journal_free_bytes", "Bytes that the disk of the data directory has free.") {
            $0.directory?.freeBytes
        },
        .init("backup_time_seconds", "When the newest backup was made, in seconds since 1970; 0: unknown.") {
            $0.directory.map { $0.backupTime ?? 0 }
        },
        .init("oldest_version", "Oldest version that a client can follow from.") { Int($0.hub.oldest) },
        .init("history_commits", "Commits that are kept in memory.") { $0.hub.historyCommitsCount },
        .init("history_bytes", "Bytes of the commits that are kept in memory.") { $0.hub.historyBytes },
    ]

    private static let ofHooks: [SampledMetric] = [
        .init("hooks", "Hooks of this server.") { $0.hooks.count },
        .init("hooks_failing", "Hooks whose newest attempt has failed.") { $0.hooks.count(where: \.isFailing) },
        .init("hooks_paused", "Hooks that are paused.") { $0.hooks.count { $0.entry.paused != nil } },
        .init("hook_behind_versions", "How many versions the last hook is behind the newest one.") {
            Int($0.hooks.compactMap(\.behind).max() ?? 0)
        },
    ]
}

enum ProcessFigures {
    /// The cost before Linux 6.2 is O(n) in the number of open files; a figure that /proc does not tell is left out.
    static func text() -> [UInt8] {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let time = seconds(usage.ru_utime) + seconds(usage.ru_stime)
        let figures: [(String, String, String, Double?)] = [
            ("cpu_seconds_total", "counter", "Processor time of the process, in seconds.", time),
            ("resident_memory_bytes", "gauge", "Resident memory of the process.", residentBytes.map { Double($0) }),
            ("open_fds", "gauge", "Open file descriptors.", openFiles()),
            ("max_fds", "gauge", "How many file descriptors may be open.", Double(limit.rlim_cur)),
            ("start_time_seconds", "gauge", "When the process was started, in seconds since 1970.", startTime),
        ]
        var text = ""
        for case (let name, let kind, let help, let value?) in figures {
            text += "# HELP process_\(name) \(help)\n# TYPE process_\(name) \(kind)\nprocess_\(name) "
            text += "\(Int64(exactly: value).map(String.init) ?? "\(value)")\n"
        }
        return Array(text.utf8)
    }

    static var residentBytes: Int? {
        words("/proc/self/statm")?.dropFirst().first.flatMap { Int($0) }.map { $0 * sysconf(Int32(_SC_PAGESIZE)) }
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

    private static func openFiles() -> Double? {
        var status = stat()
        if stat("/proc/self/fd", &status) == 0, status.st_size > 0 { return Double(status.st_size) }
        // A figure that cannot be read is left out, as text() says. The list has the descriptor that reads it.
        return (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")).map { Double($0.count - 1) }
    }

    private static let startTime: Double? = {
        // The name of the program, in parentheses, may have spaces; what is behind it begins with the third figure.
        guard let status = words("/proc/self/stat"), let name = status.lastIndex(where: { $0.hasSuffix(")") }),
            status.indices.contains(name + 20), let ticks = Double(status[name + 20]),
            let machine = words("/proc/stat"), let key = machine.firstIndex(of: "btime"),
            let boot = Double(machine[key + 1])
        else { return nil }
        return boot + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }()

    private static func words(_ path: String) -> [Substring]? {
        FileManager.default.contents(atPath: path).map {
            String(decoding: $0, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        }
    }
}
