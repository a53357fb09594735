package import HTTPMessages
internal import HTTPTypes
package import StateJSON
package import StateStore

package struct HookView: Sendable {
    let store: VisibleStore
    package let filter: ChangesFilter
    package let dispatches: Bool

    package func mayDispatch(_ type: String) -> Bool { store.dispatches(type) }
}

extension Contract {
    /// The view of a hook, which sees the actions of all subjects; `subject` is that of the actions in its answers.
    ///
    /// A `path` of nil and empty `types` pass all; a type may end with `*`, and one that is hidden passes nothing.
    package func hookView(_ grant: Grant, subject: String, path: JSONPointer?, types: [String]) -> HookView {
        let access = Access(grant, subject: subject, in: catalogue)
        let store = VisibleStore(scope: catalogue.whole, access: access)
        let seen = Set(types.flatMap(store.typesSeen)).sorted()
        var filter = store.filter(path: path, types: seen, by: nil)
        if seen.isEmpty, !types.isEmpty { filter.paths = .nothing }
        return HookView(store: store, filter: filter, dispatches: !grant.dispatch.isEmpty)
    }

    /// The body of a delivery: the bytes that `/v1/changes` shows a client with the grant; nil if that sees nothing.
    package func delivery(of commit: Commit, to hook: HookView, epoch: Epoch) -> [UInt8]? {
        let visible = hook.store.visible(commit, epoch: epoch)
        if visible.action.elementsEqual("null".utf8), visible.patch.elementsEqual("[]".utf8) { return nil }
        var writer = JSONWriter(capacity: commit.action.count + commit.patch.count + 256)
        write(commit, of: hook.store, as: .patches, epoch: epoch, to: &writer)
        return writer.bytes
    }

    package func resetDelivery(_ reason: ResetReason, at latest: Cursor) -> [UInt8] {
        JSONWriter.object {
            $0.member("type", "storekeeper.reset")
            $0.member("reason", reason.rawValue)
            $0.member("cursor", latest.description)
        }
    }

    /// Reads the actions in an answer as one transaction; nil for an answer without actions, which need not be JSON.
    ///
    /// Actions without an ID get that of the delivery, with their number where there are several.
    package func transaction(
        inAnswer body: [UInt8], of hook: HookView, to commit: Commit, delivery id: String
    ) throws(Problem) -> Transaction? {
        guard hook.dispatches, let actions = try Self.actions(inAnswer: body) else { return nil }
        let options = DispatchOptions(store: hook.store)
        guard actions.first == UInt8(ascii: "[") else { throw Self.misfit("actions is not an array") }
        let spans = JSONText.elements(of: actions)
        guard spans.allSatisfy({ actions[$0].first == UInt8(ascii: "{") }) else {
            throw Self.misfit("an element of actions is not an object")
        }
        guard !spans.isEmpty else { return nil }
        var named = spans.enumerated().map { index, span in
            Self.naming(Array(actions[span]), spans.count == 1 ? id : "\(id)/\(index + 1)")
        }
        if named.count > 1 {
            named = [[UInt8(ascii: "[")] + named.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]]
        }
        var hint = Hint.nearestNames
        let transaction = try transaction(named.first ?? actions, options, nil, line: nil, &hint)
        guard transaction.restoration == nil else { throw Self.misfit("the answer of a hook restores no state") }
        return transaction.answering(commit, once: IdempotencyKey(id, of: hook.store.access.subject))
    }

    private static func misfit(_ sentence: String) -> Problem {
        Problem(.unprocessableContent, "invalid-action", sentence)
    }

    /// The value is nil for a text such as `ok`; actions in another form are a problem, because they would be dropped.
    private static func actions(inAnswer body: [UInt8]) throws(Problem) -> [UInt8]? {
        let body = JSONText.withoutByteOrderMark(body)
        let first = body.first { !" \t\r\n".utf8.contains($0) }
        let node = (try? JSONDocument(body, depthMax: 1000)).map { JSONNode($0) }
        if first == UInt8(ascii: "["), node?.elements?.contains(where: { $0.members != nil }) ?? false {
            throw misfit("the answer is an array: \(form)")
        }
        guard first == UInt8(ascii: "{") else { return nil }
        guard let members = node?.members else {
            throw misfit("the answer is not JSON, or has a name twice, or is nested too deep")
        }
        let minified = JSONText.minified(body)
        if let actions = JSONText.select(["actions"], in: minified) { return actions }
        let names = Set(members.map(\.key))
        if names.contains("action") || names.isSuperset(of: ["type", "payload"]) {
            throw misfit("the answer has an action and no member actions: \(form)")
        }
        return nil
    }

    private static let form = "it must be an object, {\"actions\":[...]}"

    private static func naming(_ action: [UInt8], _ id: String) -> [UInt8] {
        guard action.first == UInt8(ascii: "{"), action.count > 2,
            !JSONText.members(of: action, in: 0..<action.count).contains(where: { $0.key == "id" })
        else { return action }
        return Array("{\"id\":\"\(id)\",".utf8) + action.dropFirst()
    }
}
