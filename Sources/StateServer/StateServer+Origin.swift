internal import Logging
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore

extension StateServer {
    /// Dispatches `StoreResume`, so that the domain notes that the effects of the process before have ended.
    static func resume(_ store: UntypedStore, _ compiled: CompiledDomain, _ logger: Logger) {
        guard compiled.handles(StoreResume.type) else { return }
        let dryRun = Transaction([.init(StoreResume())], purpose: .dryRun)
        if case .wouldCommit(isChange: false, _) = store.submitNow(dryRun),
            !compiled.startsEffects(StoreResume.type)
        {
            return
        }
        do throws(DispatchError) {
            _ = try store.dispatch(Transaction([.init(StoreResume())]), .turn)
        } catch {
            logger.log(.warning, "resume refused", ["code": error.code, "reason": "\(error)"])
        }
    }

    static func checkInitial(_ compiled: CompiledDomain, _ settings: Settings) throws {
        guard let fault = compiled.initialFault, fault.kind == .schema,
            try JournalPlace(settings.data, settings)?.hasHistory != true
        else { return }
        throw SettingsFault(
            "the schema does not fit the first document: at \(fault.place): \(fault.detail); \"default\" beside \"type\" in the schema names another first document"
        )
    }

    /// The state that the store begins with, and the oldest version that clients can follow from; nil without a journal.
    static func origin(
        _ compiled: CompiledDomain, _ opened: OpenedJournal?, _ claim: DomainClaim?, _ logger: Logger,
        _ now: Timestamp
    ) throws -> (UntypedStore.Origin, Version?) {
        guard var opened else { return (.init(state: compiled.initial), nil) }
        for warning in opened.recovery.warnings { logger.log(.warning, "snapshot skipped", ["reason": warning]) }
        let record = try claim?.record(of: opened.domain, endingAt: opened.recovery.version, in: opened.name)
        if opened.domain?.isHeldToSchema == true, let claim, !claim.hasSchema, !claim.takesOthers {
            logger.log(
                .warning, "no schema",
                [
                    "reason":
                        "a server has held this state to a schema, and this one takes every value: name the schema again, or start once with --change-domain to go on without it"
                ])
        }
        // Such a domain would go on from the state of any other one, and leave a history that neither of them can replay.
        if compiled.takesAnyState, claim == nil || opened.domain == nil, let newest = try opened.newestCommit(),
            let foreign = newest.types.first(where: { !compiled.handles($0) && !newest.isOfPatchAlone })
        {
            throw SettingsFault(
                "the journal \(opened.name) is of another domain: its newest action is \(foreign), which this one does not have; name that domain or model, or another place for the data"
            )
        }
        var state: StateBox
        var schedule: ActionSchedule
        var recorded: [UInt8]
        let end = ContinuousClock.now + .seconds(20)
        repeat {
            do {
                let saved = try SavedState(saved: opened.recovery.state)
                schedule = saved.schedule
                recorded = saved.state
                state = try compiled.resumed(from: recorded)
            } catch {
                throw SettingsFault(
                    error.kind == .schema
                        ? "the present document does not fit the schema: at \(error.place): \(error.detail); start without the schema, or with the one before, and change the document first"
                        : "the journal \(opened.name) does not fit the domain: at \(error.place) \(error.detail); was it made by another domain?"
                )
            }
            // A build that declares more of the state changes what clients read, so the change is a commit.
            guard
                let upgrade = try compiled.upgrade(
                    from: recorded, to: state, version: opened.recovery.version + 1, epoch: opened.epoch, at: now)
            else { break }
            if try opened.record(upgrade, until: end) {
                logger.log(.notice, "state extended for this domain", ["version": opened.recovery.version])
                break
            }
            // Another server of the history has written first: the change is one of the state that it has left.
        } while true
        // Only a state that fits makes the journal one of this domain. On a full disk, the next start does it.
        if let record { try? opened.setDomain(record) }
        let version = opened.recovery.version
        logger.info(
            // An operator whose disk is not mounted finds that the history begins.
            version == 0 && opened.recovery.keys.isEmpty ? "journal begins" : "journal recovered",
            metadata: [
                "version": .stringConvertible(version), "patches": .stringConvertible(opened.recovery.patchesCount),
                "idempotency_keys": .stringConvertible(opened.recovery.keys.count),
                "scheduled": .stringConvertible(schedule.count),
            ])
        return (
            .init(
                state: state, cursor: Cursor(opened.epoch, version), keys: opened.recovery.keys,
                historyTime: opened.recovery.historyTime, schedule: schedule),
            opened.recovery.oldest
        )
    }
}
