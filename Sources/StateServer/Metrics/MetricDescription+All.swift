internal import MicroHTTP

extension MetricDescription {
    static let all: [MetricDescription] =
        build + actions + clients + journal + hooks + history

    private static let build: [MetricDescription] = [
        .init("storekeeper_build_info", .gauge, "Always 1; the labels have the versions of program and Storekeeper."),
        .init("storekeeper_start_time_seconds", .gauge, "When the server was made, in seconds since 1970."),
        .init("storekeeper_ready", .gauge, "1 while the probe readyz answers with 200."),
        .init("storekeeper_token_file_up", .gauge, "1 while the newest token file counts, and without one."),
        .init("storekeeper_key_file_up", .gauge, "1 while the newest key file counts, and without one."),
        .init("storekeeper_version", .gauge, "Version of the published state."),
        .init("storekeeper_state_bytes", .gauge, "Bytes of the published state as JSON."),
        .init("storekeeper_state_limit_bytes", .gauge, "How many bytes the state may have as JSON."),
        .init("storekeeper_state_memory_bytes", .gauge, "Bytes of memory of a document's or a model's state."),
        .init("storekeeper_state_memory_limit_bytes", .gauge, "How many bytes of memory such a state may take."),
    ]

    private static let actions: [MetricDescription] = [
        .init("storekeeper_actions_total", .counter, "Actions that were decided, by type and outcome."),
        .init("storekeeper_commits_total", .counter, "Commits that were published."),
        .init(
            "storekeeper_turn_seconds", .histogram, "Time to compute a turn, in seconds.",
            buckets: [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3]),
        .init(
            "storekeeper_turn_transactions", .histogram, "Transactions in a turn.",
            buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
        .init("storekeeper_mailbox_actions", .gauge, "Transactions that wait for a turn or for the journal."),
        .init("storekeeper_mailbox_actions_limit", .gauge, "How many transactions may wait."),
        .init("storekeeper_idempotency_keys", .gauge, "Idempotency keys that are remembered."),
        .init("storekeeper_idempotency_keys_limit", .gauge, "How many idempotency keys may be remembered."),
        .init("storekeeper_scheduled_actions", .gauge, "Actions that are to be dispatched later."),
        .init("storekeeper_scheduled_actions_limit", .gauge, "How many actions may be scheduled."),
        .init(
            "storekeeper_scheduled_late_seconds", .histogram,
            "How much later than its time a scheduled action was committed or refused, in seconds.",
            buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60, 600, 3600]),
    ]

    private static let clients: [MetricDescription] = [
        .init("storekeeper_requests_total", .counter, "Complete requests."),
        .init("storekeeper_answers_total", .counter, "Answers to complete requests, by method and class of status."),
        .init(
            "storekeeper_answer_seconds", .histogram,
            "Time from a complete request to its answer, without waits and streams, in seconds.",
            buckets: Answers.boundsNanoseconds.map { Double($0) / 1e9 }),
        .init("storekeeper_transport_refusals_total", .counter, "Requests that the transport refused."),
        .init("storekeeper_refusals_total", .counter, "Problems in answers and in lines of bulk loads, by code."),
        .init("storekeeper_connections", .gauge, "Open connections."),
        .init("storekeeper_connections_limit", .gauge, "How many connections may be open."),
        .init("storekeeper_waiters", .gauge, "Requests that wait, and streams."),
        .init("storekeeper_waiters_limit", .gauge, "How many requests and streams may wait."),
        .init("storekeeper_waits", .gauge, "Requests that wait, without streams, by route."),
        .init("storekeeper_waits_total", .counter, "Requests that began to wait, without streams, by route."),
        .init("storekeeper_streams", .gauge, "Open streams, by route."),
        .init("storekeeper_streams_total", .counter, "Streams that began, by route."),
        .init(
            "storekeeper_woken_watches", .histogram, "Waits and streams that a pass of the fan-out woke.",
            buckets: [0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000]),
        .init("storekeeper_memory_bytes", .gauge, "Bytes of requests in hand and of long unread answers."),
        .init("storekeeper_memory_limit_bytes", .gauge, "How many bytes requests and answers may have."),
        .init("storekeeper_memory_clients", .gauge, "Clients with requests in hand that count in the memory."),
        .init("storekeeper_memory_share_bytes", .gauge, "Bytes of the requests of the client with the most."),
    ]

    private static let journal: [MetricDescription] = [
        .init("storekeeper_journal_up", .gauge, "1 while the journal takes commits; 1 without a journal."),
        .init("storekeeper_journal_commits_total", .counter, "Commits that the journal has taken."),
        .init("storekeeper_journal_failures_total", .counter, "Appends to the journal that failed."),
        .init(
            "storekeeper_journal_refusals_total", .counter,
            "Turns that had to be computed again because another server had appended first."),
        .init("storekeeper_cluster_writer", .gauge, "1 while this server of a cluster writes by choice."),
        .init(
            "storekeeper_cluster_stale_seconds", .gauge,
            "For how long this server may have missed commits; 0: it has all."),
        .init("storekeeper_forwards_total", .counter, "Actions sent on to the server that writes, by outcome."),
        .init(
            "storekeeper_journal_append_seconds", .histogram,
            "Time to append to the journal, with the sync, in seconds.",
            buckets: [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]),
        .init("storekeeper_journal_turns", .gauge, "Turns that are computed and not yet in the journal."),
        .init("storekeeper_journal_bytes", .gauge, "Bytes of the files of the journal."),
        .init("storekeeper_journal_free_bytes", .gauge, "Bytes that the disk of the data directory has free."),
        .init(
            "storekeeper_backup_time_seconds", .gauge,
            "When the newest backup was made, in seconds since 1970; 0: unknown."),
    ]

    private static let hooks: [MetricDescription] = [
        .init("storekeeper_hooks", .gauge, "Hooks of this server."),
        .init("storekeeper_hooks_failing", .gauge, "Hooks whose newest attempt has failed."),
        .init("storekeeper_hooks_paused", .gauge, "Hooks that are paused."),
        .init("storekeeper_hook_behind_versions", .gauge, "How many versions the last hook is behind the newest one."),
        .init("storekeeper_hook_attempts_total", .counter, "Attempts to deliver to a hook, by outcome."),
        .init("storekeeper_hook_refusals_total", .counter, "Answers of hooks whose actions were refused."),
        .init(
            "storekeeper_hook_resets_total", .counter,
            "Times that a hook missed commits, because they were no longer kept."),
    ]

    private static let history: [MetricDescription] = [
        .init("storekeeper_oldest_version", .gauge, "Oldest version that a client can follow from."),
        .init("storekeeper_history_commits", .gauge, "Commits that are kept in memory."),
        .init("storekeeper_history_bytes", .gauge, "Bytes of the commits that are kept in memory."),
    ]
}
