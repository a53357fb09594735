/// The turn of an action that no subscriber, effect or middleware has to see.
///
/// In a store that is not recorded, such an action only leads from one state to the next. Its turn runs the reducers and publishes the state. It makes no JSON, no patch and no commit, and
/// gets by without the mailbox. `DirectTurnTests` holds its states, receipts and rejections against those of whole turns.
extension Store {
    /// Dispatches an action in a direct turn.
    ///
    /// - Returns: nil, without a change, where the action needs a whole turn.
    func dispatchDirectly(_ action: any Action) throws(DispatchError) -> Receipt? {
        guard !isRecorded, TurnMark.current == nil, let entry = domain.entry(of: action), entry.onlyReduces else {
            return nil
        }
        var receipt: Receipt?
        var rejection: Rejection?
        onQueue {
            guard subscribers.count == 0 else { return }
            do throws(Rejection) {
                guard let after = try reduceDirectly(action, entry) else { return }
                hub.publish(after)
                receipt = Receipt(after.cursor, ownID: nil, isChange: true, isReplay: false, types: entry.types)
            } catch { rejection = error }
        }
        if let rejection { throw .rejected(rejection, index: 0) }
        return receipt
    }
}
